/**
 * Answers of daemons and labs over their control sockets, by the name of the request. Bytes, ns and bit/s; those of labs are meant
 * ones. A lab, as a daemon with several NICs, has one socket for all its devices, and a request names one: `{"request": "counters", "device": "h1"}`.
 */

import type { QcnParameters, QcnVariant } from "../congestion/qcn.js";
import type { ReceiveBackend } from "../host/backend.js";
import type { MacControl, PfcState, PortProbe } from "../host/port_probe.js";
import type { Counter } from "../native/counters.js";
import type { FaultState, NativeBackend, QueuePairState, SwitchState } from "../native/types.js";
import type { Usual } from "../scenario/port_profiles.js";
import type { TrafficClasses } from "../scenario/types.js";
import type { DcbTlvs, Ets } from "../wire/lldp/dcb_tlv.js";
import type { CnState, DcbxState, Mismatch } from "../wire/lldp/dcbx.js";
import type { SwitchSettings } from "./behaviour.js";
import type { CaptureStart } from "./capture/request.js";
import type { FaultRequest } from "./fault_request.js";
import type { StormKind } from "./file/types.js";
import type { PortVlans } from "./file/vlans.js";

export interface Status {
  kind: "switch" | "nic";
  name: string;
  version: string;
  pid: number;
  /** Seconds since the start; for a lab, meant seconds since traffic began. */
  uptime_s: number;
  /** Wall time = time told here * scale; 1 for daemons. */
  scale: number;
  control: string;
  metrics: string | null;
  /** Address that a browser opens, with the token that changes take; without the token if that is in the file. */
  dashboard: string | null;
  /** Names of the NICs, if a daemon has several; all other requests name one, `"device": "roce_0"`. */
  devices?: string[];
}

/** Count since `weir clear counters`, or the start. */
export type CounterValue = Counter;

export interface PortStatus {
  name: string;
  interface: string;
  namespace: string | null;
  mac: string;
  mtu: number;
  /** Rate, bit/s; 0: unlimited. */
  rate: number;
  up: boolean;
  /** The host takes no frames to send, or next to none: they wait in the queues. */
  tx_stalled: boolean;
  /** Frames have come that are not taken from the host. It should not happen. */
  rx_stuck: boolean;
  /** The interface does not take frames by `transmit: live`: they leave by af_xdp. */
  tx_falls_back: boolean;
  /** Number of times the interface came up again, or another came in its place. */
  recoveries: number;
  /** The interface's own MTU now; null: unknown. The port keeps to `mtu`. */
  interface_mtu: number | null;
  mtu_changes: number;
  receive: ReceiveBackend;
  transmit: NativeBackend;
  /** Mode of af_xdp reception; null where something else receives. */
  xdp_mode: "native" | "generic" | null;
  /** Receive queues of the interface that have sockets of af_xdp; 0 where something else receives, or not open yet. */
  xdp_queues: number;
  /** Whether frames come, and leave, by af_xdp without a copy; null where another backend is used, or not open yet. */
  rx_zero_copy: boolean | null;
  tx_zero_copy: boolean | null;
  /** Reason why these backends are used. */
  backend_reason: string;
  pfc: PfcState;
  mac_control: MacControl;
  /** The interface as it was when it was last opened; null: it could not be looked at. */
  probe: PortProbe | null;
}

/** State of a switch, with the settings that its features tell. */
export interface SwitchReport extends SwitchSettings {
  name: string;
  buffer: SwitchState["buffer"];
  ports: (SwitchState["ports"][number] & PortLimits & PortSettings)[];
}

/** Settings that hold at a port, by its profile or those of the switch. */
interface PortSettings {
  name: string;
  /** Name of its profile; null: it has none. */
  profile: string | null;
  settings: Usual;
}

/** Limits of a port, besides those of its queues; 0: no limit, or no VLAN. */
interface PortLimits {
  max_learned_addresses: number;
  /** Limits in bit/s of the link. */
  storm_control: Record<StormKind, number>;
  vlans: PortVlans;
}

/** Settings by which a device treats priorities, at all of its ports. */
export interface QosReport extends Pick<TrafficClasses, "scheduler" | "trust" | "dscp_map" | "default_priority"> {
  /** Priorities that PFC keeps without loss; none where it is off. */
  pfc_priorities: number[];
  /** Bytes that are kept for each priority after its pause, at each port; a NIC has its receive buffer there, at priority 0. */
  headroom: number[];
  /** Headroom of lossless priorities at ports whose profile has another, by the ports' names. */
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
  /** Prefix, "10.0.0.0/24". */
  to: string;
  /** Origin of the route. `kernel`: the namespace that is the router's control plane. */
  kind: "connected" | "static" | "kernel";
  /** Fate of packets: forwarded by `ways`, taken by the kernel, refused, or dropped. */
  action: "forward" | "own" | "unreachable" | "blackhole";
  /** Ways of the route; `gateway` null: on the link itself. There are none where packets are not forwarded. */
  ways: { gateway: string | null; interface: string; weight: number }[];
}

export interface NeighborReport {
  address: string;
  interface: string;
  /** MAC address and port; null: not known. */
  mac: string | null;
  port: string | null;
  state: "static" | "reachable" | "incomplete";
  /** Packets that wait for the neighbour. */
  waiting: number;
}

