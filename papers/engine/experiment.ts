/**
 * Form of an experiment: one figure or table of a paper as scenarios, quantities measured in them, and the paper's statements as
 * expectations of these quantities. Everything specific to a paper is data of this shape; running, judging and reporting are not.
 * Papers' figures are written as a Study (study.ts), which an experiment is made from.
 */

import { kClockNames as CLOCKS, type ClockName as Clock } from "../../src/clocks/clock.js";
import type { Plot } from "../../src/result/report/plot.js";
import type { Result, Series } from "../../src/result/result.js";
import type { Scenario } from "../../src/scenario/types.js";

export { CLOCKS, type Clock };
export type NetworkClock = Exclude<Clock, "model">;

export interface Paper {
  /** Short name, as in "Shu et al. 2014". */
  name: string;
  /** Authors, title, where and when. */
  citation: string;
}

/** A scenario under papers/, with what differs from the file. */
export interface Trial {
  /** Unique in the experiment; names its folder. */
  name: string;
  /** Relative to papers/. */
  file: string;
  /** Overrides, "path=value". */
  set: readonly string[];
  /** Clocks on which it runs; default: all clocks of the experiment. */
  clocks?: readonly NetworkClock[];
}

/**
 * Another reading of the paper, where its words leave one, of the algorithm or of what it does not print of its setup: the same trials
 * with another parameter, in virtual time and by equations, judged beside the first, which alone counts. Only where it comes to other
 * figures: it takes its time.
 */
export interface Alternative {
  /** "alpha reset": with the clock it names columns, and a folder beside the trials'. */
  name: string;
  /** Meaning of the alternative, a sentence. */
  reading: string;
  /** Overrides, after a trial's own. */
  set: readonly string[];
  /** Runs of other scenarios are what they are under the first reading, and not made again. */
  concerns: (scenario: Scenario) => boolean;
}

/** One finished run of a scenario. */
export interface Evidence {
  scenario: Scenario;
  result: Result;
  series: Series;
}

/** Finished runs by name of the trial. */
export type Runs = Readonly<Record<string, Evidence>>;

/** Something that is measured on every clock in the same way. */
export interface Quantity {
  label: string;
  /** "" for a plain number. */
  unit: string;
}

/** A curve that several clocks have, and other simulators: they are laid over each other in one plot. */
export interface Trace {
  title: string;
  x_label: string;
  y_label: string;
  /** Unit of y. */
  unit: string;
  /** Range of x that is drawn and compared. */
  x_range: readonly [number, number];
}

/** A trace as measured, x increasing. */
export interface TraceValues {
  x: readonly number[];
  y: readonly number[];
}

/** Observation by one clock. */
export interface Observation {
  /** Values by name of the quantity, in its unit. Infinity: did not happen in the run. Absent: not known on this clock. */
  values: Readonly<Record<string, number>>;
  /** Plots from top to bottom. */
  plots: readonly Plot[];
  /** Curves by name of the trace. */
  traces?: Readonly<Record<string, TraceValues>>;
  /** Observation of each of several seeds; `values` are then medians, and curves those of the first. */
  seeds?: readonly Pick<Observation, "values" | "traces">[];
}

/** `Name` and `Traced`: what there is to ask about. */
export type Check<Name extends string = string, Traced extends string = string> =
  | QuantityCheck<Name>
  | TraceCheck<Traced>;

/** A trace differs from that of another clock by at most this: mean of the absolute difference over x, in the unit of y. */
export interface TraceCheck<Traced extends string = string> {
  trace: Traced;
  clock: Clock;
  most: number;
}

/** A condition on one quantity: bounds that are both inclusive, or the value on another clock. */
export interface QuantityCheck<Name extends string = string> {
  quantity: Name;
  min?: number;
  max?: number;
  /** Bounds in their place if chance decides, and the median of several seeds is judged. */
  by_chance?: { min?: number; max?: number };
  /** Largest distance from the value on that clock: `within` as a share of it, or `margin` in the unit, whichever is more. */
  near?: { clock: Clock; within: number; margin: number };
}

