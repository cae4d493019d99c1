// The validated configuration of a switch or a NIC of its own. Units as in scenario/types.ts: bit/s, bytes, ns. MAC addresses are
// 48-bit numbers.
import type { Full, With } from "../../base/fields.js";
import type { BackendWish } from "../../host/backend.js";
import type { InterfaceFacts } from "../../host/interface.js";
import type {
  Congestion,
  HostConfig,
  Impairment,
  SwitchConfig,
  TrafficClasses,
  Transport,
} from "../../scenario/types.js";
import type { FaultRequest } from "../fault_request.js";
import type { RouterConfig } from "./router.js";
import type {
  kListening,
  lldpSchema,
  nicDaemonSchema,
  portSchema,
  programsSchema,
  rateChangeSchema,
  sendSchema,
  switchDaemonSchema,
  workerSchema,
} from "./schema.js";
import type { PortVlans } from "./vlans.js";

type WrittenPort = Full<typeof portSchema>;

/** Place of a worker; `cpu` -1: any. */
export type WorkerPlace = With<Full<typeof workerSchema>, { cpu: number }>;

/** Port of a daemon; `rate` 0: unlimited. */
export interface DaemonPort extends InterfaceFacts, Pick<WrittenPort, "interface" | "namespace" | "rate"> {
  name: string;
  backend: BackendWish;
}

export type MetricsConfig = Full<typeof kListening.nic.metrics>;
export type DashboardConfig = Full<typeof kListening.nic.dashboard>;

/** LLDP in full; `tx_interval` in ns. */
export type LldpConfig = Full<typeof lldpSchema>;

export interface DcbxConfig {
  willing: boolean;
  /** Priority of RoCEv2; undefined: DCBX says nothing of it. */
  roce_priority: number | undefined;
  /** Settings of single ports, by name. */
  ports: Record<string, { willing?: boolean | undefined }>;
}

interface CommonConfig {
  name: string;
  /** Metrics; undefined: switched off. */
  metrics: MetricsConfig | undefined;
  /** Dashboard; undefined: none. */
  dashboard: DashboardConfig | undefined;
  /** Path of the control socket; undefined: the default for `name`. */
  control: string | undefined;
  /** LLDP; undefined: off. */
  lldp: LldpConfig | undefined;
  /** DCBX, with `lldp` only; undefined: off. */
  dcbx: DcbxConfig | undefined;
  faults: FaultRequest[];
}

/** Kinds of frames that storm control limits, in the order of the native core. */
export const kStormKinds = ["broadcast", "unknown_unicast", "multicast"] as const;
export type StormKind = (typeof kStormKinds)[number];

/** A port of a switch daemon; limits have 8 entries, 0: none. */
export interface SwitchDaemonPort
  extends DaemonPort,
    Pick<WrittenPort, "worker" | "delay" | "max_learned_addresses" | "storm_control"> {
  /** Rate of each egress queue, bit/s. */
  priority_rates: number[];
  /** Limit of each egress queue, bytes. */
  queue_limits: number[];
  /** VLANs; undefined: not set. */
  vlans: PortVlans | undefined;
  /** Faults of arriving frames; undefined: none. */
  impairment: Impairment | undefined;
}

/** A change of rates. Times in ns, rates in bit/s. */
export type RateChange = With<Full<typeof rateChangeSchema>, { rate: number }>;

export interface SwitchDaemonConfig extends CommonConfig {
  kind: "switch";
  ports: SwitchDaemonPort[];
  /** Places of the workers, at least one. */
  workers: WorkerPlace[];
  switch: SwitchConfig;
  static_fdb: Full<typeof switchDaemonSchema>["static_fdb"];
  /** Changes in the order of time; `rate` 0: unlimited. */
  changes: RateChange[];
  /** Whether its ports write INT. */
  telemetry: boolean;
  /** Router; undefined: the switch only bridges. */
  router: RouterConfig | undefined;
}

type WrittenNic = Full<typeof nicDaemonSchema>;

/** A peer; `mac` undefined: found by ARP. */
export type Peer = WrittenNic["peers"][number];

export interface QueuePairConfig {
  name: string;
  peer: Peer;
  qpn: number;
  remote_qpn: number;
  priority: number;
  dscp: number;
  /** Traffic that it sends; undefined: it only receives. */
  send: Full<typeof sendSchema> | undefined;
}

export interface NicDaemonConfig extends CommonConfig {
  kind: "nic";
  /** Port of the NIC. Its `mac` is the NIC's, which may differ from the interface's. */
  port: DaemonPort;
  worker: WorkerPlace;
  /** The first of `addresses`. */
  address: string;
  /** Addresses: one, or one of each IP version; the table of GIDs has them in this order. */
  addresses: string[];
  /** Gateways, at most one of each IP version; `prefix`: bits of the NIC's link. */
  gateways: { address: string; prefix: number }[];
  /** VLAN; undefined: untagged. */
  vlan: number | undefined;
  host: HostConfig;
  classes: TrafficClasses;
  congestion: Congestion;
  transport: Transport;
  queue_pairs: QueuePairConfig[];
  /** Settings for programs; undefined: no program may use the NIC. */
  programs: Full<typeof programsSchema> | undefined;
}

export type DeviceConfig = SwitchDaemonConfig | NicDaemonConfig;
