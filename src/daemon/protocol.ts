/** What daemons tell over their control socket, by the name of the request. Bytes, ns and bit/s. */
import type { NativeBackend } from "../native/device_types.js";
import type { QueuePairState, SwitchState } from "../native/types.js";
import type { MacControl, PfcState, PortProbe } from "./port_probe.js";

export interface Status {
  kind: "switch" | "nic";
  name: string;
  version: string;
  pid: number;
  uptime_s: number;
  control: string;
  metrics: string | null;
}

export interface CounterValue {
  name: string;
  unit: string;
  labels: Record<string, string>;
  /** Since `weir clear counters`, or the start. */
  value: number;
}

export interface PortStatus {
  name: string;
  interface: string;
  namespace: string | null;
  mac: string;
  mtu: number;
  /** bit/s; 0: unlimited. */
  rate: number;
  up: boolean;
  /** Times the interface came up again, or another came in its place. */
  recoveries: number;
  /** The interface's own MTU now; null: unknown. `mtu` is what the port keeps to. */
  interface_mtu: number | null;
  mtu_changes: number;
  receive: NativeBackend;
  transmit: NativeBackend;
  /** Of af_xdp reception; null where something else receives. */
  xdp_mode: "native" | "generic" | null;
  /** Why these. */
  backend_reason: string;
  pfc: PfcState;
  mac_control: MacControl;
  /** The interface as it was when it was last opened; null: it could not be looked at. */
  probe: PortProbe | null;
}

export interface SwitchReport {
  name: string;
  pfc_priorities: number[];
  ecn: { enabled: boolean; kmin: number; kmax: number; pmax: number; priorities: number[] };
  /** Congestion points; priorities: CNPVs. */
  qcn: { enabled: boolean; priorities: number[]; cpQSp: number; cpWeight: number; cpSampleBase: number };
  buffer: SwitchState["buffer"];
  ports: (SwitchState["ports"][number] & { name: string })[];
}

export interface FdbEntry {
  mac: string;
  vlan: number;
  ports: string[];
  kind: "learned" | "static";
  expires_in_s: number | null;
}

export interface QueuePairReport extends Omit<QueuePairState, "alpha"> {
  peer: string;
  priority: number;
  /** Null: QCN has none. */
  alpha: number | null;
}

/** Answer of each request. */
export interface ControlRequests {
  status: Status;
  counters: { since: string; counters: CounterValue[] };
  ports: PortStatus[];
  switch: SwitchReport;
  fdb: FdbEntry[];
  queue_pairs: QueuePairReport[];
  clear: { cleared: string };
}

/** Blocks of a pcapng file follow, of packets and capture/counts.ts. */
export interface CaptureStart {
  kind: Status["kind"];
  name: string;
  version: string;
  /** Most bytes of a frame. */
  snaplen: number;
  /** Captured ones, in the order of the interfaces' numbers. `speed`: of the link as it runs, bit/s; 0: unlimited. */
  ports: { name: string; description: string; speed: number }[];
}

/** Answer of each request that a stream follows. */
export interface StreamRequests {
  capture: CaptureStart;
}
