/** Draws how far the message graphs of several runs had come at each time: a picture that needs no script. */
import { formatTime } from "../../base/units.js";
import type { GraphResult } from "../graph_result.js";
import { escapeHtml } from "./markup.js";
import type { NamedRun } from "./overlay.js";

const kWidth = 720;
const kHeight = 260;
const kMargin = { left: 56, right: 16, top: 12, bottom: 28 };
/** There are no more colours in the theme: further runs take the first again, with other dashes. */
const kColors = 8;
const kDashes = ["", "7 3", "2 3"] as const;
const kIdeal = { color: "var(--soft)", dash: "1 4" };

interface Curve {
  label: string;
  /** When it had come to each of `steps` equal parts, s. */
  times: readonly number[];
  steps: number;
  color: string;
  dash: string;
  /** When all had ended; undefined: not all did. */
  end: number | undefined;
}

/** One figure for each message graph that several runs have, with a curve for each of them and for the ideal network. */
export function progressFigures(runs: readonly NamedRun[]): string {
  const ids = new Set(runs.flatMap(({ result }) => result.graphs?.map(({ id }) => id) ?? []));
  return [...ids].map((id) => progressFigure(id, curvesOf(id, runs))).join("\n");
}

function curvesOf(id: string, runs: readonly NamedRun[]): Curve[] {
  const found = runs.flatMap(({ label, result }, position) => {
    const graph = result.graphs?.find((one) => one.id === id);
    return graph?.progress === undefined ? [] : [{ label, position, graph, progress: graph.progress }];
  });
  if (found.length < 2) return [];
  const own = found.map(({ label, position, graph, progress: { steps, reached_s } }): Curve => {
    const dash = kDashes[Math.floor(position / kColors) % kDashes.length] as string;
    return { label, times: reached_s, steps, color: `var(--c${position % kColors})`, dash, end: graph.time_s };
  });
  return [...own, ...idealCurves(found)];
}

/** The ideal network, where it is the same for all: runs of other links or other graphs have others. */
function idealCurves(
  found: readonly { graph: GraphResult; progress: NonNullable<GraphResult["progress"]> }[],
): Curve[] {
  const [first] = found;
  if (first === undefined || found.some(({ graph }) => graph.ideal_s !== first.graph.ideal_s)) return [];
  const { steps, ideal_s } = first.progress;
  return [{ label: "ideal network", times: ideal_s, steps, ...kIdeal, end: first.graph.ideal_s }];
}

function progressFigure(id: string, curves: readonly Curve[]): string {
  const last = Math.max(0, ...curves.flatMap(({ times }) => times.at(-1) ?? 0));
  if (last === 0) return "";
  const x = (seconds: number) => kMargin.left + ((kWidth - kMargin.left - kMargin.right) * seconds) / last;
  const y = (part: number) => kMargin.top + (kHeight - kMargin.top - kMargin.bottom) * (1 - part);
  const parts = [0, 0.25, 0.5, 0.75, 1];
  const levels = parts.map(
    (part) =>
      `<line class="grid" x1="${kMargin.left}" x2="${kWidth - kMargin.right}" y1="${y(part).toFixed(1)}" y2="${y(part).toFixed(1)}"/>` +
      `<text x="${kMargin.left - 6}" y="${y(part).toFixed(1)}" dy="0.35em" text-anchor="end">${100 * part}%</text>`,
  );
  const times = parts.map(
    (part) =>
      `<text x="${x(part * last).toFixed(1)}" y="${kHeight - 8}" text-anchor="${part === 1 ? "end" : "middle"}">${timeText(part * last)}</text>`,
  );
  // Each part stands until the next has ended.
  const paths = curves.map(({ label, times: reached, steps, color, dash, end }) => {
    const stairs = reached.map((at, step) => `H${x(at).toFixed(2)}V${y((step + 1) / steps).toFixed(2)}`).join("");
    const dashes = dash === "" ? "" : ` stroke-dasharray="${dash}"`;
    return `<path d="M${x(0).toFixed(2)} ${y(0).toFixed(2)}${stairs}" fill="none" stroke="${color}" stroke-width="1.6"${dashes}><title>${escapeHtml(`${label}: ${endText(end)}`)}</title></path>`;
  });
  const legend = curves.map(
    ({ label, color, end }) =>
      `<span><i style="background:${color}"></i>${escapeHtml(`${label}, ${endText(end)}`)}</span>`,
  );
  const title = `Progress of ${escapeHtml(id)}`;
  return `<figure class="bars">
<figcaption><h3>${title}</h3><p>Part of all receives and calculations that had ended, by time from the start of the graph. ${legend.join(" ")}</p></figcaption>
<svg viewBox="0 0 ${kWidth} ${kHeight}" role="img" aria-label="${title}; times in the table of message graphs">
${levels.join("\n")}
${paths.join("\n")}
${times.join("")}
</svg>
</figure>`;
}

const timeText = (seconds: number) => formatTime(Math.round(seconds * 1e9), 4);
const endText = (seconds: number | undefined) => (seconds === undefined ? "not ended" : timeText(seconds));
