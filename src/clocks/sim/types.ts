/** What the simulator and its callers (command line, sweeps) agree on. Times are virtual ns unless they are called wall. */

import type { SimulationProgress } from "../../native/simulation_types.js";
import type { FileRequest } from "../../scenario/places.js";
import type { Outcome, RunOptions, RunProgress } from "../clock.js";

/** Progress is told about 5 times a second of wall time. */
export interface SimOptions extends RunOptions<SimProgress> {
  /** To pcapng files. */
  trace?: readonly FileRequest[] | undefined;
  /** How many carry it out, one by default; "auto": as many as there are CPUs, fewer where the network gains nothing by them. */
  threads?: number | "auto" | undefined;
  /** Ends the run at this time, as if the scenario lasted no longer, ns. Beyond the duration: without effect. */
  until?: number | undefined;
}

export interface SimProgress
  extends RunProgress,
    Pick<SimulationProgress, "events" | "hops" | "flows_started" | "flows_ended"> {
  now_ns: number;
  until_ns: number;
  /** Wall time so far, and what is left of it at the present pace. */
  wall_s: number;
  eta_s: number;
}

/** What a run cost this machine. */
export interface SimPerformance {
  cpu_s: number;
  wall_s: number;
  events: number;
  hops: number;
  hops_per_cpu_s: number;
  threads: number;
  /** For so long parts of the network live by themselves, ns. */
  round_ns: number;
  /** Of these, those in which anything happened. */
  rounds: number;
  /** How the threads shared the work, where there are several. */
  sharing?: {
    /** Of devices. */
    partitions: number;
    /** Rounds that all threads went through at once, of all: those with work enough. */
    together: number;
    /** Hops from one partition to another, of all. */
    crossing: number;
    /** Of the threads' time in those rounds what they waited for each other. */
    waiting: number;
  };
  /** Most memory that this process has had resident. */
  rss_bytes: number;
}

export interface SimOutcome extends Outcome {
  performance: SimPerformance;
}
