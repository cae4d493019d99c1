/**
 * The two setups of section 5.2 of the DCQCN paper, N greedy flows at one bottleneck of 40 Gb/s, by its equations and as packets,
 * measured in the same way:
 *
 * - *convergence*: one flow has the whole link when another begins at nothing (figure 11), 200 ms;
 * - *incast*: all begin at line rate (figure 12), 100 ms, of which the second half counts.
 *
 * Throughput is what flows take of the link, headers and all, in Gb/s.
 */
import {
  type DcqcnModelParameters,
  type FluidFlows,
  type FluidRun,
  DCQCN_PAPER as kTable14,
  runFluid,
} from "../../src/models/dcqcn/index.js";
import {
  between,
  describe,
  firstTime,
  goodput,
  mean,
  movingMean,
  overMilliseconds,
  queue,
  type Signal,
  total,
} from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import { median } from "../../src/result/statistics.js";
import type { Alternative, Evidence, Trial } from "../engine/experiment.js";
import { byName, namesOf, plot, type Runs } from "../engine/study.js";
import { equationsOf } from "./alpha.js";
import { kFlows, kLink, milliseconds, throughput } from "./two_senders.js";

const kPairFile = "dcqcn/convergence.yaml";
export const kIncastFile = "dcqcn/n-to-1.yaml";
/** Gb/s: 10% of the link. */
export const kNear = 4;
/** Chance decides which packets are marked. */
export const SEEDS = 10;

export const CONVERGED =
  "Flows are apart until their throughputs, means of 10 ms, first differ by at most 4 Gb/s, 10% of the link; 200 ms: they never come so near. What is left is the mean of the absolute difference from 150 to 200 ms.";
export const AS_PACKETS =
  "As packets the first flow sends alone for 100 ms before the second begins at 100 Mb/s; time counts from there, and the first flow's alpha has decayed by then, where in the equations both begin together, with an alpha of 1. Packets have 1,024 bytes of payload, in the equations they have 1,500 bytes.";
export const BY_CHANCE = `As packets every setting runs with ${SEEDS} seeds, and medians are judged; ratios are of medians, curves of the first seed.`;

const kWindow = 0.01;
const kEnd = 0.2;
const kRest = 0.15;
const kJoin = 0.1;
const kIncast = { end: 0.1, from: 0.05, burst: 0.01 };
const kMilli = 1e6; // ns

/** Difference of a run from table 14: by the equations, and by overrides. */
export interface Setting {
  changes: Partial<DcqcnModelParameters>;
  set: readonly string[];
}

/** Two flows that are to become equal. */
export interface Convergence {
  /** Absolute difference of the throughputs, means of 10 ms, Gb/s; from the moment the second begins, s. */
  difference: Signal;
  /** Time until they first are near each other, s; kEnd: never. */
  apart: number;
  /** Gb/s */
  left: number;
  /** Standard deviation of a flow's throughput by means of 1 ms, 150 to 200 ms, as a share of the mean, %; mean of both flows. */
  oscillation: number;
}

/** N flows from line rate. */
export interface Incast {
  /** KB */
  queue: Signal;
  /** Longest queue after the first burst, KB. */
  highest: number;
  /** Figures of the second half: KB, KB, %, %, %. */
  mean: number;
  deviation: number;
  empty: number;
  utilisation: number;
  marked: number;
}

/** Computes it by the equations; `changes`: those of table 14. */
export function convergenceByModel(changes: Partial<DcqcnModelParameters> = {}): Convergence {
  const { series } = runFluid({ ...kTable14, ...changes }, [flows(1, kLink), flows(1, 0)], {
    horizon: kEnd * 1e9,
    step: kMilli,
  });
  const both = series.delivered.map((bits) => growth(bits).map((one) => one / 1e6));
  const [first, second] = both as [number[], number[]];
  // An interval's throughput stands at its middle.
  const time = first.map((_, k) => (k + 0.5) / 1000);
  return {
    ...convergenceOf({ time, values: first.map((rate, k) => rate - (second[k] as number)) }),
    oscillation: oscillationOf(both.map((values) => between({ time, values }, kRest, kEnd))),
  };
}

function convergenceAsPackets(run: Evidence): Convergence {
  const [first, second] = kFlows.map((flow) => throughput(run, flow)) as [Signal, Signal];
  const since = first.time.findIndex((time) => time > kJoin);
  const { interval_s } = run.series;
  return {
    ...convergenceOf({
      time: first.time.slice(since).map((time) => time - kJoin - interval_s / 2),
      values: first.values.slice(since).map((rate, k) => rate - (second.values[since + k] as number)),
    }),
    oscillation: oscillationOf([first, second].map((flow) => milliseconds(flow, kJoin + kRest, kJoin + kEnd))),
  };
}

/** Oscillation of throughputs by means of 1 ms. */
function oscillationOf(flows: readonly (readonly number[])[]): number {
  return mean(
    flows.map((values) => {
      const { mean: average = 0, deviation = 0 } = describe(values) ?? {};
      return (100 * deviation) / average;
    }),
  );
}

function convergenceOf(difference: Signal): Omit<Convergence, "oscillation"> {
  const { time, values } = movingMean(difference, kWindow);
  const absolute = { time, values: values.map(Math.abs) };
  return {
    difference: absolute,
    apart: Math.min(
      kEnd,
      firstTime(absolute, (rate) => rate <= kNear),
    ),
    left: mean(between(absolute, kRest, kEnd)),
  };
}

