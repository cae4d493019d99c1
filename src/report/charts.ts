/** What the report plots: series turned into axes, lines and thresholds, in ms, Gb/s and KB. Drawing is the page's. */
import { formatSize } from "../base/units.js";
import { hasWindow, hearsCnms } from "../congestion/flow_state.js";
import type { Result, Series } from "../result/result.js";
import { type Summary, summarize } from "../result/statistics.js";
import { downsample } from "./downsample.js";

/** One curve. `color` counts from 0; `flow` and `run` tie it to the shared legends; `run` also chooses the line style. */
export interface Line {
  label: string;
  color: number;
  flow?: number;
  run?: number;
  dashed?: boolean;
  values: (number | null)[];
}

/** A horizontal line, such as Kmin, in the unit of the y axis. */
export interface Threshold {
  label: string;
  value: number;
}

export interface Chart {
  id: string;
  title: string;
  note: string;
  x_label: string;
  y_label: string;
  /** Charts over time share cursor and zoom. */
  time: boolean;
  stepped: boolean;
  wide: boolean;
  x: number[];
  lines: Line[];
  thresholds: Threshold[];
  /** From 0 to here on the x axis is warm-up, shaded. */
  warmup?: number | undefined;
  /** For readers without the picture: one row for each line, over all samples. */
  figures: { label: string; summary: Summary }[];
}

/** Where a queue marks and pauses, and what its congestion point steers to, bytes. */
export interface QueueThresholds {
  qeq?: number | undefined;
  kmin?: number | undefined;
  kmax?: number | undefined;
  xoff?: number | undefined;
}

export interface ChartInput {
  result: Result;
  series: Series;
  /** By queue ("sw:r:3"). */
  thresholds: Readonly<Record<string, QueueThresholds>>;
}

/** A line before it is thinned for drawing; `color` is the flow's, or the line's position, unless given. */
export interface RawLine {
  label: string;
  values: readonly (number | null)[];
  color?: number;
  flow?: number;
  run?: number;
  dashed?: boolean;
}

const kDrawnPoints = 5000;
/** Beyond this, target rates double an already full picture and are left to the table. */
const kFlowsWithTarget = 8;

/** Charts in reading order; those without data are left out. */
export function buildCharts(input: ChartInput): Chart[] {
  const { series } = input;
  const flows = Object.entries(series.flows);
  const targets = flows.length <= kFlowsWithTarget;
  const charts = [
    overTime(input, {
      id: "goodput",
      title: "Goodput of each flow",
      note: "Payload delivered in order, per sampling interval.",
      y_label: "Gb/s",
      lines: flows.map(([label, flow], i) => ({ label, flow: i, values: inGbps(flow.goodput_bps) })),
    }),
    overTime(input, {
      id: "rate",
      title: targets ? "Reaction point: current rate and target rate" : "Reaction point: current rate",
      note: targets ? "R_C solid, R_T dashed." : "R_C of each flow.",
      y_label: "Gb/s",
      lines: [
        ...flows.map(([label, flow], i) => ({ label, flow: i, values: inGbps(flow.rate_bps) })),
        ...flows
          .filter(() => targets)
          .map(([id, flow], i) => ({
            label: `${id} target`,
            flow: i,
            color: i,
            dashed: true,
            values: inGbps(flow.target_rate_bps),
          })),
      ],
    }),
    overTime(input, {
      id: "cwnd",
      title: "Congestion window",
      note: "Packets that each flow may have in flight.",
      y_label: "packets",
      lines: flows.map(([label, flow], i) => ({ label, flow: i, values: flow.cwnd_packets ?? [] })),
    }),
    overTime(input, {
      id: "alpha",
      title: hasWindow(input.result.congestion_control) ? "DCTCP: alpha" : "Reaction point: alpha",
      note: "Congestion estimate, 0 (none) to 1.",
      y_label: "alpha",
      lines: flows.map(([label, flow], i) => ({ label, flow: i, values: flow.alpha ?? [] })),
    }),
    queueChart(input),
    cdfChart(Object.keys(series.queues).map((label) => ({ label, ...queueCdf(input, label) }))),
    overTime(input, {
      id: "pauses",
      title: "PFC pauses sent",
      note: "Pause frames per sampling interval, by switch, peer and priority.",
      y_label: "frames",
      stepped: true,
      lines: named("", series.pauses),
    }),
    feedbackChart(input),
  ];
  return charts.filter((chart) => chart.lines.length > 0 && chart.x.length > 1);
}

function feedbackChart(input: ChartInput): Chart {
  const { series } = input;
  return overTime(input, {
    id: "marks",
    title: hearsCnms(input.result.congestion_control) ? "CNMs" : "ECN marks and CNPs",
    note: "Per sampling interval.",
    y_label: "packets",
    stepped: true,
    lines: [
      ...named("marked at", series.marks),
      ...named("CNPs sent by", series.cnps),
      ...named("CNMs sent at", series.cnms),
    ],
  });
}

function queueChart(input: ChartInput): Chart {
  const queues = Object.entries(input.series.queues);
  const found = queues.map(([name]) => input.thresholds[name] ?? {});
  return overTime(input, {
    id: "queue",
    title: "Queue length",
    note: "Largest length in each sampling interval where known, otherwise the length at its end.",
    y_label: "KB",
    wide: true,
    lines: queues.map(([label, queue]) => ({ label, values: inKilobytes(queue.max_bytes ?? queue.bytes ?? []) })),
    thresholds: [
      ...sameThreshold("Q_eq", found, "qeq"),
      ...sameThreshold("Kmin", found, "kmin"),
      ...sameThreshold("Kmax", found, "kmax"),
      ...sameThreshold("PFC xoff", found, "xoff"),
    ],
  });
}

