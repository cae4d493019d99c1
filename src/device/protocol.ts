/**
 * What daemons and labs tell over their control sockets, by the name of the request. Bytes, ns and bit/s; of labs these are meant
 * ones. A lab, as a daemon with several NICs, has one socket for all its devices, and a request names one: `{"request": "counters", "device": "h1"}`.
 */

import type { QcnParameters, QcnVariant } from "../congestion/qcn.js";
import type { ReceiveBackend } from "../host/backend.js";
import type { MacControl, PfcState, PortProbe } from "../host/port_probe.js";
import type { Counter } from "../native/counters.js";
import type { NativeBackend, QueuePairState, SwitchState } from "../native/types.js";
import type { Usual } from "../scenario/port_profiles.js";
import type { SwitchConfig, TrafficClasses } from "../scenario/types.js";
import type { DcbTlvs, Ets } from "../wire/lldp/dcb_tlv.js";
import type { CnState, DcbxState, Mismatch } from "../wire/lldp/dcbx.js";
import type { CaptureStart } from "./capture/request.js";
import type { StormKind } from "./file/types.js";
import type { PortVlans } from "./file/vlans.js";

export interface Status {
  kind: "switch" | "nic";
  name: string;
  version: string;
  pid: number;
  /** Since the start; of a lab, meant seconds since traffic began. */
  uptime_s: number;
  /** Wall time = time told here * scale; 1 for daemons. */
  scale: number;
  control: string;
  metrics: string | null;
  /** What a browser opens, with the token that changes take; without one that the file has. */
  dashboard: string | null;
  /** Of a daemon with several NICs: their names; all other requests name one, `"device": "roce_0"`. */
  devices?: string[];
}

/** Since `weir clear counters`, or the start. */
export type CounterValue = Counter;

export interface PortStatus {
  name: string;
  interface: string;
  namespace: string | null;
  mac: string;
  mtu: number;
  /** bit/s; 0: unlimited. */
  rate: number;
  up: boolean;
  /** The host takes no frames to send, or next to none: they wait in the queues. */
  tx_stalled: boolean;
  /** Frames have come that are not taken from the host. It should not happen. */
  rx_stuck: boolean;
  /** The interface does not take frames by `transmit: live`: they leave by af_xdp. */
  tx_falls_back: boolean;
  /** Times the interface came up again, or another came in its place. */
  recoveries: number;
  /** The interface's own MTU now; null: unknown. `mtu` is what the port keeps to. */
  interface_mtu: number | null;
  mtu_changes: number;
  receive: ReceiveBackend;
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
  pfc_watchdog: SwitchConfig["pfc_watchdog"];
  buffer: SwitchState["buffer"];
  /** How thresholds of its priority groups are found; `priorities`: P. */
  thresholds: Pick<SwitchConfig["buffer"], "mode" | "priorities">;
  ports: (SwitchState["ports"][number] & PortLimits & PortSettings)[];
}

/** What holds at a port, by its profile or as at all. */
interface PortSettings {
  name: string;
  /** Null: it has none. */
  profile: string | null;
  settings: Usual;
}

/** What is kept in bounds at a port, besides its queues; 0: no limit, or no VLAN. */
interface PortLimits {
  max_learned_addresses: number;
  /** bit/s of the link. */
  storm_control: Record<StormKind, number>;
  vlans: PortVlans;
}

/** What a device makes of priorities, at all of its ports. */
export interface QosReport extends Pick<TrafficClasses, "scheduler" | "trust" | "dscp_map" | "default_priority"> {
  /** Those that PFC keeps without loss; none where it is off. */
  pfc_priorities: number[];
  /** Bytes that are kept for each priority after its pause, at each port; of a NIC its receive buffer, at priority 0. */
  headroom: number[];
  /** Of lossless priorities at ports whose profile has another, by their names. */
  port_headroom: Readonly<Record<string, number>>;
}

export interface FdbEntry {
  mac: string;
  vlan: number;
  ports: string[];
  kind: "learned" | "static";
  expires_in_s: number | null;
}

/** A route of a switch that routes. */
export interface RouteReport {
  /** "10.0.0.0/24" */
  to: string;
  /** `kernel`: of the namespace that is the router's control plane. */
  kind: "connected" | "static" | "kernel";
  /** What becomes of packets: forwarded by `ways`, taken by the kernel, refused, or dropped. */
  action: "forward" | "own" | "unreachable" | "blackhole";
  /** `gateway` null: on the link itself. None where they are not forwarded. */
  ways: { gateway: string | null; interface: string; weight: number }[];
}

export interface NeighborReport {
  address: string;
  interface: string;
  /** Null: not known, as the port. */
  mac: string | null;
  port: string | null;
  state: "static" | "reachable" | "incomplete";
  /** Packets that wait for it. */
  waiting: number;
}

export interface QueuePairReport
  extends Omit<QueuePairState, "alpha" | "window" | "stage" | "state" | "connecting" | "peer" | "program"> {
  /** Of one that a program has: its command and its number. */
  name: string;
  /** unresolved: its peer has not answered ARP yet; connecting: nor acknowledged a reliable stream's connection. */
  state: QueuePairState["state"] | "unresolved" | "connecting";
  peer: string;
  /** Null: QCN has none. */
  alpha: number | null;
  /** Packets; null: it has none, or has not sent. */
  window: number | null;
  /** Of the last increase; null where the algorithm has none. */
  stage: QueuePairState["stage"] | null;
  /** Null: it is the NIC's own. */
  program: ProgramIdentity | null;
}

