/**
 * The benchmark traffic of section 6.2 of the DCQCN paper: 20 or more pairs of random hosts exchange messages, while some hosts
 * send to one, as when a failed disk is rebuilt. Figures 15 to 18 share this: runs, percentiles over flows, means over the seeds.
 */
import { mean } from "simple-statistics";
import { spread } from "../../src/result/statistics.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import { dashed, grid, namesOf, quantity, type Runs } from "../engine/study.js";
import {
  completedRates,
  kRates,
  kSettings,
  kWords,
  linkRates,
  pauseFrames,
  repeated,
  repeats,
  type Setting,
} from "./testbed.js";

const kFile = "dcqcn/benchmark.yaml";
/** "We repeat the experiment five times". */
export const kSeeds = 5;

export const kSizes =
  "The trace behind the users' sizes of messages was not published; here they are those of Alibaba's storage, mean 41 KB. Each sender of a pair sends one after another. The incast sends messages of 4 MB.";
export const kBenchmarkChoices = [
  kWords,
  kRates,
  kSizes,
  "Percentiles are over the flows of a run, and the mean of the seeds, which decide pairs, senders and paths. Of 10 flows the 10th percentile is the lowest.",
  "Footnote 3 has the 10th percentile as that of response times. Over transfers it is in the table, and not judged: in a closed loop a user that is starved makes few of them, and what is not complete at the end of a short run is in none of them, so that they speak of those that fare well.",
  "Think times, and how many requests of a user are under way, are not in the paper: here one at a time, without pause. No other traffic was tried, so what depends on it is not known.",
  "A run takes 100 ms, of which 20 ms are warm-up; the paper's take two minutes.",
];

/** Overrides with which the wire runs it. */
const kWire = ["duration=25ms", "warmup=5ms"] as const;
/** `cases`: which of a figure's. */
export const kWireChoice = (cases: string) =>
  `The wire has ${cases}, at scale 1000: one seed, 25 ms of which 5 ms are warm-up.`;

/** Throughputs of the users and the incast, Gb/s: means over the seeds of percentiles over the flows. */
export interface Shares {
  users_p50: number;
  users_p10: number;
  incast_p50: number;
  incast_p10: number;
}

/** The same over users' transfers that were complete comes beside them. */
export interface Fares extends Shares {
  transfers_p50: number;
  transfers_p10: number;
}

export const kShares: Readonly<Record<keyof Shares, string>> = {
  users_p50: "users, median",
  users_p10: "users, 10th percentile",
  incast_p50: "incast, median",
  incast_p10: "incast, 10th percentile",
};
export const kShareNames = namesOf(kShares);

/** Simulations with each seed; `wire`: one run there, too. */
export function benchmark(name: string, set: readonly string[], wire = false, seeds = kSeeds): Trial[] {
  const simulated = repeated(name, { file: kFile, set, clocks: ["sim"] }, seeds);
  return wire
    ? [...simulated, ...repeated(name, { file: kFile, set: [...set, ...kWire], clocks: ["wire"] }, 1)]
    : simulated;
}

/** Both settings at each of some values of a field; `wire`: those that run there, too. */
export function benchmarkGrid(
  field: string,
  values: readonly number[],
  set: readonly string[],
  wire: readonly number[],
  seeds = kSeeds,
): Trial[] {
  return settingsAt(values).flatMap(({ setting, value, name }) => {
    const own = [...set, ...kSettings[setting].set, `${field}=${value}`];
    return benchmark(name, own, wire.includes(value), seeds);
  });
}

/** Outcome of both settings at each of the values of a grid; undefined where the clock has no runs of it. */
export interface Grid {
  at: (setting: Setting, value: number) => Fares | undefined;
  runs: (setting: Setting, value: number) => Evidence[];
}

export function gridOf(runs: Runs): Grid {
  const of = (setting: Setting, value: number) => repeats(runs, nameAt(setting, value));
  const made = new Map<string, Fares>();
  return {
    runs: of,
    at: (setting, value) => {
      const name = nameAt(setting, value);
      const own = made.get(name) === undefined ? of(setting, value) : [];
      if (own.length > 0) made.set(name, shares(own));
      return made.get(name);
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
      transfers_p50: quantity("users' transfers, median", "Gb/s", ({ transfers_p50 }) => transfers_p50),
      transfers_p10: quantity("users' transfers, 10th percentile", "Gb/s", ({ transfers_p10 }) => transfers_p10),
    },
    dashed,
  );
}

export function shares(runs: readonly Evidence[]): Fares {
  const over = (entry: string, percentile: "p10" | "p50") =>
    mean(runs.map((run) => spread(linkRates(run, entry))[percentile]));
  const transfers = (percentile: "p10" | "p50") => mean(runs.map((run) => completedRates(run, "users")[percentile]));
  return {
    users_p50: over("users", "p50"),
    users_p10: over("users", "p10"),
    incast_p50: over("rebuild", "p50"),
    incast_p10: over("rebuild", "p10"),
    transfers_p50: transfers("p50"),
    transfers_p10: transfers("p10"),
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

/** Undefined where either is not known. */
export function ratio(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a / b;
}

/** Undefined where one of them is not known. */
export function wholeOf(values: readonly (number | undefined)[]): number[] | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === values.length ? known : undefined;
}

/** Returns the least of those that are known; undefined: none is. */
export function leastOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** A curve through what is known. */
export function pointsOf(
  values: readonly number[],
  y: (value: number) => number | undefined,
  x: (value: number, i: number) => number = (value) => value,
): { x: number[]; y: number[] } {
  const points = values.flatMap((value, i) => {
    const found = y(value);
    return found === undefined ? [] : [{ x: x(value, i), y: found }];
  });
  return { x: points.map((point) => point.x), y: points.map((point) => point.y) };
}
