/** Charts of how long queues of finished runs were, and for which part of the time. */
import { queueCdf } from "../../../src/result/queue_cdf.js";
import type { Loaded } from "../data/recording.js";
import type { Look } from "./palette.js";
import type { Panel } from "./panel.js";

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
  const ends = drawn.map(({ points }) => axisEnd(points));
  const until = ends.reduce((most, end) => Math.max(most, end), 0) || 1;
  const x = [...new Set([0, ...drawn.flatMap(({ points }) => points.map(([length]) => length))])].sort((a, b) => a - b);
  return {
    id,
    title,
    note: ["Fraction of the time at or below a length", ...beyond(drawn, until)].join("; "),
    unit: "",
    legend: true,
    lines: drawn.map(({ label, look }) => ({ ...look, label })),
    fixed: { x, unit: "KB", ys: drawn.map(({ points }) => atOrBelow(points, x)), until },
    most: 1,
    height: 150,
  };
}

type Points = ReturnType<typeof queueCdf>;

/** Lengths that a queue stays below for so much of the time decide where the axis ends, if the longest is more than `kFar` times them. */
const kUsual = 0.99;
const kFar = 2;
/** Room beyond these lengths. */
const kRoom = 1.25;

/** One burst, such as that of all senders at line rate, would press the rest against the left edge. */
function axisEnd(points: Points): number {
  const longest = points.at(-1)?.[0] ?? 0;
  const usual = points.find(([, fraction]) => fraction >= kUsual)?.[0] ?? longest;
  return usual > 0 && longest > kFar * usual ? kRoom * usual : longest;
}

/** Says for how much of the time queues were longer than the axis shows, and how long. */
function beyond(drawn: readonly { label: string; points: Points }[], until: number): string[] {
  return drawn.flatMap(({ label, points }) => {
    const longest = points.at(-1)?.[0] ?? 0;
    if (longest <= until) return [];
    const left = 1 - (points.findLast(([length]) => length <= until)?.[1] ?? 0);
    const share = Number((100 * left).toPrecision(2));
    const whose = drawn.length > 1 ? `${label} ` : "";
    return [`${whose}beyond the axis for ${share} % of it, up to ${Math.round(longest)} KB`];
  });
}

/** Samples a step function, which is 0 before the first point. */
function atOrBelow(points: Points, x: readonly number[]): number[] {
  let next = 0;
  let fraction = 0;
  return x.map((length) => {
    for (; next < points.length && (points[next]?.[0] as number) <= length; next++) fraction = points[next]?.[1] ?? 0;
    return fraction;
  });
}
