/** A frame: what happened at some devices since the one before, as the page of a dashboard gets it. */

/** What it is like at one moment; about 20 a second. */
export interface Frame {
  /** Id of the run; 0 of daemons. */
  run: number;
  /** Of the frame before, also where that was not sent. */
  since_ns: number;
  t_ns: number;
  flows: {
    /** R_C, or what else limits it, and R_T, bit/s; null: it does not send. */
    rate: (number | null)[];
    target: (number | null)[];
    /** 0..1; null: there is none. */
    alpha: (number | null)[];
    /**
     * What arrived since the frame before, with headers and gaps like the rates, bit/s. Of a daemon's queue pair what it sent, or
     * received if it is there to receive.
     */
    throughput: number[];
  };
  /** Lengths now, and the longest since the frame before as far as it was looked at. */
  queues: { bytes: number[]; peak: number[] };
  /** Of each switch, in the order of nodes: shared buffer, and where ingress counters pause (xoff), bytes. */
  switches: { occupied: number; xoff: number }[];
  /** Both directions of each link since the frame before: bit/s, and PFC frames sent in this direction. */
  links: {
    forward_bps: number;
    backward_bps: number;
    forward_pauses: number;
    backward_pauses: number;
    marks: number;
  }[];
  /** What happened since the frame before; nothing is left out. */
  events: FrameEvent[];
  /** Longest gap between turns of the poll loops so far, wall us. */
  loop_gap_max_us: number;
}

/**
 * `where`: of marks and CNMs the queue, "switch:port:priority"; of CNPs the id of the flow whose receiver sent them; of PFC the
 * sender's port and priority, "device:peer:priority"; of drops the port and the reason, "device:peer:headroom_full".
 */
export interface FrameEvent {
  kind: "mark" | "cnp" | "cnm" | "pfc" | "drop";
  count: number;
  where: string;
}
