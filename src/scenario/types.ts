// The validated scenario. Rates are bit/s, sizes bytes, times integer nanoseconds, fractions 0..1: all as the scenario means
// them, before any time scale. Field names are those of the scenario file.
import type { Congestion } from "../congestion/section.js";

export type { Congestion } from "../congestion/section.js";

/** What a link does to frames on purpose; probabilities per frame, both directions. */
export interface Impairment {
  loss: number;
  corrupt: number;
  duplicate: number;
  reorder: number;
  /** Extra delay of each frame is uniform in 0..jitter, ns; it does not reorder. */
  jitter: number;
  /** Extra delay of the frames that `reorder` picks, ns. */
  reorder_delay: number;
}

/** A full-duplex cable between two devices. */
export interface Link {
  from: string;
  to: string;
  /** bit/s; 0 = not shaped. */
  rate: number;
  /** One-way, ns. */
  delay: number;
  /** Largest IP packet, bytes. */
  mtu: number;
  impairment?: Impairment;
}

export interface BufferConfig {
  /** Whole packet memory, bytes. */
  total: number;
  /** t_flight: reserved per port and priority, bytes. */
  headroom: number;
  /** Priorities that headroom is reserved for, on each port. */
  priorities: number;
  beta: number;
  mode: "dynamic" | "static";
  /** t_PFC of static mode, bytes per ingress port and priority. Filled in also for dynamic mode, and unused there. */
  threshold: number;
  /** XON is sent this far below the threshold, bytes. */
  xon_offset: number;
  lossy_alpha: number;
}

export interface EcnConfig {
  enabled: boolean;
  kmin: number;
  kmax: number;
  pmax: number;
  mark: "enqueue" | "dequeue";
  queue: "instantaneous" | "averaged";
  /** EWMA weight of a new sample; averaged queues only. */
  weight: number;
  priorities: number[];
}

export type CnDefence = "disabled" | "interior" | "interior-ready" | "edge";

/** Congestion points of QCN and the defence of their domain; names are those of the MIB, see device-schema.ts. */
export interface SwitchQcnConfig {
  enabled: boolean;
  priorities: number[];
  /** Q_eq, bytes. */
  cpQSp: number;
  /** log2 of w. */
  cpWeight: number;
  /** Bytes. */
  cpSampleBase: number;
  cpMinHeaderOctets: number;
  cnm_priority: number;
  defence: CnDefence | "auto";
  alternate_priority: number;
  /** By the name of the neighbour; of a daemon, by that of the port. */
  ports: Record<string, { defence?: CnDefence | "auto" | undefined; alternate_priority?: number | undefined }>;
}

export interface SwitchConfig {
  name: string;
  buffer: BufferConfig;
  ecn: EcnConfig;
  qcn: SwitchQcnConfig;
  pfc: { enabled: boolean; priorities: number[] };
  /** `weights` has one DWRR weight per priority 0..7; those of strict priorities are not used. */
  scheduler: { strict: number[]; weights: number[] };
  forwarding: "static" | "learning";
  /** Of learned addresses, ns. */
  ageing: number;
  trust: "dscp" | "pcp" | "port-default";
  /** Priority per DSCP, 64 entries. */
  dscp_map: number[];
  /** Priority of frames that carry no mark which `trust` believes. */
  default_priority: number;
}

/** What a device makes of priorities. */
export type TrafficClasses = Pick<SwitchConfig, "pfc" | "scheduler" | "trust" | "dscp_map" | "default_priority">;

export interface HostQcnConfig {
  /** CNPVs. */
  priorities: number[];
  flows: "queue-pair" | "application" | "destination-mac" | "five-tuple";
  reaction_points: number;
  cn_tag: boolean;
  limiter: "pacer" | "token-bucket";
}

export interface HostConfig {
  name: string;
  path_mtu: number;
  line_rate_start: boolean;
  /** bit/s, start rate of a QP when another one of its host is active. */
  initial_rate: number;
  /** Most bytes that a late NIC makes up for at once. */
  burst: number;
  cnp: { dscp: number; priority: number };
  qcn: HostQcnConfig;
  /** Receive buffer that drains at `rate` bit/s (0 = at once); PFC goes out at `xoff`, and again at `xon`. */
  receive_buffer: { size: number; rate: number; xoff: number; xon: number };
}

/** Pins frames of one source host to one destination host; `via` are all switches from first to last. */
export interface PinnedRoute {
  from: string;
  to: string;
  via: string[];
}

/** How the queue pairs of all flows carry their messages. */
export interface Transport {
  /** `stream`: nothing is acknowledged or sent again, as in labs; `rc`: a reliable connection. */
  type: "stream" | "rc";
  recovery: "go-back-n" | "selective-repeat";
  /** Local ACK timeout: 4.096 us x 2^timeout; 0: none. */
  timeout: number;
  retry_count: number;
  /** Packets in flight at most. */
  window: number;
}

/** One queue pair's traffic. */
export interface Flow {
  /** Unique in the scenario. */
  id: string;
  /** Id of its traffic entry: the flow's id without "/host" and "#number". */
  group: string;
  from: string;
  to: string;
  priority: number;
  dscp: number;
  /** ns from the start of traffic. */
  start: number;
  stop: number;
  operation: "write" | "send";
  /** Bytes of one message. */
  message: number;
  /** Cap on the offered load, bit/s; undefined: as fast as the NIC allows. */
  rate: number | undefined;
  /** Total bytes, after which the flow is done; undefined: until `stop`. */
  bytes: number | undefined;
  /** Bytes of each message, where they differ: the next is posted when the one before is complete. Transport `rc` only. */
  sizes: readonly number[] | undefined;
  /** Messages posted at a time; transport `rc` only. */
  outstanding: number;
  /** `own`: its frames carry a source address that no other flow has. */
  source_mac: "host" | "own";
}

/** A sampled switch queue; `port` is the name of the device at the other end. */
export interface QueueProbe {
  switch: string;
  port: string;
  priority: number;
}

/** The service rate of one egress queue from a time on. */
export interface RateChange {
  /** ns from the start of traffic. */
  at: number;
  switch: string;
  /** Name of the device at the other end. */
  port: string;
  priority: number;
  /** bit/s; 0: that of the link. */
  rate: number;
}

export interface Scenario {
  name: string;
  description: string;
  scale: number | "auto";
  seed: number;
  duration: number;
  warmup: number;
  /** In the order of the file: the order of hosts fixes their addresses. */
  hosts: HostConfig[];
  switches: SwitchConfig[];
  links: Link[];
  routes: PinnedRoute[];
  /** Seed of the hash that picks among equal paths. */
  ecmp_seed: number;
  congestion: Congestion;
  transport: Transport;
  flows: Flow[];
  /** In order of time. */
  changes: RateChange[];
  /** `flows`: how many of the flows, in order, have series. */
  probes: { interval: number; queues: QueueProbe[]; flows: number };
  fidelity: { lateness: number };
}
