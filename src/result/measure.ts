/** Computes quantities from series: windows, moving means, times at which something came true. Times in s. */
import type { Series } from "./result.js";
import { summarize } from "./statistics.js";

/** Values over time, sampled at equal distances. */
export interface Signal {
  time: readonly number[];
  values: readonly number[];
}

/** The samples before `end`: at the end itself flows have stopped, and their rates say nothing. */
export function before(series: Series, end: number): Series {
  const found = series.time_s.findIndex((time) => time >= end - series.interval_s / 2);
  const count = found < 0 ? series.time_s.length : found;
  // Lists of samples, however deep; names and the interval stay.
  const cut = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.slice(0, count);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, cut(inner)]));
  };
  return cut(series) as Series;
}

/** Converts values to a unit of so many of the old one. */
export function inUnits({ time, values }: Signal, unit: number): Signal {
  return { time, values: values.map((value) => value / unit) };
}

/** Returns the signal as a curve over ms. */
export function overMilliseconds({ time, values }: Signal): { x: readonly number[]; y: readonly number[] } {
  return { x: time.map((at) => at * 1000), y: values };
}

/** Sums the values of several lists of equal length. */
export function total(lists: readonly (readonly number[])[]): number[] {
  const [first = []] = lists;
  return first.map((_, i) => lists.reduce((sum, list) => sum + (list[i] ?? 0), 0));
}

/** Samples with from <= time < to. */
export function between({ time, values }: Signal, from: number, to: number): number[] {
  return values.filter((_, i) => (time[i] as number) >= from && (time[i] as number) < to);
}

/** Mean over `width` before and after each sample together; fewer at the ends. */
export function movingMean({ time, values }: Signal, width: number): Signal {
  const interval = time.length > 1 ? (time[1] as number) - (time[0] as number) : 1;
  const half = Math.max(0, Math.round(width / interval / 2));
  const sums = [0];
  for (const value of values) sums.push((sums.at(-1) as number) + value);
  const smooth = values.map((_, i) => {
    const low = Math.max(0, i - half);
    const high = Math.min(values.length, i + half + 1);
    return ((sums[high] as number) - (sums[low] as number)) / (high - low);
  });
  return { time, values: smooth };
}

/** The first time from `from` on at which `holds`; Infinity when there is none before `to`. */
export function firstTime(
  { time, values }: Signal,
  holds: (value: number) => boolean,
  from = 0,
  to = Number.POSITIVE_INFINITY,
): number {
  const found = values.findIndex((value, i) => {
    const at = time[i] as number;
    return at >= from && at < to && holds(value);
  });
  return found < 0 ? Number.POSITIVE_INFINITY : (time[found] as number);
}

/** The time from which `holds` is true up to the last sample before `to`; Infinity when it is not true at the end. */
export function lastingFrom(
  { time, values }: Signal,
  holds: (value: number) => boolean,
  from = 0,
  to = Number.POSITIVE_INFINITY,
): number {
  let since = Number.POSITIVE_INFINITY;
  values.forEach((value, i) => {
    const at = time[i] as number;
    if (at < from || at >= to) return;
    if (!holds(value)) since = Number.POSITIVE_INFINITY;
    else if (since === Number.POSITIVE_INFINITY) since = at;
  });
  return since;
}

/** The smallest over the largest of several signals at each time: 1 is equal (epsilon of Shu et al., section V-B). */
export function evenness(signals: readonly Signal[]): Signal {
  const [first] = signals;
  const values = (first?.values ?? []).map((_, i) => {
    const here = signals.map((signal) => signal.values[i] ?? 0);
    const most = Math.max(...here);
    return most > 0 ? Math.min(...here) / most : 1;
  });
  return { time: first?.time ?? [], values };
}

/** Mean, deviation and percentiles of a list; all undefined without samples. */
export function describe(values: readonly number[]) {
  if (values.length === 0) return undefined;
  const { mean, p50, p95, p99, max } = summarize(values);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  const sorted = [...values].sort((a, b) => a - b);
  const p1 = sorted[Math.floor(sorted.length / 100)] as number;
  return { mean, deviation: Math.sqrt(variance), p1, p50, p95, p99, max };
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Current rates of the flows, bit/s, by id. */
export function rates(series: Series): Record<string, Signal> {
  return Object.fromEntries(
    Object.entries(series.flows).map(([id, { rate_bps = [] }]) => [id, { time: series.time_s, values: rate_bps }]),
  );
}

/** Payload delivered by all flows together, bit/s in each interval. */
export function goodput(series: Series): Signal {
  return { time: series.time_s, values: total(Object.values(series.flows).map(({ goodput_bps = [] }) => goodput_bps)) };
}

/** Length of one queue ("sw:r:3"), bytes. */
export function queue(series: Series, name: string): Signal {
  return { time: series.time_s, values: series.queues[name]?.bytes ?? [] };
}

/** Named values without those that are not known. */
export function known(values: Readonly<Record<string, number | undefined>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, number] => entry[1] !== undefined),
  );
}
