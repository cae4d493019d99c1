/** Distance between two curves of the same thing. */
import type { TraceValues } from "./experiment.js";

/**
 * Mean of |a - b| over the part of `range` that both cover, in the unit of y: at the places of either, straight between them, and
 * weighted by distance. NaN where they have no part in common.
 */
export function meanDifference(a: TraceValues, b: TraceValues, range: readonly [number, number]): number {
  const from = Math.max(range[0], a.x[0] ?? Number.NaN, b.x[0] ?? Number.NaN);
  const to = Math.min(range[1], a.x.at(-1) ?? Number.NaN, b.x.at(-1) ?? Number.NaN);
  if (!(from < to)) return Number.NaN;
  const places = [...new Set([from, ...a.x, ...b.x, to])].filter((x) => x >= from && x <= to).sort((p, q) => p - q);
  const [left, right] = [walk(a), walk(b)];
  const apart = places.map((x) => Math.abs(left(x) - right(x)));
  let area = 0;
  for (let i = 1; i < places.length; i++) {
    area +=
      (((apart[i - 1] as number) + (apart[i] as number)) / 2) * ((places[i] as number) - (places[i - 1] as number));
  }
  return area / (to - from);
}

/** The curve at increasing places, straight between its points. */
function walk({ x, y }: TraceValues): (at: number) => number {
  let i = 0;
  return (at) => {
    while (i + 2 < x.length && (x[i + 1] as number) < at) i++;
    const [x0, x1] = [x[i] as number, x[i + 1] ?? (x[i] as number)];
    const [y0, y1] = [y[i] as number, y[i + 1] ?? (y[i] as number)];
    return x1 > x0 ? y0 + ((y1 - y0) * (at - x0)) / (x1 - x0) : y0;
  };
}
