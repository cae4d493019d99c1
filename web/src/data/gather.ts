/**
 * Gathers samples of recordings for drawing: those in view on one axis, thinned to as many as a screen can show. Thinning keeps
 * what matters: the largest length of a queue, how often events came.
 */
import type { Recording } from "./recording.js";

/** Rule by which several samples become one point. "per ms" and "per s": counts by the time they took. */
export type Fold = "last" | "mean" | "max" | "min" | "per ms" | "per s";

type Across = "sum" | "mean" | "max" | "min";

/** One curve: a column, or several that are combined. */
export interface Curve {
  recording: Recording;
  columns: readonly number[];
  across: Across;
  fold: Fold;
}

export interface Gathered {
  x: number[];
  ys: (number | null)[][];
}

export function largest(values: readonly (number | null)[], from = 0): number {
  let most = 0;
  for (let i = from; i < values.length; i++) most = Math.max(most, values[i] ?? 0);
  return most;
}

export type Range = readonly [from: number, to: number];

/**
 * @param until Later samples are left out.
 * @param most Approximate number of points on the axis.
 */
export function gather(curves: readonly Curve[], range: Range, until: number, most: number): Gathered {
  const recordings = [...new Set(curves.map(({ recording }) => recording))];
  const [only] = recordings;
  if (only === undefined) return { x: [], ys: [] };
  const thinned = new Map(recordings.map((recording) => [recording, thin(recording, range, until, most)]));
  if (recordings.length === 1) {
    const grid = thinned.get(only) as Thinned;
    return { x: grid.x, ys: curves.map((curve) => valuesOf(curve, grid)) };
  }
  const x = [...new Set([...thinned.values()].flatMap((grid) => grid.x))].sort((a, b) => a - b);
  return {
    x,
    ys: curves.map((curve) => {
      const grid = thinned.get(curve.recording) as Thinned;
      return onAxis(x, grid.x, valuesOf(curve, grid));
    }),
  };
}

/** Groups of samples: point i is samples [starts[i], starts[i + 1]). */
interface Thinned {
  x: number[];
  starts: number[];
}

function thin({ columns }: Recording, [from, to]: Range, until: number, most: number): Thinned {
  const { time } = columns;
  // One sample more on either side lets curves reach the edges.
  const begin = Math.max(0, lowerBound(time, from) - 1);
  const end = Math.min(lowerBound(time, to) + 2, lowerBound(time, until) + 1, time.length);
  const step = Math.max(1, Math.ceil((end - begin) / most));
  const x: number[] = [];
  const starts: number[] = [];
  for (let at = begin; at < end; at += step) {
    starts.push(at);
    x.push(time[Math.min(end, at + step) - 1] as number);
  }
  starts.push(end);
  return { x, starts };
}

function valuesOf({ recording, columns, across, fold }: Curve, { x, starts }: Thinned): (number | null)[] {
  const { time } = recording.columns;
  const sources = columns.map((index) => recording.columns.column(index));
  return x.map((_, i) => {
    let folded = Number.NaN;
    /** Time of the samples with a value, ms: they differ. */
    let took = 0;
    for (let at = starts[i] as number; at < (starts[i + 1] as number); at++) {
      const value = acrossAll(sources, at, across);
      if (Number.isNaN(value)) continue;
      const interval = intervalOf(time, at);
      took += interval;
      if (fold === "last") folded = value;
      else if (fold === "max" || fold === "min") folded = joined(folded, value, fold);
      else folded = joined(folded, fold === "mean" ? value * interval : value, "sum");
    }
    if (took === 0) return null;
    if (fold === "last" || fold === "max" || fold === "min") return folded;
    return (fold === "per s" ? 1000 * folded : folded) / took;
  });
}

/** Time since the sample before, ms; the first takes as long as the next, an only one 1. */
function intervalOf(time: Float64Array, at: number): number {
  const end = Math.max(1, at);
  return end < time.length ? (time[end] as number) - (time[end - 1] as number) : 1;
}

/** Combines those columns that have a value. */
function acrossAll(sources: readonly Float32Array[], at: number, across: Across): number {
  let value = Number.NaN;
  let known = 0;
  for (const source of sources) {
    const one = source[at] as number;
    if (Number.isNaN(one)) continue;
    known++;
    value = joined(value, one, across === "mean" ? "sum" : across);
  }
  return across === "mean" ? value / known : value;
}

function joined(soFar: number, value: number, how: Exclude<Across, "mean">): number {
  if (Number.isNaN(value)) return soFar;
  if (Number.isNaN(soFar)) return value;
  return how === "sum" ? soFar + value : Math[how](soFar, value);
}

/** Values on another axis that has all of their times: between two samples of its own each curve goes straight. */
function onAxis(axis: readonly number[], times: readonly number[], values: readonly (number | null)[]) {
  let at = 0;
  return axis.map((time): number | null => {
    while (at < times.length && (times[at] as number) < time) at++;
    const here = values[at] ?? null;
    const next = times[at];
    const before = times[at - 1];
    if (next === undefined || next === time) return next === undefined ? null : here;
    const previous = values[at - 1] ?? null;
    if (before === undefined || previous === null || here === null) return null;
    return previous + ((here - previous) * (time - before)) / (next - before);
  });
}

/** Position of the first element that is not less. */
function lowerBound(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
