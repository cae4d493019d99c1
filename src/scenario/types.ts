// The validated scenario: the schemas' fields, defaults filled in and names expanded. Rates are bit/s, sizes bytes, times integer
// nanoseconds, fractions 0..1: all as the scenario means them, before any time scale.
import type { Full, With } from "../base/fields.js";
import type { Congestion } from "../congestion/algorithms.js";
import type { QcnParameters } from "../congestion/qcn.js";
import type { HostQcn, SwitchQcn } from "../congestion/qcn_points.js";
import type {
  bufferSchema,
  ecnSchema,
  hostSchema,
  impairmentSchema,
  linkDefaultsSchema,
  pfcSchema,
  switchSchema,
} from "./device_schema.js";
import type { Expectation } from "./expectations.js";
import type { PortProfile } from "./port_profiles.js";
import type { changeSchema, failureSchema, scenarioSchema, transportSchema } from "./schema.js";
import type { TopologyInput } from "./topology_schema.js";
import type { programSchema, tcpSchema, trafficDefaultsSchema } from "./traffic_schema.js";

export type { Congestion } from "../congestion/algorithms.js";

/** What a link does to frames on purpose. */
export type Impairment = Full<typeof impairmentSchema>;

/** A full-duplex cable between two devices; `rate` 0: not shaped. */
export interface Link extends Omit<Full<typeof linkDefaultsSchema>, "impairment"> {
  from: string;
  to: string;
  impairment?: Impairment;
}

/** `threshold` is filled in also for dynamic mode, and unused there. */
export interface BufferConfig
  extends With<Full<typeof bufferSchema>, { headroom: number; threshold: number; xon_offset: number }> {
  /** `headroom` was found by the links. */
  automatic: boolean;
  /** Bytes that ports with headroom of their own reserve beyond `headroom`; negative where that is less. */
  besides: number;
}
export type EcnConfig = Full<typeof ecnSchema>;

/** `enabled` and `priorities` also tell of PAUSE, which is for all priorities; `by`: what peers are stopped by. */
export type PfcConfig = Full<typeof pfcSchema> & { by: "pfc" | "pause" };

export interface SwitchConfig
  extends Omit<Full<typeof switchSchema>, "buffer" | "pfc" | "trimming" | "qcn" | "scheduler" | "dscp_map"> {
  name: string;
  /** Of the ports that have one, by their names. */
  profiled: ReadonlyMap<string, PortProfile>;
  buffer: BufferConfig;
  pfc: PfcConfig;
  trimming: With<Full<typeof switchSchema>["trimming"], { queue: number }>;
  qcn: SwitchQcn;
  /** `weights` has one DWRR weight per priority 0..7; those of strict priorities are not used. */
  scheduler: { strict: number[]; weights: number[] };
  /** Priority per DSCP, 64 entries. */
  dscp_map: number[];
}

/** What a device makes of priorities. */
export type TrafficClasses = Pick<SwitchConfig, "pfc" | "scheduler" | "trust" | "dscp_map" | "default_priority">;

export interface HostConfig extends Omit<Full<typeof hostSchema>, "initial_rate" | "qcn" | "receive_buffer"> {
  name: string;
  /** bit/s, start rate of a QP when another one of its host is active. */
  initial_rate: number;
  /** `groups`: parameters of CNPVs that have their own, under QCN. */
  qcn: Omit<HostQcn, "reaction_point_groups"> & { groups: ReadonlyMap<number, QcnParameters> };
  /** Drains at `rate` bit/s (0 = at once); PFC goes out at `xoff`, and again at `xon`. */
  receive_buffer: With<Full<typeof hostSchema>["receive_buffer"], { xoff: number; xon: number }>;
}

/** Pins frames of one source host to one destination host; `via` are all switches from first to last. */
export type PinnedRoute = NonNullable<TopologyInput["routes"]>[number];

/** How the queue pairs of all flows carry their messages. */
export type Transport = With<Full<typeof transportSchema>, { window: number }>;

/** One queue pair's traffic. Without `rate` as fast as the NIC allows, without `bytes` until `stop`. */
export interface Flow extends Omit<Full<typeof trafficDefaultsSchema>, "qps"> {
  /** Unique in the scenario. */
  id: string;
  /** Id of its traffic entry: the flow's id without "/host" and "#number". */
  group: string;
  from: string;
  to: string;
  dscp: number;
  stop: number;
  /** Bytes of each message, where they differ: the next is posted when the one before is complete. Transport `rc` only. */
  sizes: readonly number[] | undefined;
}

/** A connection of TCP between the kernels of two hosts. Without `bytes` it sends until `stop`. */
export interface TcpStream extends Omit<Full<typeof tcpSchema>, "pattern" | "from" | "streams"> {
  /** Unique among flows, too. */
  id: string;
  from: string;
  dscp: number;
  stop: number;
}

/** A program on a host. */
export interface Program extends Omit<Full<typeof programSchema>, "pattern" | "on" | "after"> {
  /** Unique among programs. */
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

/** What of the network one machine runs. */
export interface Part {
  name: string;
  /** Switches, then hosts, each in the scenario's order. */
  nodes: string[];
  /** Of links to other parts, by their positions. */
  interfaces: { link: number; interface: string }[];
}

type Written = Full<typeof scenarioSchema>;

export interface Scenario extends Pick<Written, "description" | "scale" | "seed" | "duration" | "fidelity"> {
  name: string;
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
  tcp: TcpStream[];
  programs: Program[];
  /** In order of time. */
  changes: RateChange[];
  failures: Failure[];
  expect: Expectation[];
  parts: Part[];
  /** Name of the part that runs here; all of the network if left out. */
  part?: string;
  /** `flows`: how many of the flows, in order, have series. */
  probes: With<Written["probes"], { queues: QueueProbe[] }>;
}
