/**
 * Options and figures that the simulator shares with its callers (command line, sweeps). Times are virtual ns unless they are called wall.
 */

import type { SimulationProgress } from "../../native/simulation_types.js";
import type { FileRequest } from "../../scenario/places.js";
import type { Outcome, RunOptions, RunProgress } from "../clock.js";

/** Progress is told about 5 times a second of wall time. */
export interface SimOptions extends RunOptions<SimProgress> {
  /** Traces to write, as pcapng files. */
  trace?: readonly FileRequest[] | undefined;
  /** Whether the time line of message graphs is wanted however long it is. */
  timeline?: boolean | undefined;
  /** Number of threads that run it, one by default; "auto": as many as there are CPUs, fewer where the network gains nothing by them. */
  threads?: number | "auto" | undefined;
  /** With `fastForward`: part of the time that is skipped, or of the bytes that are known, that is simulated to be compared, at least. Default: 0.2% of the time, and three stretches of a graph's messages. */
  verify?: number | undefined;
  /** Ends the run at this time, as if the scenario lasted no longer, ns. Beyond the duration: without effect. */
  until?: number | undefined;
}

export interface SimProgress
  extends RunProgress,
    Pick<SimulationProgress, "events" | "hops" | "flows_started" | "flows_ended"> {
  now_ns: number;
  until_ns: number;
  /** Operations of message graphs, where there are any: the run ends with them. */
  operations?: { ended: number; all: number };
  /** Wall time so far, and the time that is left at the present pace. */
  wall_s: number;
  eta_s: number;
}

/** Cost of a run on this machine. */
export interface SimPerformance {
  cpu_s: number;
  wall_s: number;
  events: number;
  hops: number;
  hops_per_cpu_s: number;
  threads: number;
  /** Time for which parts of the network live by themselves, ns. */
  round_ns: number;
  /** Rounds in which anything happened. */
  rounds: number;
  /** Figures of how the threads shared the work, where there are several. */
  sharing?: {
    /** Number of parts into which the devices were divided. */
    partitions: number;
    /** Part of all rounds that the threads went through together: those with work enough. */
    together: number;
    /** Part of all hops that went from one partition to another. */
    crossing: number;
    /** Part of the threads' time in those rounds in which they waited for each other. */
    waiting: number;
  };
  /** Most memory that this process has had resident. */
  rss_bytes: number;
}

export interface SimOutcome extends Outcome {
  performance: SimPerformance;
}
