/** A frame: the events at some devices since the one before, as the page of a dashboard gets it. */

/** State at one moment; about 20 are sent a second. */
export interface Frame {
  /** Id of the run; 0 of daemons. */
  run: number;
  /** Time of the frame before, also where that was not sent. */
  since_ns: number;
  t_ns: number;
  flows: {
    /** Rates, bit/s: R_C, or another limit, and R_T; null: the flow does not send. */
    rate: (number | null)[];
    target: (number | null)[];
    /** Alpha, 0..1; null: there is none. */
    alpha: (number | null)[];
    /**
     * Rate of arrivals since the frame before, with headers and gaps like the rates, bit/s. A daemon's queue pair has the rate at which it
     * sent, or received if it is there to receive.
     */
    throughput: number[];
  };
  /** Present lengths, and the longest since the frame before as far as it was looked at. */
  queues: { bytes: number[]; peak: number[] };
  /** State of each switch, in the order of nodes: shared buffer, and the level at which ingress counters pause (xoff), bytes. */
  switches: { occupied: number; xoff: number }[];
  /** Both directions of each link since the frame before: bit/s, and PFC frames sent in this direction. */
  links: {
    forward_bps: number;
    backward_bps: number;
    forward_pauses: number;
    backward_pauses: number;
    marks: number;
  }[];
  /** Events since the frame before; nothing is left out. */
  events: FrameEvent[];
  /** Longest gap between turns of the poll loops so far, wall us. */
  loop_gap_max_us: number;
}

/**
 * `where`: for marks and CNMs the queue, "switch:port:priority"; for CNPs the id of the flow whose receiver sent them; for PFC the
 * sender's port and priority, "device:peer:priority"; for drops the port and the reason, "device:peer:headroom_full".
 */
export interface FrameEvent {
  kind: "mark" | "cnp" | "cnm" | "pfc" | "drop";
  count: number;
  where: string;
}