/** Cause for which statements fall short. Those that do for the same reason have the same one. */
export interface Cause {
  /** "fixed-point" */
  id: string;
  /**
   * algorithm: what the paper prints comes to this, whoever computes it, and `proof` is the derivation or another's simulator;
   * us: Weir, its setup or its reading may be the reason, and `proof` says what is not known or not done.
   */
  by: "algorithm" | "us";
  /** A sentence. */
  what: string;
  proof: string;
}

/**
 * A sentence of the paper, and what would be true of the measurements if it were true. The same sentence of a paper in several
 * experiments is one statement with several cases: it is counted once.
 */
export interface Statement<Held extends Check = Check> {
  /** The paper's words. */
  quote: string;
  /** "section III", "figure 4". */
  where: string;
  /** Reading of the words as numbers. */
  reading: string;
  /** All must hold. Empty: what Weir cannot measure. */
  checks: readonly Held[];
  /** Possible explanation if it falls short, or the reason why it cannot be judged. */
  remark?: string;
  /** Cause if it falls short, on all clocks or on each; if none is given it is not explained, which counts as ours. */
  cause?: Cause | Partial<Record<Clock, Cause>>;
}

/** Real frames that no scenario describes: programs of this host between namespaces of it. Counts as the wire. */
export interface Bench {
  /** Rough time that it takes, s. */
  seconds: number;
  /** @throws WeirError when something that it needs is missing or fails, and when it is aborted. Leaves nothing that runs. */
  run: (options: BenchOptions) => Promise<BenchOutcome>;
}

export interface BenchOptions {
  /** Folder for the programs' output; exists. */
  directory: string;
  signal: AbortSignal;
  /** 0..1 */
  onProgress: (done: number) => void;
}

export interface BenchOutcome {
  observation: Observation;
  /** Reasons for which the figures do not count; empty: they do. */
  doubts: string[];
}

export interface Experiment {
  /** "qcn-shu-fig1". */
  id: string;
  paper: Paper;
  /** "figure 1", "table I". */
  place: string;
  title: string;
  /** Setup that is run, a sentence or two. */
  setup: string;
  /** Choices that the paper leaves open or Weir makes otherwise, one sentence each. */
  choices: readonly string[];
  quantities: Readonly<Record<string, Quantity>>;
  statements: readonly Statement[];
  traces?: Readonly<Record<string, Trace>>;
  /** Runs of scenarios; absent: model only. */
  network?: {
    clocks: readonly NetworkClock[];
    trials: readonly Trial[];
    /** Number of seeds with which virtual time runs all trials if chance decides, from the first on; medians are judged. Default: one. */
    seeds?: number;
    /** `runs` has every trial of this clock by name. */
    observe: (runs: Runs, clock: NetworkClock) => Observation;
    /** Combines several seeds, each as observed; default: the median of each quantity. */
    summarize?: (seeds: readonly Observation[]) => Pick<Observation, "values" | "plots">;
    /** Rough time of a simulation of all trials with one seed on one CPU, s; absent: there is none. */
    sim_seconds?: number;
  };
  /** Benchmark on the wire instead of scenarios. */
  bench?: Bench;
  /** Equations, under the first reading or the alternative; absent: there are none for it. */
  model?: (alternative?: Alternative) => Observation | Promise<Observation>;
  alternative?: Alternative;
}

/** The clocks on which an experiment runs, in the order of CLOCKS. */
export function clocksOf({ network, bench, model }: Experiment): Clock[] {
  return CLOCKS.filter((clock) => {
    if (clock === "model") return model !== undefined;
    return network?.clocks.includes(clock) || (clock === "wire" && bench !== undefined);
  });
}

/** The trials that run on `clock`. */
export function trialsOn({ network }: Experiment, clock: NetworkClock): Trial[] {
  if (!network?.clocks.includes(clock)) return [];
  return network.trials.filter(({ clocks }) => clocks?.includes(clock) ?? true);
}

/** Returns how many times a clock runs each trial, each with another seed. Real frames take their time: they run once. */
export function seedsOn({ network }: Experiment, clock: NetworkClock): number {
  return clock === "sim" ? (network?.seeds ?? 1) : 1;
}

/** Name of the `position`th repeat of a trial, from 1. */
export function repeatName(trial: string, position: number): string {
  return `${trial}-seed${position}`;
}
