// The validated configuration of a switch or a NIC of its own. Units as in types.ts: bit/s, bytes, ns. MAC addresses are 48-bit numbers.
import type { BackendWish } from "../../host/backend.js";
import type { InterfaceFacts } from "../../host/interface.js";
import type { Polling } from "../../native/types.js";
import type { Congestion, Flow, HostConfig, Impairment, SwitchConfig, TrafficClasses } from "../../scenario/types.js";

export interface WorkerPlace {
  /** -1: any. */
  cpu: number;
  polling: Polling;
}

export interface DaemonPort extends InterfaceFacts {
  name: string;
  interface: string;
  /** Path; undefined: the daemon's own. */
  namespace: string | undefined;
  /** 0: unlimited. */
  rate: number;
  backend: BackendWish;
}

export interface MetricsConfig {
  address: string;
  port: number;
  /** Of queue pairs too: of all, of so many, or of none. */
  per_qp: boolean | number;
  node_infiniband: boolean;
}

export interface DashboardConfig {
  address: string;
  port: number;
  /** Undefined: made where one is needed. */
  token?: string | undefined;
}

interface CommonConfig {
  name: string;
  /** Undefined: switched off. */
  metrics: MetricsConfig | undefined;
  /** Undefined: none. */
  dashboard: DashboardConfig | undefined;
  /** Path of the control socket; undefined: the default for `name`. */
  control: string | undefined;
}

/** What storm control tells apart, in the order of the native core. */
export const kStormKinds = ["broadcast", "unknown_unicast", "multicast"] as const;
export type StormKind = (typeof kStormKinds)[number];

/** A port of a switch daemon; limits have 8 entries, 0: none. */
export interface SwitchDaemonPort extends DaemonPort {
  /** bit/s, of each egress queue. */
  priorityRates: number[];
  /** Bytes, of each egress queue. */
  queueLimits: number[];
  /** Addresses that are learned there. */
  maxLearnedAddresses: number;
  /** Most that is flooded of what comes in, bit/s; 0: no limit. */
  stormControl: Record<StormKind, number>;
  /** Of what arrives; undefined: none. */
  impairment: Impairment | undefined;
  /** Position in `workers`. */
  worker: number;
}

export interface SwitchDaemonConfig extends CommonConfig {
  kind: "switch";
  ports: SwitchDaemonPort[];
  /** At least one. */
  workers: WorkerPlace[];
  switch: SwitchConfig;
  static_fdb: { mac: number; port: string }[];
}

export interface Peer {
  name: string;
  address: string;
  /** Undefined: asked for by ARP. */
  mac?: number | undefined;
}

export interface QueuePairConfig extends Pick<Flow, "priority" | "dscp"> {
  name: string;
  peer: Peer;
  qpn: number;
  remote_qpn: number;
  /** Undefined: only receives. */
  send: Pick<Flow, "operation" | "message" | "rate" | "bytes" | "start"> | undefined;
}

export interface NicDaemonConfig extends CommonConfig {
  kind: "nic";
  /** Its `mac` is the NIC's, which may differ from the interface's. */
  port: DaemonPort;
  worker: WorkerPlace;
  address: string;
  host: HostConfig;
  classes: TrafficClasses;
  congestion: Congestion;
  queue_pairs: QueuePairConfig[];
}

export type DeviceConfig = SwitchDaemonConfig | NicDaemonConfig;