/** One line when the queues shown agree on a threshold; several different ones would say nothing. */
export function sameThreshold(name: string, all: readonly QueueThresholds[], key: keyof QueueThresholds): Threshold[] {
  const values = new Set(all.map((one) => one[key]).filter((value) => value !== undefined));
  const [value] = values;
  if (value === undefined || values.size > 1) return [];
  return [{ label: `${name} ${formatSize(value, 4)}`, value: value / 1000 }];
}

/** Distribution of one queue: its samples in bytes, and points of [KB, fraction of time at or below]. */
interface QueueCdf {
  sampled: readonly number[];
  points: readonly (readonly [number, number])[];
}

/** The measured distribution of queue "sw:r:3" where there is one, otherwise that of its samples. */
export function queueCdf({ result, series }: Pick<ChartInput, "result" | "series">, queue: string): QueueCdf {
  const sampled = series.queues[queue]?.bytes ?? [];
  const [device = "", port = "", priority = ""] = queue.split(":");
  const measured = result.switches[device]?.queue_cdf?.[port]?.[priority];
  const points = measured ?? empiricalCdf(sampled);
  return { sampled, points: points.map(([bytes, fraction]) => [bytes / 1000, fraction]) };
}

export function cdfChart(curves: readonly (QueueCdf & Pick<RawLine, "label" | "color" | "run">)[]): Chart {
  const x = [...new Set([0, ...curves.flatMap(({ points }) => points.map(([bytes]) => bytes))])].sort((a, b) => a - b);
  return {
    id: "cdf",
    title: "Queue length distribution",
    note: "Fraction of time at or below a length.",
    x_label: "KB",
    y_label: "fraction",
    time: false,
    stepped: true,
    wide: false,
    ...drawn(
      x,
      curves.map(({ sampled, points, ...line }) => ({ ...line, values: atOrBelow(points, x) })),
    ),
    thresholds: [],
    figures: curves.map(({ label, sampled }) => ({
      label: `${label}, KB`,
      summary: summaryOf(inKilobytes(sampled)),
    })),
  };
}

/** A chart over the time of `series`; lines without values are left out. */
export function overTime(
  { result, series }: { result: Pick<Result, "warmup_s">; series: Pick<Series, "time_s"> },
  chart: Pick<Chart, "id" | "title" | "note" | "y_label"> &
    Partial<Omit<Chart, "lines">> & { lines: readonly RawLine[] },
): Chart {
  const lines = chart.lines.filter(({ values }) => values.length > 0);
  const warmup = result.warmup_s === undefined || result.warmup_s <= 0 ? undefined : result.warmup_s * 1000;
  return {
    x_label: "ms",
    time: true,
    stepped: false,
    wide: lines.some(({ flow }) => flow !== undefined),
    thresholds: [],
    warmup,
    ...chart,
    ...drawn(
      series.time_s.map((seconds) => seconds * 1000),
      lines,
    ),
    figures: lines.map(({ label, values }) => ({ label, summary: summaryOf(values) })),
  };
}

function drawn(x: number[], lines: readonly RawLine[]): Pick<Chart, "x" | "lines"> {
  const columns = downsample({ x, ys: lines.map(({ values }) => x.map((_, i) => values[i] ?? null)) }, kDrawnPoints);
  return {
    x: columns.x.map(short),
    lines: lines.map((line, i) => ({
      color: line.flow ?? i,
      ...line,
      values: (columns.ys[i] as (number | null)[]).map((value) => (value === null ? null : short(value))),
    })),
  };
}

/** One line for each place where anything happened. */
function named(prefix: string, counts: Readonly<Record<string, readonly number[]>> | undefined): RawLine[] {
  const some = Object.entries(counts ?? {}).filter(([, values]) => values.some((n) => n > 0));
  return some.map(([place, values]) => ({ label: `${prefix} ${place}`.trim(), values }));
}

/** The CDF at each x, a step function: 0 before the first point. */
function atOrBelow(points: readonly (readonly [number, number])[], x: readonly number[]): number[] {
  let next = 0;
  let fraction = 0;
  return x.map((value) => {
    for (; next < points.length && (points[next]?.[0] as number) <= value; next++)
      fraction = points[next]?.[1] as number;
    return fraction;
  });
}

function empiricalCdf(samples: readonly number[]): [number, number][] {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted
    .map((bytes, i): [number, number] => [bytes, (i + 1) / sorted.length])
    .filter(([bytes], i) => bytes !== sorted[i + 1]);
}

function summaryOf(values: readonly (number | null)[]): Summary {
  return summarize(values.filter((value) => value !== null));
}

export function inGbps(values: readonly (number | null)[] | undefined): (number | null)[] {
  return (values ?? []).map((value) => (value === null ? null : value / 1e9));
}

export function inKilobytes(values: readonly (number | null)[]): (number | null)[] {
  return values.map((value) => (value === null ? null : value / 1000));
}

/** Enough digits to draw; keeps the page small. */
function short(value: number): number {
  return Number(value.toPrecision(6));
}
