/** Figures by which runs are compared: those of one run, and of several that differ in their seeds. */
import { max, mean, min, sampleStandardDeviation, sum } from "simple-statistics";
import { networkCounts } from "../../result/counts.js";
import { eachQueue } from "../../result/queues.js";
import { sizeClass } from "../../result/report/completion_classes.js";
import type { QueueResult, Result, Series } from "../../result/result.js";
import type { Scenario } from "../../scenario/types.js";
import { halfWidth } from "./confidence.js";
import { convergenceTime } from "./convergence.js";

/** Figures of one run. Undefined: it has none. */
export type Figures = Readonly<Record<FigureName, number | undefined>>;

/** Figures in the order of tables. bit/s, s and bytes. */
export const kFigures = [
  "goodput_bps",
  "jain",
  "graphs_s",
  "convergence_s",
  "queue_p50_bytes",
  "queue_p99_bytes",
  "queue_max_bytes",
  "pauses",
  "pause_time_s",
  "ecn_marked",
  "cnps",
  "drops",
  "retransmitted",
  "incomplete",
] as const;
export type FigureName = (typeof kFigures)[number];

/** Statistics over the seeds whose runs have the figure. */
export interface Spread {
  mean: number;
  min: number;
  max: number;
  /** Standard deviation of a sample; absent with one seed. */
  stddev?: number;
  /** Half of the width of the 95% confidence interval of the mean; absent with one seed. */
  ci95?: number;
  /** Number of seeds. */
  seeds: number;
}

/** Figures of transfers of one size class, or of all ("all"). */
export interface SizeFigures {
  size: string;
  /** Transfers are larger than this; -1: all. */
  above_bytes: number;
  count: Spread;
  slowdown: Record<Percentile, Spread>;
  fct_us: Record<Percentile, Spread>;
}

export const kPercentiles = ["p50", "p95", "p99"] as const;
export type Percentile = (typeof kPercentiles)[number];

/**
 * Figures of one run. Of a percentile of queue lengths, that of the queue that is longest by it. Pauses are times that a peer was
 * stopped, and the time that all senders together were.
 */
export function figuresOf(result: Result, scenario: Scenario, series: Series | undefined): Figures {
  const counts = networkCounts(result);
  const queues = eachQueue(result.switches, (one) => one.queues).map(({ value }) => value);
  const longest = (name: "p50" | "p99" | "max") => Math.max(0, ...queues.map((queue: QueueResult) => queue[name]));
  const all = (lists: readonly Readonly<Record<string, number>>[]) => sum(lists.flatMap((one) => Object.values(one)));
  const convergence = series && convergenceTime(scenario, series);
  // The equations have neither pauses nor buffers that end.
  const counted = result.clock !== "model";
  return {
    goodput_bps: result.totals.goodput_bps,
    jain: result.totals.jain,
    graphs_s: graphTime(result),
    convergence_s: convergence === "never" ? undefined : convergence,
    queue_p50_bytes: longest("p50"),
    queue_p99_bytes: longest("p99"),
    queue_max_bytes: longest("max"),
    pauses: counted ? all(Object.values(result.switches).map(({ pauses = {} }) => pauses)) : undefined,
    pause_time_s: result.links && all(result.links.map(({ pause_time_s }) => pause_time_s)),
    ecn_marked: counts.ecn_marked,
    cnps: counts.cnp_sent,
    drops: counted ? counts.drops : undefined,
    retransmitted: result.transport && (result.transport.retransmitted ?? 0),
    incomplete: result.fct?.incomplete,
  };
}

/** Time of the message graph that took longest; undefined where there is none, or one has not ended. */
function graphTime({ graphs = [] }: Result): number | undefined {
  const times = graphs.map(({ time_s }) => time_s ?? Number.NaN);
  const longest = Math.max(...times);
  return Number.isFinite(longest) ? longest : undefined;
}

/** Returns undefined without values. */
export function spreadOf(values: readonly (number | undefined)[]): Spread | undefined {
  const known = values.filter((value) => value !== undefined);
  if (known.length === 0) return undefined;
  const ci95 = halfWidth(known);
  const spread = ci95 === undefined ? {} : { stddev: sampleStandardDeviation(known), ci95 };
  return { mean: mean(known), min: min(known), max: max(known), ...spread, seeds: known.length };
}

/** All sizes, then by class from the smallest; a class counts in the runs that have transfers of it. */
export function sizesOf(results: readonly Result[]): SizeFigures[] {
  const rows = results.flatMap(({ fct }) =>
    fct === undefined
      ? []
      : [
          { ...fct, size: "all", above_bytes: -1 },
          ...fct.bins.map((bin) => ({ ...bin, size: sizeClass(bin), above_bytes: bin.above_bytes })),
        ],
  );
  const bounds = [...new Set(rows.map(({ above_bytes }) => above_bytes))].sort((a, b) => a - b);
  return bounds.map((above_bytes) => {
    const same = rows.filter((row) => row.above_bytes === above_bytes && row.count > 0);
    const over = (of: (row: (typeof rows)[number]) => number) => spreadOf(same.map(of)) ?? kNone;
    const percentiles = (what: "slowdown" | "fct_us") =>
      Object.fromEntries(kPercentiles.map((name) => [name, over((row) => row[what][name])])) as SizeFigures["fct_us"];
    return {
      size: rows.find((row) => row.above_bytes === above_bytes)?.size ?? "",
      above_bytes,
      count: over(({ count }) => count),
      slowdown: percentiles("slowdown"),
      fct_us: percentiles("fct_us"),
    };
  });
}

/** Spread where nothing was complete. */
const kNone: Spread = { mean: 0, min: 0, max: 0, seeds: 0 };
