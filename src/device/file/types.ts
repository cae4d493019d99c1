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

/** `cpu` -1: any. */
export type WorkerPlace = With<Full<typeof workerSchema>, { cpu: number }>;

/** `rate` 0: unlimited. */
export interface DaemonPort extends InterfaceFacts, Pick<WrittenPort, "interface" | "namespace" | "rate"> {
  name: string;
  backend: BackendWish;
}

export type MetricsConfig = Full<typeof kListening.nic.metrics>;
export type DashboardConfig = Full<typeof kListening.nic.dashboard>;

/** `tx_interval` in ns. */
export type LldpConfig = Full<typeof lldpSchema>;

export interface DcbxConfig {
  willing: boolean;
  /** Undefined: nothing is said of RoCEv2. */
  roce_priority: number | undefined;
  /** By name, what differs there. */
  ports: Record<string, { willing?: boolean | undefined }>;
}

interface CommonConfig {
  name: string;
  /** Undefined: switched off. */
  metrics: MetricsConfig | undefined;
  /** Undefined: none. */
  dashboard: DashboardConfig | undefined;
  /** Path of the control socket; undefined: the default for `name`. */
  control: string | undefined;
  /** Undefined: off. */
  lldp: LldpConfig | undefined;
  /** With `lldp` only; undefined: off. */
  dcbx: DcbxConfig | undefined;
}

/** What storm control tells apart, in the order of the native core. */
export const kStormKinds = ["broadcast", "unknown_unicast", "multicast"] as const;
export type StormKind = (typeof kStormKinds)[number];

/** A port of a switch daemon; limits have 8 entries, 0: none. */
export interface SwitchDaemonPort
  extends DaemonPort,
    Pick<WrittenPort, "worker" | "delay" | "max_learned_addresses" | "storm_control"> {
  /** bit/s, of each egress queue. */
  priority_rates: number[];
  /** Bytes, of each egress queue. */
  queue_limits: number[];
  /** Undefined: not said. */
  vlans: PortVlans | undefined;
  /** Of what arrives; undefined: none. */
  impairment: Impairment | undefined;
}

/** Times in ns, rates in bit/s. */
export type RateChange = With<Full<typeof rateChangeSchema>, { rate: number }>;

export interface SwitchDaemonConfig extends CommonConfig {
  kind: "switch";
  ports: SwitchDaemonPort[];
  /** At least one. */
  workers: WorkerPlace[];
  switch: SwitchConfig;
  static_fdb: Full<typeof switchDaemonSchema>["static_fdb"];
  /** In the order of time; `rate` 0: unlimited. */
  changes: RateChange[];
  /** Its ports write INT. */
  telemetry: boolean;
  /** Undefined: it bridges only. */
  router: RouterConfig | undefined;
}

type WrittenNic = Full<typeof nicDaemonSchema>;

/** `mac` undefined: asked for by ARP. */
export type Peer = WrittenNic["peers"][number];

export interface QueuePairConfig {
  name: string;
  peer: Peer;
  qpn: number;
  remote_qpn: number;
  priority: number;
  dscp: number;
  /** Undefined: only receives. */
  send: Full<typeof sendSchema> | undefined;
}

export interface NicDaemonConfig extends CommonConfig {
  kind: "nic";
  /** Its `mac` is the NIC's, which may differ from the interface's. */
  port: DaemonPort;
  worker: WorkerPlace;
  /** The first of `addresses`. */
  address: string;
  /** One, or one of each IP version; the table of GIDs has them in this order. */
  addresses: string[];
  /** At most one of each IP version; `prefix`: bits of the NIC's link. */
  gateways: { address: string; prefix: number }[];
  /** Undefined: untagged. */
  vlan: number | undefined;
  host: HostConfig;
  classes: TrafficClasses;
  congestion: Congestion;
  transport: Transport;
  queue_pairs: QueuePairConfig[];
  /** Undefined: no program may use it. */
  programs: Full<typeof programsSchema> | undefined;
}

export type DeviceConfig = SwitchDaemonConfig | NicDaemonConfig;