export interface QueuePairReport
  extends Omit<QueuePairState, "alpha" | "window" | "stage" | "state" | "connecting" | "peer" | "program"> {
  /** Name; if a program has the queue pair, its command and its number. */
  name: string;
  /** State. unresolved: its peer has not answered ARP yet; connecting: nor acknowledged a reliable stream's connection. */
  state: QueuePairState["state"] | "unresolved" | "connecting";
  peer: string;
  /** Alpha; null: QCN has none. */
  alpha: number | null;
  /** Window, packets; null: it has none, or has not sent. */
  window: number | null;
  /** Stage of the last increase; null where the algorithm has none. */
  stage: QueuePairState["stage"] | null;
  /** Program that has it; null: it is the NIC's own. */
  program: ProgramIdentity | null;
}

/** Parameters of a CNPV's reaction points: times in ns, rates in bit/s. */
export interface ReactionPointReport extends QcnParameters {
  priority: number;
  variant: QcnVariant;
  /** Most reaction points there may be: rpppMaxRps. */
  most: number;
}

/** A program that uses a NIC, as the kernel told when it connected. */
export interface ProgramIdentity {
  /** Process id; 0: it is in another pid namespace. */
  pid: number;
  uid: number;
  /** Command; empty: not known. */
  command: string;
}

/** A program that uses a NIC: counts since it began, with those of its queue pairs that are gone. */
export interface ProgramReport extends ProgramIdentity {
  queue_pairs: number;
  tx_packets: number;
  tx_bytes: number;
  rx_packets: number;
  rx_bytes: number;
  /** Packets that the program does not take; packets that its queue pairs may not send. */
  drop_program_busy: number;
  drop_program_packet: number;
}

/** LLDP (IEEE 802.1AB): neighbours of each port; counts since the start, named as in its clause 9.2.6. */
export interface LldpReport {
  enabled: boolean;
  /** Id by which neighbours know the device. */
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
  /** Frames that were left alone: more than 32 in a second. */
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
  /** Number of neighbours that speak DCBX; if there are several, none counts. */
  peers: number;
  local: { pfc: number[]; ets: Ets; roce_priority: number | null };
  /** Settings that the neighbour tells. */
  peer: (DcbTlvs & { neighbour: string; its_port: string }) | null;
  /** Priority of RoCEv2 among the neighbour's applications. */
  peer_roce_priority: number | null;
  /** Settings in use, and whose they are. */
  operational: Pick<DcbxState, "pfc" | "ets">;
  /** Defence that `auto` means, by CNPV. */
  congestion: Record<string, CnState>;
  mismatches: Mismatch[];
}

/** A fault of a device that goes on, or has ended by itself, with what it has done. */
export interface FaultReport extends Omit<FaultState, "over"> {
  /** Name of the port. */
  port: string;
  kind: FaultRequest["kind"];
  state: "active" | "over";
  /** Fault as it was asked for. */
  fault: FaultRequest;
}

/** A lab as a whole. */
export interface LabReport {
  name: string;
  version: string;
  pid: number;
  scale: number;
  elapsed_ns: number;
  /** Duration; null: the lab stays until it is told to end. */
  duration_ns: number | null;
  devices: { name: string; kind: Status["kind"] }[];
}

/** A lab that stays, `weir lab up`. */
export interface StandingReport {
  name: string;
  version: string;
  pid: number;
  /** Path of the scenario, as it was given; "" where it was read from a pipe. */
  file: string;
  /** Wall time = meant time * scale, and meant rate = rate * scale. */
  scale: number;
  uptime_s: number;
  /** Folder with its files. */
  folder: string;
  /** Whether those who enter a host have to enter the user namespace of its process 1 first. */
  user_namespace: boolean;
  switches: string[];
  hosts: StandingHost[];
  /**
   * Harm that the machine did to the lab: the longest time that a thread of it did not run in the last 10 to 20 s, and frames that were
   * lost to that.
   */
  fidelity: { longest_gap_us: number; lost_frames: number };
}

export interface StandingHost {
  name: string;
  /** Addresses: IPv4, IPv6. */
  addresses: string[];
  mac: string;
  interface: string;
  mtu: number;
  /** Switch at the other end of its link. */
  switch: string;
  /** Rate of its link, bit/s, as the scenario means it. */
  rate: number;
  /** Process 1 of the host. */
  pid: number;
  /** Processes of the host, as seen from outside. */
  processes: { pid: number; command: string }[];
}

/** Answer of each request to a device. */
export interface ControlRequests {
  status: Status;
  /** `at_ns`: the time of the counters, by a clock that starts anywhere. */
  counters: { since: string; at_ns: number; counters: CounterValue[] };
  ports: PortStatus[];
  switch: SwitchReport;
  fdb: FdbEntry[];
  /** Routes, and neighbors; both are empty where the device does not route. */
  routes: RouteReport[];
  neighbors: NeighborReport[];
  queue_pairs: QueuePairReport[];
  /** Reaction points of a NIC; empty: it does not run QCN. */
  reaction_points: ReactionPointReport[];
  programs: ProgramReport[];
  qos: QosReport;
  lldp: LldpReport;
  dcbx: DcbxReport;
  clear: { cleared: string };
  /** Fault that was made. */
  fault: FaultReport;
  faults: FaultReport[];
  /** Faults that were ended. */
  end_fault: FaultReport[];
  /** Process that is about to be killed, and when, s from now. */
  kill: { pid: number; after_s: number };
}

/** Answer of each request to a lab, without a device. */
export interface LabRequests {
  lab: LabReport;
  /** Report of a lab that stays; others refuse. */
  standing: StandingReport;
  /** Ends a lab that stays: its programs get some time for that. The socket is gone when the lab has ended. */
  down: { pid: number };
}

/** Answer of each request that a stream follows. */
export interface StreamRequests {
  capture: CaptureStart;
}
