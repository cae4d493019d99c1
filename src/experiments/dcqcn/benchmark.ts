/**
 * The benchmark traffic of section 6.2 of the DCQCN paper: 20 or more pairs of random hosts exchange messages, while some hosts
 * send to one, as when a failed disk is rebuilt. What figures 15 to 18 share: runs, percentiles over flows, means over the seeds.
 */
import { mean } from "simple-statistics";
import { spread } from "../../result/statistics.js";
import type { Evidence, Trial } from "../experiment.js";
import { dashed, grid, namesOf, quantity, type Runs } from "../study.js";
import { kRates, kSettings, kWords, linkRates, pauseFrames, repeated, repeats, type Setting } from "./testbed.js";

const kFile = "dcqcn/benchmark.yaml";
/** "We repeat the experiment five times". */
export const kSeeds = 5;

export const kBenchmarkChoices = [
  kWords,
  kRates,
  "The trace behind the users' sizes of messages was not published; here they are those of Alibaba's storage, mean 41 KB. Each sender of a pair sends one after another. The incast sends messages of 4 MB.",
  "Percentiles are over the flows of a run, and the mean of five seeds, which decide pairs, senders and paths. Of 10 flows the 10th percentile is the lowest.",
  "A run takes 100 ms, of which 20 ms are warm-up; the paper's take two minutes.",
];

/** What the users and the incast get, Gb/s: means over the seeds of percentiles over the flows. */
export interface Shares {
  users_p50: number;
  users_p10: number;
  incast_p50: number;
  incast_p10: number;
}

export const kShares: Readonly<Record<keyof Shares, string>> = {
  users_p50: "users, median",
  users_p10: "users, 10th percentile",
  incast_p50: "incast, median",
  incast_p10: "incast, 10th percentile",
};
export const kShareNames = namesOf(kShares);

/** Runs with each seed. */
export function benchmark(name: string, set: readonly string[]): Trial[] {
  return repeated(name, { file: kFile, set }, kSeeds);
}

/** Both settings at each of some values of a field. */
export function benchmarkGrid(field: string, values: readonly number[], set: readonly string[]): Trial[] {
  return settingsAt(values).flatMap(({ setting, value, name }) =>
    benchmark(name, [...set, ...kSettings[setting].set, `${field}=${value}`]),
  );
}

/** What both settings come to at each of the values of a grid. */
export interface Grid {
  at: (setting: Setting, value: number) => Shares;
  runs: (setting: Setting, value: number) => Evidence[];
}

export function gridOf(runs: Runs): Grid {
  const of = (setting: Setting, value: number) => repeats(runs, nameAt(setting, value));
  const made = new Map<string, Shares>();
  return {
    runs: of,
    at: (setting, value) => {
      const name = nameAt(setting, value);
      const found = made.get(name) ?? shares(of(setting, value));
      made.set(name, found);
      return found;
    },
  };
}

/** One quantity for each share, setting and value; `of` says what the value is. */
export function shareQuantities<Value extends number>(values: readonly Value[], of: (value: Value) => string) {
  return grid(
    settingsAt(values),
    ({ at }: Grid, { setting, value }) => at(setting, value),
    (label, { setting, value }) => `${label}, ${kSettings[setting].label}, ${of(value)}`,
  )(
    {
      users_p50: quantity(kShares.users_p50, "Gb/s", ({ users_p50 }) => users_p50),
      users_p10: quantity(kShares.users_p10, "Gb/s", ({ users_p10 }) => users_p10),
      incast_p50: quantity(kShares.incast_p50, "Gb/s", ({ incast_p50 }) => incast_p50),
      incast_p10: quantity(kShares.incast_p10, "Gb/s", ({ incast_p10 }) => incast_p10),
    },
    dashed,
  );
}

export function shares(runs: readonly Evidence[]): Shares {
  const over = (entry: string, percentile: "p10" | "p50") =>
    mean(runs.map((run) => spread(linkRates(run, entry))[percentile]));
  return {
    users_p50: over("users", "p50"),
    users_p10: over("users", "p10"),
    incast_p50: over("rebuild", "p50"),
    incast_p10: over("rebuild", "p10"),
  };
}

/** PFC frames that the spines received, per second, mean of the seeds. */
export function spinePauses(runs: readonly Evidence[]): number {
  return mean(runs.map((run) => pauseFrames(run, "pfc_received", ["s1", "s2"])));
}

export function nameAt<Value extends number>(setting: Setting, value: Value) {
  return `${setting}-${value}` as const;
}

function settingsAt<Value extends number>(values: readonly Value[]) {
  return namesOf(kSettings).flatMap((setting) =>
    values.map((value) => ({ setting, value, name: nameAt(setting, value) })),
  );
}
