/** Plots of several runs over each other: colour tells flows apart, or runs where there are no flows; line style tells runs. */

import type { Series } from "../result/result.js";
import { queueThresholds } from "../result/run_files.js";
import { summarize } from "../result/statistics.js";
import {
  type Chart,
  cdfChart,
  inGbps,
  inKilobytes,
  overTime,
  queueCdf,
  type RawLine,
  sameThreshold,
} from "./charts.js";
import { common, type NamedRun } from "./overlay.js";

export interface OverlayCharts {
  charts: Chart[];
  /** Those drawn, in the order of their colours. */
  flows: string[];
  /** What is not drawn, and why; one sentence each. */
  omitted: string[];
}

/** A run with samples, and its position among all runs. */
interface DrawnRun {
  run: NamedRun;
  number: number;
}

/** More would hide each other; the tables have all. */
const kFlowsDrawn = 16;
const kQueuesDrawn = 6;

/** Flows and queues that all runs with series have. */
export function overlayCharts(runs: readonly NamedRun[]): OverlayCharts {
  const drawn = runs.map((run, number) => ({ run, number })).filter(({ run }) => run.series.time_s.length > 1);
  const without = runs.filter(({ series }) => series.time_s.length <= 1);
  const names = (of: (series: Series) => object) =>
    common(drawn.map(({ run }) => new Map(Object.entries(of(run.series)))));
  const allFlows = names(({ flows }) => flows);
  const allQueues = names(({ queues }) => queues);
  const flows = allFlows.slice(0, kFlowsDrawn);
  const queues = longest(allQueues, drawn).slice(0, kQueuesDrawn);
  const axis = axisOf(drawn);
  const charts = [
    ...queues.flatMap((queue, i) => queueCharts(queue, i, axis, drawn)),
    flowChart("goodput", axis, drawn, flows),
    flowChart("rate", axis, drawn, flows),
  ];
  return {
    charts: charts.filter((chart) => chart.lines.length > 0 && chart.x.length > 1),
    flows,
    omitted: [
      ...without.map(
        ({ label }) => `${label} has no series (no series.json beside its result): it is not in the plots.`,
      ),
      ...omitted(flows.length, allFlows.length, "flows are drawn, the first"),
      ...omitted(queues.length, allQueues.length, "queues are drawn, the longest"),
    ],
  };
}

function omitted(some: number, all: number, what: string): string[] {
  return some === all ? [] : [`${some} of ${all} ${what}.`];
}

/** All times at which any run was sampled, ns. */
function axisOf(runs: readonly DrawnRun[]): number[] {
  const times = new Set(runs.flatMap(({ run }) => run.series.time_s.map(nanoseconds)));
  return [...times].sort((a, b) => a - b);
}

/** The samples on another axis: at each time the sample whose interval it is in, null outside of the run. */
function onAxis(axis: readonly number[], series: Series, values: readonly number[] | undefined): (number | null)[] {
  if (values === undefined || values.length === 0) return [];
  const times = series.time_s.map(nanoseconds);
  const interval = nanoseconds(series.interval_s);
  let i = 0;
  return axis.map((time) => {
    while (i < times.length && (times[i] as number) < time) i++;
    const end = times[i];
    return end === undefined || time <= end - interval ? null : (values[i] ?? null);
  });
}

function flowChart(
  kind: "goodput" | "rate",
  axis: readonly number[],
  runs: readonly DrawnRun[],
  flows: readonly string[],
): Chart {
  const field = `${kind}_bps` as const;
  const lines = flows.flatMap((id, flow) =>
    runs.map(({ run, number }): RawLine => {
      const values = onAxis(axis, run.series, run.series.flows[id]?.[field]);
      return { label: `${id} (${run.label})`, flow, run: number, values: inGbps(values) };
    }),
  );
  const [title, what] =
    kind === "goodput"
      ? ["Goodput of each flow", "Payload delivered in order, per sampling interval."]
      : ["Reaction point: current rate", "R_C of each flow."];
  return overTime(timing(axis, runs), {
    id: kind,
    title,
    note: `${what} Colour: flow; line style: run.`,
    y_label: "Gb/s",
    lines,
  });
}

/** Length over time and its distribution, side by side. */
function queueCharts(queue: string, position: number, axis: readonly number[], runs: readonly DrawnRun[]): Chart[] {
  const thresholds = runs.map(({ run }) => (run.source && queueThresholds(run.source.scenario, [queue])[queue]) ?? {});
  const lines = runs.map(({ run, number }): RawLine => {
    const { max_bytes, bytes } = run.series.queues[queue] ?? {};
    const values = onAxis(axis, run.series, max_bytes ?? bytes);
    return { label: run.label, color: number, run: number, values: inKilobytes(values) };
  });
  const time = overTime(timing(axis, runs), {
    id: `queue-${position}`,
    title: `Queue length, ${queue}`,
    note: "Largest length in each sampling interval where known, otherwise the length at its end.",
    y_label: "KB",
    lines,
    thresholds: [
      ...sameThreshold("Q_eq", thresholds, "qeq"),
      ...sameThreshold("Kmin", thresholds, "kmin"),
      ...sameThreshold("Kmax", thresholds, "kmax"),
    ],
  });
  const distribution = cdfChart(
    runs.map(({ run, number }) => ({ label: run.label, color: number, run: number, ...queueCdf(run, queue) })),
  );
  return [time, { ...distribution, id: `cdf-${position}`, title: `Queue length distribution, ${queue}` }];
}

/** The warm-up is shaded where it is the same for all. */
function timing(axis: readonly number[], runs: readonly DrawnRun[]): Parameters<typeof overTime>[0] {
  const warmups = new Set(runs.map(({ run }) => run.result.warmup_s));
  const [warmup_s] = warmups;
  return {
    series: { time_s: axis.map((time) => time / 1e9) },
    result: warmups.size === 1 ? { warmup_s } : {},
  };
}

/** By the mean length in the first run, longest first; equal ones as they were. */
function longest(queues: readonly string[], [first]: readonly DrawnRun[]): string[] {
  const mean = (queue: string) => summarize(first?.run.series.queues[queue]?.bytes ?? []).mean;
  return queues
    .map((queue) => ({ queue, mean: mean(queue) }))
    .sort((a, b) => b.mean - a.mean)
    .map(({ queue }) => queue);
}

function nanoseconds(seconds: number): number {
  return Math.round(seconds * 1e9);
}
