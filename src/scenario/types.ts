// The validated scenario: the schemas' fields, defaults filled in and names expanded. Rates are bit/s, sizes bytes, times integer
// nanoseconds, fractions 0..1: all as the scenario means them, before any time scale.
import type { Full, With } from "../base/fields.js";
import type { Congestion } from "../congestion/algorithms.js";
import type { QcnParameters } from "../congestion/qcn.js";
import type { HostQcn, SwitchQcn } from "../congestion/qcn_points.js";
import type { changeSchema } from "./change_schema.js";
import type { hostSchema, impairmentSchema, linkDefaultsSchema, switchSchema } from "./device_schema.js";
import type { Expectation } from "./expectations.js";
import type { scenarioFaultSchema } from "./fault_schema.js";
import type { BufferConfig } from "./features/buffer.js";
import type { Classification } from "./features/classification.js";
import type { PfcConfig } from "./features/pfc.js";
import type { ReceiveBuffer } from "./features/receive_buffer.js";
import type { SchedulerConfig } from "./features/scheduler.js";
import type { TrimmingConfig } from "./features/trimming.js";
import type { GraphJob } from "./graphs/graph_job.js";
import type { PortProfile } from "./port_profiles.js";
import type { failureSchema, scenarioSchema } from "./schema.js";
import type { TopologyInput } from "./topology_schema.js";
import type { programSchema, tcpSchema, trafficDefaultsSchema } from "./traffic_schema.js";
import type { transportSchema } from "./transport_schema.js";

export type { Congestion } from "../congestion/algorithms.js";

/** Faults that a link adds to frames on purpose. */
export type Impairment = Full<typeof impairmentSchema>;

/** A full-duplex cable between two devices; `rate` 0: not shaped. */
export interface Link extends Omit<Full<typeof linkDefaultsSchema>, "impairment"> {
  from: string;
  to: string;
  impairment?: Impairment;
}

export type { BufferConfig } from "./features/buffer.js";
export type { EcnConfig } from "./features/ecn.js";
export type { PfcConfig } from "./features/pfc.js";

export interface SwitchConfig
  extends Omit<Full<typeof switchSchema>, "buffer" | "pfc" | "trimming" | "qcn" | "scheduler" | "dscp_map">,
    Classification {
  name: string;
  /** Profiles of the ports that have one, by their names. */
  profiled: ReadonlyMap<string, PortProfile>;
  buffer: BufferConfig;
  pfc: PfcConfig;
  trimming: TrimmingConfig;
  qcn: SwitchQcn;
  scheduler: SchedulerConfig;
}

/** Settings by which a device treats priorities. */
export type TrafficClasses = Pick<SwitchConfig, "pfc" | "scheduler" | "trust" | "dscp_map" | "default_priority">;

export interface HostConfig extends Omit<Full<typeof hostSchema>, "initial_rate" | "qcn" | "receive_buffer"> {
  name: string;
  /** Name of the machine of which it is a NIC, among others; undefined: it is one of its own. */
  machine?: string;
  /** Start rate of a QP when another one of its host is active, bit/s. */
  initial_rate: number;
  /** `groups`: parameters of CNPVs that have their own, under QCN. */
  qcn: Omit<HostQcn, "reaction_point_groups"> & { groups: ReadonlyMap<number, QcnParameters> };
  receive_buffer: ReceiveBuffer;
}

/** Pins frames of one source host to one destination host; `via` are all switches from first to last. */
export type PinnedRoute = NonNullable<TopologyInput["routes"]>[number];

/** Transport by which the queue pairs of all flows carry their messages. */
export type Transport = With<Full<typeof transportSchema>, { window: number }>;

/** One queue pair's traffic. Without `rate` as fast as the NIC allows, without `bytes` until `stop`. */
export interface Flow extends Omit<Full<typeof trafficDefaultsSchema>, "qps"> {
  /** Id, unique in the scenario. */
  id: string;
  /** Id of its traffic entry: the flow's id without "/host" and "#number". */
  group: string;
  from: string;
  to: string;
  dscp: number;
  stop: number;
  /** Bytes of each message, where they differ: the next is posted when the one before is complete. Transport `rc` only. */
  sizes: readonly number[] | undefined;
  /** Its messages are those of a message graph: `bytes` in all, `message` the longest. */
  onDemand?: boolean;
}

/** A connection of TCP between the kernels of two hosts. Without `bytes` it sends until `stop`. */
export interface TcpStream extends Omit<Full<typeof tcpSchema>, "pattern" | "from" | "streams"> {
  /** Id, unique among flows, too. */
  id: string;
  from: string;
  dscp: number;
  stop: number;
}

/** A program on a host. */
export interface Program extends Omit<Full<typeof programSchema>, "pattern" | "on" | "after"> {
  /** Id, unique among programs. */
  id: string;
  host: string;
  /** Ids of programs that are ready before it starts. */
  after: readonly string[];
}

/** A sampled switch queue; `port` is the name of the device at the other end. */
export interface QueueProbe {
  switch: string;
  port: string;
  priority: number;
}

/** The service rate of one egress queue from a time on; `rate` 0: that of the link. */
export type RateChange = Full<typeof changeSchema>;

/** A link or a switch that is not there for a while. */
export type Failure = Full<typeof failureSchema>;

/** A fault that is made on purpose at a port. */
export type Fault = Full<typeof scenarioFaultSchema>;

/** Share of the network that one machine runs. */
export interface Part {
  name: string;
  /** Names of switches, then hosts, each in the scenario's order. */
  nodes: string[];
  /** Interfaces of links to other parts, by the links' positions. */
  interfaces: { link: number; interface: string }[];
}

type Written = Full<typeof scenarioSchema>;

export interface Scenario extends Pick<Written, "description" | "scale" | "seed" | "duration" | "fidelity"> {
  name: string;
  warmup: number;
  /** Hosts in the order of the file: it fixes their addresses. */
  hosts: HostConfig[];
  switches: SwitchConfig[];
  links: Link[];
  routes: PinnedRoute[];
  /** Seed of the hash that picks among equal paths. */
  ecmp_seed: number;
  congestion: Congestion;
  transport: Transport;
  flows: Flow[];
  /** Message graphs, whose messages go over flows. */
  graphs: GraphJob[];
  tcp: TcpStream[];
  programs: Program[];
  /** Changes in order of time. */
  changes: RateChange[];
  failures: Failure[];
  faults: Fault[];
  expect: Expectation[];
  parts: Part[];
  /** Name of the part that runs here; all of the network runs here if left out. */
  part?: string;
  /** `flows`: how many of the flows, in order, have series. */
  probes: With<Written["probes"], { queues: QueueProbe[] }>;
}
