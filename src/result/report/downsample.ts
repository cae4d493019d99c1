/** Thins series for drawing so that no peak is lost. */

/** Values on one shared time axis; null where nothing was sampled. */
export interface Columns {
  x: number[];
  ys: (number | null)[][];
}

/**
 * Returns at most `limit` samples (even, at least 2): consecutive samples form buckets, and each bucket keeps the smallest and the largest
 * value of every column, in the order in which they came. Shorter columns are returned unchanged.
 */
export function downsample({ x, ys }: Columns, limit = 5000): Columns {
  if (x.length <= limit) return { x, ys };
  const buckets = Math.floor(limit / 2);
  const starts = Array.from({ length: buckets + 1 }, (_, i) => Math.floor((i * x.length) / buckets));
  const spans = starts.slice(0, -1).map((from, i) => [from, starts[i + 1] as number] as const);
  return {
    x: spans.flatMap(([from, to]) => [x[from] as number, x[(from + to) >> 1] as number]),
    ys: ys.map((values) => spans.flatMap(([from, to]) => extremes(values, from, to))),
  };
}

function extremes(values: readonly (number | null)[], from: number, to: number): [number | null, number | null] {
  let low = -1;
  let high = -1;
  for (let i = from; i < to; i++) {
    const value = values[i];
    if (value === null || value === undefined) continue;
    if (low < 0 || value < (values[low] as number)) low = i;
    if (high < 0 || value > (values[high] as number)) high = i;
  }
  if (low < 0) return [null, null];
  const pair = low < high ? [values[low], values[high]] : [values[high], values[low]];
  return pair as [number, number];
}