/** Computes it by the equations; `changes`: those of table 14. */
export function incastByModel(count: number, changes: Partial<DcqcnModelParameters> = {}): Incast {
  const parameters = { ...kTable14, ...changes };
  const run = runFluid(parameters, [flows(count, kLink)], { horizon: kIncast.end * 1e9, step: kMilli / 50 });
  const { series } = run;
  const time = series.time.map((ns) => ns / 1e9);
  const half = series.time.findIndex((ns) => ns >= kIncast.from * 1e9);
  const since = (list: readonly number[]) => (list.at(-1) as number) - (list[half] as number);
  const bits = count * since(series.delivered[0] as number[]);
  return {
    ...queueOf({ time, values: series.queue }),
    empty: 100 * emptyPart(run),
    utilisation: (100 * bits) / (parameters.bandwidth * (kIncast.end - kIncast.from)),
    marked: (100 * since(series.marks)) / (bits / (8 * parameters.packet)),
  };
}

/** Samples of the second half in which less than a packet waits. */
function emptyPart({ series }: FluidRun): number {
  const counted = series.queue.filter((_, k) => (series.time[k] as number) >= kIncast.from * 1e9);
  return counted.filter((bytes) => bytes < kTable14.queued).length / counted.length;
}

function incastAsPackets({ series, scenario, result }: Evidence): Incast {
  const receiver = scenario.flows[0]?.to as string;
  const length = queue(series, `sw:${receiver}:3`);
  const delivered = mean(between(goodput(series), kIncast.from, kIncast.end));
  const packet = scenario.hosts[0]?.path_mtu ?? 1024;
  const marks = between(
    { time: series.time_s, values: total(Object.values(series.marks ?? {})) },
    kIncast.from,
    kIncast.end,
  );
  const counted = between(length, kIncast.from, kIncast.end);
  const link = result.links?.find(({ from, to }) => from === "sw" && to === receiver);
  return {
    ...queueOf(length),
    empty: (100 * counted.filter((bytes) => bytes < packet).length) / counted.length,
    utilisation: 100 * (link?.utilisation ?? Number.NaN),
    marked: (100 * mean(marks)) / ((delivered * series.interval_s) / (8 * packet)),
  };
}

function queueOf(bytes: Signal): Pick<Incast, "queue" | "highest" | "mean" | "deviation"> {
  const kilobytes = { time: bytes.time, values: bytes.values.map((one) => one / 1000) };
  const { mean: middle = 0, deviation = 0 } = describe(between(kilobytes, kIncast.from, kIncast.end)) ?? {};
  const highest = Math.max(...between(kilobytes, kIncast.burst, kIncast.end));
  return { queue: kilobytes, highest, mean: middle, deviation };
}

function flows(count: number, rate: number): FluidFlows {
  const lineRate = kLink * 1e9;
  return { count, start: 0, stop: Number.POSITIVE_INFINITY, rate: rate * 1e9, lineRate, alpha: 1 };
}

function growth(sums: readonly number[]): number[] {
  return sums.slice(1).map((sum, k) => sum - (sums[k] as number));
}

/** Combines several seeds: medians of the numbers, the first one's curve. */
export function typical<T extends Convergence | Incast>(all: readonly T[]): T {
  const middle = (name: string) => median(all.map((one) => one[name as keyof T] as number));
  const entries = Object.entries(all[0] as T).map(([name, value]) => [
    name,
    typeof value === "number" ? middle(name) : value,
  ]);
  return Object.fromEntries(entries) as T;
}

/** Makes trials of settings by name, called as `trial` says, and the outcome of each as packets and by the equations. */
function settingsOf<One extends Setting, Shown extends Convergence | Incast>(
  file: string,
  overrides: (one: One) => readonly string[],
  read: (run: Evidence) => Shown,
  solve: (one: One, changes: Partial<DcqcnModelParameters>) => Shown,
) {
  return <Name extends string>(all: Readonly<Record<Name, One>>, trial = (name: Name): string => name) => {
    const names = namesOf(all);
    const changes = (name: Name, alternative?: Alternative) => ({ ...all[name].changes, ...equationsOf(alternative) });
    return {
      trials: names.map((name): Trial => ({ name: trial(name), file, set: overrides(all[name]) })),
      asPackets: (runs: Runs) => byName(names, (name) => read(runs[trial(name)] as Evidence)),
      typical: (seeds: readonly Readonly<Record<Name, Shown>>[]) =>
        byName(names, (name) => typical(seeds.map((one) => one[name]))),
      byModel: (alternative?: Alternative) => byName(names, (name) => solve(all[name], changes(name, alternative))),
    };
  };
}

export const pairsOf = settingsOf(
  kPairFile,
  ({ set }) => set,
  convergenceAsPackets,
  (_, changes) => convergenceByModel(changes),
);

export const incastsOf = settingsOf(
  kIncastFile,
  ({ set, flows }: Setting & { flows: number }) => [senders(flows), ...set],
  incastAsPackets,
  ({ flows }, changes) => incastByModel(flows, changes),
);

/** Plots the difference of two flows, one of which begins at line rate. */
export function differencePlot(
  title: string,
  curves: readonly { label: string; found: Convergence }[],
  from = 0,
): Plot {
  return plot(
    title,
    ["time, ms", from, 200],
    ["difference, Gb/s", 0, 42],
    curves.map(({ label, found }) => ({ label, ...overMilliseconds(found.difference) })),
  );
}

/** Overrides that make `n` machines of n-to-1.yaml send. */
export function senders(n: number): string {
  return `traffic.0.from=[${Array.from({ length: n }, (_, i) => `h${i + 1}`).join(", ")}]`;
}
