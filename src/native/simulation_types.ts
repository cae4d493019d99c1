/** The native simulation: everything that crosses the boundary. Virtual ns from 0 and meant bit/s; no scale. */
import type { NativeNic, NativeSwitch, NativeSwitchPort } from "./device_types.js";
import type { NativeHistogram } from "./histogram.js";
import type { CounterDescription, QueuePairState } from "./types.js";

export interface NativeSimulationSwitch extends Omit<NativeSwitch, "ports" | "routes" | "pins"> {
  ports: Pick<NativeSwitchPort, "rate" | "mtu" | "mac" | "priority_rates" | "queue_limits" | "cn">[];
  /** Next-hop groups, each of port numbers. */
  groups: number[][];
  /** For each host in order the position of its group; 0xffff: not reachable. */
  group_of_host: Uint16Array;
  /** Hosts by number. */
  pins: { from: number; to: number; port: number }[];
}

export interface NativeSimulationNic
  extends Omit<NativeNic, "port" | "arrears" | "first_qpn" | "queue_pairs" | "verbs"> {
  /** Of its link, bit/s. */
  rate: number;
  /** IPv4, 4 bytes. */
  ip: Uint8Array;
}

/** A full-duplex cable; devices are numbered switches first, then NICs (port 0). */
export interface NativeSimulationLink {
  from: { device: number; port: number };
  to: { device: number; port: number };
  /** One-way, ns. */
  delay: number;
  /** Probabilities per frame and direction; jitter and reorder_delay in ns. Keyed by the link's position. */
  impairment?: {
    loss: number;
    corrupt: number;
    duplicate: number;
    reorder: number;
    jitter: number;
    reorder_delay: number;
  };
}

/** One entry per flow in every column. A flow is one queue pair's traffic in one direction. */
export interface NativeSimulationFlows {
  /** Hosts by number. */
  from: Uint32Array;
  to: Uint32Array;
  priority: Uint8Array;
  dscp: Uint8Array;
  udp_source_port: Uint16Array;
  /** ns; nothing is sent from `stop` on. */
  start: Float64Array;
  stop: Float64Array;
  /** 1: RDMA WRITE; 0: SEND. */
  write: Uint8Array;
  path_mtu: Uint16Array;
  /** Bytes of one message, up to 2^31. */
  message: Float64Array;
  /** Bytes in all; 0: no end. The last message is cut to fit. */
  total: Float64Array;
  /** Messages of their own sizes instead: `sizes_count` > 0 of them in `sizes` from `sizes_first` on, sent one after another. */
  sizes_first: Uint32Array;
  sizes_count: Uint32Array;
  /** Bytes. */
  sizes: Float64Array;
  /** bit/s; 0: line rate. */
  rate_cap: Float64Array;
  /** 1: reliable connection; 0: unacknowledged stream. */
  reliable: Uint8Array;
  /** Messages posted at a time (reliable only); 1: the next follows the completion of the one before. */
  outstanding: Uint16Array;
  /** Source MAC address of what its sender sends, 0: its NIC's; absent: all NICs'. */
  source_mac?: Float64Array;
  /** As in NativeQueuePair, of its sender; absent: all 0. */
  application?: Uint32Array;
}

/** Of reliable flows; see native/transport/queue_attributes.h. */
export interface NativeSimulationTransport {
  recovery: "go-back-n" | "selective-repeat";
  /** Local ACK timeout: 4.096 us x 2^timeout; 0: none. */
  timeout: number;
  retry_count: number;
  /** Packets in flight: 4..65536 with go-back-n, up to 256 with selective-repeat. */
  window: number;
}

