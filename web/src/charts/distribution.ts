/** How long queues of finished runs were, and for which part of the time. */
import { queueCdf } from "../../../src/result/queue_cdf.js";
import type { Loaded } from "../data/recording.js";
import type { Look } from "./palette.js";
import type { Panel } from "./panels.js";

/** A queue of a run. */
interface Distribution {
  run: Loaded;
  queue: string;
  label: string;
  look: Look;
}

export function cdfPanel(id: string, title: string, curves: readonly Distribution[]): Panel {
  const drawn = curves.map(({ run: { result }, queue, ...line }) => {
    const series = result.series;
    return { ...line, points: series === undefined ? [] : queueCdf({ result, series }, queue) };
  });
  const x = [...new Set([0, ...drawn.flatMap(({ points }) => points.map(([length]) => length))])].sort((a, b) => a - b);
  return {
    id,
    title,
    note: "Fraction of the time at or below a length",
    unit: "",
    legend: true,
    lines: drawn.map(({ label, look }) => ({ ...look, label })),
    fixed: { x, unit: "KB", ys: drawn.map(({ points }) => atOrBelow(points, x)) },
    most: 1,
    height: 150,
  };
}

/** A step function: 0 before the first point. */
function atOrBelow(points: ReturnType<typeof queueCdf>, x: readonly number[]): number[] {
  let next = 0;
  let fraction = 0;
  return x.map((length) => {
    for (; next < points.length && (points[next]?.[0] as number) <= length; next++) fraction = points[next]?.[1] ?? 0;
    return fraction;
  });
}
