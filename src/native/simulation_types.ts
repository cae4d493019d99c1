/** The native simulation. Virtual ns from 0 and meant bit/s; no scale. */
import {
  type FastForwardReport,
  type FaultState,
  type HostNews,
  kFinished,
  type LearnedReport,
  type OperationTimes,
  type ProgramFate,
  type QueueHistogram,
  type QueuePairState,
  type SimulationCounters,
  type SimulationManifest,
  type SimulationProgress,
} from "./reports.js";
import type {
  FairNetworkConfig,
  IdealNetworkConfig,
  NativeNetworkSize,
  NativeProgramPlan,
  NativeSimulationRoutes,
  NativeSimulationSwitch,
  SimulationConfig,
} from "./simulation_configuration.js";

export * from "./configuration.js";
export * from "./reports.js";
export * from "./simulation_configuration.js";
export * from "./traffic_configuration.js";
export * from "./transport_configuration.js";

/** Most threads that may carry out one simulation. */
export const kMostThreads = 128;

/** Words of one completed message in drainFinished(). */
export const kFinishedWords = kFinished.words;

export interface NativeSimulation {
  /**
   * Goes on until virtual time `until` ns, or about `events` events, or until there is news, whichever is first; true when `until`
   * is reached. How a run is cut into calls does not change it.
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
  /** Frames since the last call (src/device/capture/frames.ts): whole headers, and payload where NICs have programs; times of last bits. */
  drainTrace(): Uint8Array;
  /** Data packets in queues and on links, by flow. */
  underWay(): Uint32Array;
  /** Distributions of queues that have held anything from reset_after on, as far as they are kept: by switch, port and priority. */
  queueDistributions(): QueueHistogram[];
  /** State of a flow's sender, by the flow's number. */
  senderState(flow: number): Omit<QueuePairState, "name">;
  /**
   * New parameters of a switch from progress().now on; `groups`, `group_of_host` and `pins` are not looked at. Queues stay; new
   * limits to rates hold at once, also for frames that wait. Only after a run() that returned true. Throws INVALID_STATE otherwise,
   * INVALID_CONFIG when ports, their addresses or MTU, the size of the buffer or learning differ, or a link would become faster
   * than the schedule of this simulation allows, and RangeError.
   */
  reconfigureSwitch(index: number, config: NativeSimulationSwitch): void;
  /** Other routes of a switch from progress().now on. Throws as reconfigureSwitch() does. */
  reroute(index: number, routes: NativeSimulationRoutes): void;
  /**
   * A link fails, in both directions, or is there again (`up`), from progress().now on. What is on it is lost, and what is sent into
   * it while it is down; pauses (PFC) that its ends have asked for are over. Only after a run() that returned true: throws
   * INVALID_STATE otherwise, and RangeError.
   */
  setLink(link: number, up: boolean): void;
  /** What has become of the configured faults, in their order. */
  faults(): FaultState[];
  /** What was skipped; undefined without fast-forward. */
  fastForward(): FastForwardReport | undefined;
  /** What of a message graph came from memory; undefined without fast-forward, or without a graph. */
  learned(): LearnedReport | undefined;
  /** Times of a graph's operations; without one, none. */
  operations(): OperationTimes;
  /** What has become of programs, in their order. */
  programs(): ProgramFate[];
  /**
   * What connection management is to hear, in order: run() has stopped for it, in the event of that time. What it says by the four
   * below is seen at that time, too. Numbers that are nobody's are ignored.
   */
  takeNews(): HostNews[];
  /** Bytes for a program of librdmacm. */
  tellProgram(nic: number, session: number, bytes: Uint8Array): void;
  endSession(nic: number, session: number): void;
  /** A frame without FCS that a NIC sends. */
  sendFrame(nic: number, bytes: Uint8Array): void;
  /** Something listens at the port of a program's NIC that others wait for. False if that program has not started: it is another's. */
  programListens(program: number): boolean;
  /** Frees the memory; programs that run are ended. Idempotent. */
  close(): void;
}

/** A message graph on a network without packets (native/graph/graph_network.h). */
export interface NativeGraphNetwork {
  /** Goes on until nothing is left to happen, true, or for so many messages and timers. */
  run(messages: number): boolean;
  /** Operations that have ended. */
  ended(): number;
  operations(): OperationTimes;
  /** Frees the memory. Idempotent. */
  close(): void;
}

/** The same on fair shares of links (native/graph/fair_network.h). */
export interface NativeFairNetwork extends NativeGraphNetwork {
  /** Bytes of messages that each direction of a link has carried: 2 x link, and 1 more for what its `to` sends. */
  carried(): Float64Array;
}

export interface SimulationAddon {
  /** Throws INVALID_CONFIG. */
  FairNetwork: new (
    config: FairNetworkConfig,
  ) => NativeFairNetwork;
  /** Throws INVALID_CONFIG. */
  IdealNetwork: new (
    config: IdealNetworkConfig,
  ) => NativeGraphNetwork;
  /** Throws INVALID_CONFIG. */
  Simulation: new (
    config: SimulationConfig,
    programs?: NativeProgramPlan,
  ) => NativeSimulation;
  simulationManifest(): SimulationManifest;
  /** Bytes that a simulation takes before anything happens in it. */
  simulationFootprint(size: NativeNetworkSize): number;
}