export interface SimulationConfig {
  seed: number;
  /** Times at which to sample: every so many ns; 0: no samples. */
  sample_interval: number;
  /** ns at which queue distributions start afresh. */
  reset_after: number;
  switches: NativeSimulationSwitch[];
  nics: NativeSimulationNic[];
  links: NativeSimulationLink[];
  flows: NativeSimulationFlows;
  transport: NativeSimulationTransport;
  /** Flows whose transmit and receive records are sampled. */
  sampled_flows: Uint32Array;
  /** Keep the distribution of every queue that holds anything, and not only of those that are sampled. */
  all_distributions: boolean;
  /** Egress queues that are sampled, and whose distribution is kept. */
  sampled_queues: { switch: number; port: number; priority: number }[];
  /** Frames that leave these ports are traced. */
  taps: { device: number; port: number }[];
}

export interface SimulationProgress {
  /** Virtual ns. */
  now: number;
  events: number;
  /** Frames put on a link, PFC frames, CNPs and acknowledgements included. */
  hops: number;
  /** Flows that have begun, and that have delivered everything. */
  flows_started: number;
  flows_ended: number;
  /** Packet descriptors in use, and made so far. */
  packets: number;
  packets_made: number;
}

/** Words of one completed message in drainFinished(): flow, number of the message, bytes, start ns, end ns. */
export const kFinishedWords = 5;

/** Names of the columns of the counter tables, in order. */
export interface SimulationManifest {
  switch_port: CounterDescription[];
  switch_priority: CounterDescription[];
  nic: CounterDescription[];
  nic_priority: CounterDescription[];
  transport: CounterDescription[];
  queue_pair: CounterDescription[];
  link: CounterDescription[];
}

/**
 * Row-major tables with the columns of the manifest. Rows: switch ports in the order of switches and ports (times 8 priorities
 * where by priority), NICs (times 8), NICs, flows as their sender's queue pair sees them, flows as their receiver's does, links
 * (two rows each: sent by `from`, sent by `to`).
 */
export interface SimulationCounters {
  switch_ports: Float64Array;
  switch_priorities: Float64Array;
  nics: Float64Array;
  nic_priorities: Float64Array;
  transports: Float64Array;
  senders: Float64Array;
  receivers: Float64Array;
  links: Float64Array;
}

export interface NativeSimulation {
  /**
   * Goes on until virtual time `until` ns, or about `events` events, whichever is first; true when `until` is reached. How a run
   * is cut into calls does not change it.
   */
  run(until: number, events: number): boolean;
  progress(): SimulationProgress;
  counters(): SimulationCounters;
  /**
   * Fills `target` with whole records (kRecordWords each, see RecordKind); returns how many. `queue` records: device is the
   * switch, index is port * 8 + priority. `transmit` and `receive`: index is the flow, device 0. `pause`: as `queue`, only when
   * PFC frames were sent since the last sample. Nothing is ever lost: drain at least every million events.
   */
  drainRecords(target: Float64Array): number;
  /** Fills `target` with completed messages (kFinishedWords each); returns how many. */
  drainFinished(target: Float64Array): number;
  /** Frames since the last call (src/capture/frames.ts): whole headers, payload left out; times of last bits. */
  drainTrace(): Uint8Array;
  /** Data packets in queues and on links, by flow. */
  underWay(): Uint32Array;
  /** Of queues that have held anything from reset_after on, as far as they are kept: by switch, port and priority. */
  queueDistributions(): (NativeHistogram & { switch: number; port: number; priority: number })[];
  /** Of flows by number. */
  senderState(flow: number): Omit<QueuePairState, "name">;
  /**
   * New parameters of a switch from progress().now on; `groups`, `group_of_host` and `pins` are not looked at. Queues stay; new
   * limits to rates hold at once, also for frames that wait. Only after a run() that returned true. Throws INVALID_STATE otherwise,
   * INVALID_CONFIG when ports, their addresses or MTU, the size of the buffer or learning differ, or a link would become faster
   * than the schedule of this simulation allows, and RangeError.
   */
  reconfigureSwitch(index: number, config: NativeSimulationSwitch): void;
  /** Frees the memory. Idempotent. */
  close(): void;
}

export interface SimulationAddon {
  /** Throws INVALID_CONFIG. */
  Simulation: new (
    config: SimulationConfig,
  ) => NativeSimulation;
  simulationManifest(): SimulationManifest;
}
