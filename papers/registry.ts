/** All experiments, in the order in which they are listed. */
import { nearest } from "../src/base/nearest.js";
import { DCQCN_EXPERIMENTS } from "./dcqcn/experiments.js";
import { ECN_OR_DELAY_EXPERIMENTS } from "./ecn-or-delay/experiments.js";
import { type Clock, clocksOf, type Experiment, seedsOn, trialsOn } from "./engine/experiment.js";
import { loadTrial } from "./engine/trial.js";
import { HPCC_COMPLETION } from "./hpcc/completion.js";
import { QCN_EXPERIMENTS } from "./qcn/experiments.js";
import { TIMELY_TAIL } from "./timely/tail.js";
import { TRAINING_EXPERIMENTS } from "./training/experiments.js";
import { UEC_EXPERIMENTS } from "./uec/experiments.js";

export const EXPERIMENTS: readonly Experiment[] = [
  ...DCQCN_EXPERIMENTS,
  ...QCN_EXPERIMENTS,
  ...ECN_OR_DELAY_EXPERIMENTS,
  TIMELY_TAIL,
  HPCC_COMPLETION,
  ...UEC_EXPERIMENTS,
  ...TRAINING_EXPERIMENTS,
];

export function findExperiment(id: string): Experiment | undefined {
  return EXPERIMENTS.find((one) => one.id === id);
}

/** The id that was probably meant. */
export function nearestExperiment(id: string): string | undefined {
  return nearest(
    id,
    EXPERIMENTS.map((one) => one.id),
  );
}

/** One line of `weir paper list`. */
export interface Listing {
  id: string;
  paper: string;
  place: string;
  title: string;
  clocks: Clock[];
  /** Rough time that it takes on each clock, s of this machine's time. */
  seconds: Partial<Record<Clock, number>>;
  statements: number;
  /** Scenario files, relative to papers/. */
  scenarios: string[];
}

export function listExperiments(): Listing[] {
  return EXPERIMENTS.map((experiment) => {
    const { id, paper, place, title, network, statements } = experiment;
    const clocks = clocksOf(experiment);
    return {
      id,
      paper: paper.name,
      place,
      title,
      clocks,
      seconds: Object.fromEntries(clocks.map((clock) => [clock, secondsOn(experiment, clock)])),
      statements: statements.length,
      scenarios: [...new Set(network?.trials.map(({ file }) => file) ?? [])],
    };
  });
}

/**
 * Rough time of an experiment on a clock, s. A wire run takes its duration times its scale; one that the host decides counts as
 * 1. `scale`: instead of the scenarios'.
 */
export function secondsOn(experiment: Experiment, clock: Clock, scale?: number): number {
  const { network, bench } = experiment;
  if (clock === "wire" && bench !== undefined) return bench.seconds;
  if (clock === "model" || network === undefined) return 1;
  if (clock === "sim") return (network.sim_seconds ?? 0) * seedsOn(experiment, clock);
  const scenarios = trialsOn(experiment, clock).map((trial) => loadTrial(trial, { scale }).scenario);
  const wall = scenarios.map(({ duration, scale: own }) => (duration / 1e9) * (own === "auto" ? 1 : own));
  return Math.round(wall.reduce((sum, one) => sum + one, 0));
}