/** What reaction points of a CNPV run on: times in ns, rates in bit/s. */
export interface ReactionPointReport extends QcnParameters {
  priority: number;
  variant: QcnVariant;
  /** How many there may be: rpppMaxRps. */
  most: number;
}

/** Who uses a NIC, as the kernel told when it connected. */
export interface ProgramIdentity {
  /** 0: of another pid namespace. */
  pid: number;
  uid: number;
  /** Empty: not known. */
  command: string;
}

/** A program that uses a NIC: counts since it began, of its queue pairs that are gone too. */
export interface ProgramReport extends ProgramIdentity {
  queue_pairs: number;
  tx_packets: number;
  tx_bytes: number;
  rx_packets: number;
  rx_bytes: number;
  /** Packets that it does not take; packets that its queue pairs may not send. */
  drop_program_busy: number;
  drop_program_packet: number;
}

/** LLDP (IEEE 802.1AB): neighbours of each port; counts since the start, named as in its clause 9.2.6. */
export interface LldpReport {
  enabled: boolean;
  /** What neighbours know the device by. */
  chassis: string | null;
  tx_interval_s: number;
  tx_hold: number;
  ports: LldpPortReport[];
}

export interface LldpPortReport {
  port: string;
  neighbours: {
    chassis: string;
    port: string;
    mac: string;
    system_name: string | null;
    system_description: string | null;
    port_description: string | null;
    capabilities: string[];
    management_addresses: string[];
    ttl_s: number;
    expires_in_s: number;
  }[];
  frames_out: number;
  frames_out_refused: number;
  frames_in: number;
  /** Left alone: more than 32 in a second. */
  frames_limited: number;
  frames_discarded: number;
  frames_in_errors: number;
  tlvs_discarded: number;
  tlvs_unrecognized: number;
  ageouts: number;
  too_many_neighbours: number;
}

/** DCBX (IEEE 802.1Q, clause 38.4) of each port; none where it is off. */
export interface DcbxReport {
  enabled: boolean;
  ports: DcbxPortReport[];
}

export interface DcbxPortReport {
  port: string;
  willing: boolean;
  /** Neighbours that speak DCBX; of more than one none counts. */
  peers: number;
  local: { pfc: number[]; ets: Ets; roce_priority: number | null };
  /** What it tells. */
  peer: (DcbTlvs & { neighbour: string; its_port: string }) | null;
  /** Of its applications. */
  peer_roce_priority: number | null;
  /** What is used, and whose it is. */
  operational: Pick<DcbxState, "pfc" | "ets">;
  /** What the defence `auto` is, by CNPV. */
  congestion: Record<string, CnState>;
  mismatches: Mismatch[];
}

/** Of a lab as a whole. */
export interface LabReport {
  name: string;
  version: string;
  pid: number;
  scale: number;
  elapsed_ns: number;
  /** null: it stays until it is told to end. */
  duration_ns: number | null;
  devices: { name: string; kind: Status["kind"] }[];
}

/** Of a lab that stays, `weir lab up`. */
export interface StandingReport {
  name: string;
  version: string;
  pid: number;
  /** Of the scenario, as it was given; "" where it was read from a pipe. */
  file: string;
  /** Wall time = meant time * scale, and meant rate = rate * scale. */
  scale: number;
  uptime_s: number;
  /** With what it has of files. */
  folder: string;
  /** Whoever enters a host enters the user namespace of its process 1 first. */
  user_namespace: boolean;
  switches: string[];
  hosts: StandingHost[];
  /** What the machine did to the lab: how long a thread of it did not run at most, in the last 10 to 20 s, and frames that were lost to that. */
  fidelity: { longest_gap_us: number; lost_frames: number };
}

export interface StandingHost {
  name: string;
  /** IPv4, IPv6. */
  addresses: string[];
  mac: string;
  interface: string;
  mtu: number;
  /** Where it is linked to. */
  switch: string;
  /** Of its link, bit/s, as the scenario means it. */
  rate: number;
  /** Its process 1. */
  pid: number;
  /** Processes there, as seen from outside. */
  processes: { pid: number; command: string }[];
}

/** Answer of each request to a device. */
export interface ControlRequests {
  status: Status;
  /** `at_ns`: the time that they are of, by a clock that starts anywhere. */
  counters: { since: string; at_ns: number; counters: CounterValue[] };
  ports: PortStatus[];
  switch: SwitchReport;
  fdb: FdbEntry[];
  /** Empty: it does not route, as the next. */
  routes: RouteReport[];
  neighbors: NeighborReport[];
  queue_pairs: QueuePairReport[];
  /** Of a NIC; empty: it does not run QCN. */
  reaction_points: ReactionPointReport[];
  programs: ProgramReport[];
  qos: QosReport;
  lldp: LldpReport;
  dcbx: DcbxReport;
  clear: { cleared: string };
}

/** Answer of each request to a lab, without a device. */
export interface LabRequests {
  lab: LabReport;
  /** Of one that stays; others refuse. */
  standing: StandingReport;
  /** Such a one ends: its programs get some time for that. The socket is gone when it has ended. */
  down: { pid: number };
}

/** Answer of each request that a stream follows. */
export interface StreamRequests {
  capture: CaptureStart;
}
