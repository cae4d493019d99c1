/** A run of the benchmarks beside a saved one. */
import { fixed } from "../src/result/report/format.js";
import type { Grid } from "../src/result/report/table.js";
import type { Host } from "./host.js";
import type { Metric, Row } from "./row.js";

export interface BenchResult {
  host: Host;
  quick: boolean;
  benchmarks: { name: string; title: string; rows: Row[] }[];
}

/** A metric that both runs have. */
export interface Comparison {
  benchmark: string;
  row: string;
  metric: string;
  now: Metric;
  before: number;
  /** How many times as good as the baseline. */
  ratio: number;
  /** Worse, by more than chance explains. */
  regression: boolean;
}

const kTolerance = 0.1;

/** Every judged metric of `result` that `baseline` has too. `tolerance`, a fraction, replaces the metrics' own. */
export function compare(result: BenchResult, baseline: BenchResult, tolerance?: number): Comparison[] {
  const saved = new Map(metricsOf(baseline).map(({ key, metric }) => [key, metric.value]));
  return metricsOf(result).flatMap(({ key, benchmark, row, name, metric }) => {
    const before = saved.get(key);
    if (before === undefined || metric.better === undefined) return [];
    const ratio = quality(metric, before);
    const allowed = tolerance ?? metric.tolerance ?? kTolerance;
    return [{ benchmark, row, metric: name, now: metric, before, ratio, regression: ratio < 1 / (1 + allowed) }];
  });
}

/** Equal zeros are equally good; of what should be little, none at all is as good as can be. */
function quality({ value, better }: Metric, before: number): number {
  if (value === before) return 1;
  return better === "more" ? value / before : before / value;
}

/** What of the baseline was not measured this time, although its benchmark was. */
export function missing(result: BenchResult, baseline: BenchResult): string[] {
  const now = new Set(metricsOf(result).map(({ key }) => key));
  const ran = new Set(result.benchmarks.map(({ name }) => name));
  return metricsOf(baseline)
    .filter(({ key, benchmark, metric }) => metric.better !== undefined && ran.has(benchmark) && !now.has(key))
    .map(({ benchmark, row, name }) => `${benchmark}: ${row}, ${name}`);
}

/** Ratios above 1 are better than the baseline. */
export function comparisonGrid(comparisons: readonly Comparison[], title: string): Grid {
  return {
    title,
    head: ["benchmark", "row", "metric", "baseline", "now", "times as good", ""],
    names: 3,
    rows: comparisons.map(({ benchmark, row, metric, now, before, ratio, regression }) => [
      benchmark,
      row,
      metric,
      fixed(before),
      fixed(now.value),
      ratio.toFixed(3),
      regression ? "WORSE" : "",
    ]),
  };
}

/** A new baseline: what was measured now, and of the old one what was not. */
export function merge(result: BenchResult, baseline: BenchResult): BenchResult {
  const kept = baseline.benchmarks.filter(({ name }) => result.benchmarks.every((one) => one.name !== name));
  const renewed = result.benchmarks.map((one) => {
    const old = baseline.benchmarks.find(({ name }) => name === one.name)?.rows ?? [];
    return { ...one, rows: [...one.rows, ...old.filter(({ name }) => one.rows.every((row) => row.name !== name))] };
  });
  return { ...result, benchmarks: [...renewed, ...kept] };
}

function metricsOf({ benchmarks }: BenchResult) {
  return benchmarks.flatMap(({ name: benchmark, rows }) =>
    rows.flatMap(({ name: row, metrics }) =>
      Object.entries(metrics).map(([name, metric]) => ({
        key: JSON.stringify([benchmark, row, name]),
        benchmark,
        row,
        name,
        metric,
      })),
    ),
  );
}
