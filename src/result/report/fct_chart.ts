/** Draws slowdown by size of transfer, and other figures of several, as bars: a picture that needs no script. */

import type { FctResult } from "../result.js";
import { sizeClass } from "./completion_classes.js";
import { fixed } from "./format.js";
import { escapeHtml } from "./markup.js";

const kWidth = 720;
const kHeight = 260;
const kMargin = { left: 48, right: 8, top: 12, bottom: 40 };
const kLines = [
  { key: "p50", color: "var(--c0)" },
  { key: "p95", color: "var(--c1)" },
  { key: "p99", color: "var(--c3)" },
] as const;
const kGroupFill = 0.75;

/** A figure with the median, 95th and 99th percentile of each size class; empty without completion times. */
export function fctFigure(fct: FctResult | undefined): string {
  if (fct === undefined) return "";
  return barFigure({
    title: "Slowdown by size",
    caption: "Completion time / that in the empty network; under each size the number of transfers.",
    names: kLines.map(({ key }) => key),
    colors: kLines.map(({ color }) => color),
    groups: fct.bins.map((bin) => ({
      label: sizeClass(bin),
      note: String(bin.count),
      values: kLines.map(({ key }) => bin.slowdown[key]),
    })),
  });
}

export interface BarFigure {
  title: string;
  caption: string;
  /** Names of the bars of each group, and their colors. */
  names: readonly string[];
  colors: readonly string[];
  /** Groups with a `note` below the label. A value that is not known has no bar. */
  groups: readonly { label: string; note: string; values: readonly (number | undefined)[] }[];
}

/** Groups of bars beside each other; empty without groups. */
export function barFigure({ title, caption, names, colors, groups }: BarFigure): string {
  if (groups.length === 0) return "";
  const top = niceCeiling(Math.max(...groups.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const plotHeight = kHeight - kMargin.top - kMargin.bottom;
  const group = (kWidth - kMargin.left - kMargin.right) / groups.length;
  const y = (value: number) => kMargin.top + plotHeight * (1 - value / top);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = y(part * top).toFixed(1);
    return (
      `<line class="grid" x1="${kMargin.left}" x2="${kWidth - kMargin.right}" y1="${at}" y2="${at}"/>` +
      `<text x="${kMargin.left - 6}" y="${at}" dy="0.35em" text-anchor="end">${fixed(part * top)}</text>`
    );
  });
  const bars = groups.map(({ label, note, values }, i) => {
    const width = (group * kGroupFill) / names.length;
    const left = kMargin.left + group * (i + (1 - kGroupFill) / 2);
    const drawn = values.map((value, k) => {
      if (value === undefined) return "";
      const at = y(value);
      return (
        `<rect x="${(left + k * width).toFixed(1)}" y="${at.toFixed(1)}" width="${(width - 2).toFixed(1)}" ` +
        `height="${(kMargin.top + plotHeight - at).toFixed(1)}" fill="${colors[k]}">` +
        `<title>${escapeHtml(names[k] ?? "")} ${fixed(value)}</title></rect>`
      );
    });
    const middle = (kMargin.left + group * (i + 0.5)).toFixed(1);
    const text =
      `<text x="${middle}" y="${kHeight - 22}" text-anchor="middle">${escapeHtml(label)}</text>` +
      `<text x="${middle}" y="${kHeight - 7}" text-anchor="middle" class="soft">${escapeHtml(note)}</text>`;
    return drawn.join("") + text;
  });
  const legend = names
    .map((name, k) => `<span><i style="background:${colors[k]}"></i>${escapeHtml(name)}</span>`)
    .join(" ");
  return `<figure class="bars">
<figcaption><h3>${escapeHtml(title)}</h3><p>${escapeHtml(caption)} ${legend}</p></figcaption>
<svg viewBox="0 0 ${kWidth} ${kHeight}" role="img" aria-label="${escapeHtml(title)}; figures in the table below">
${ticks.join("")}
${bars.join("\n")}
</svg>
</figure>`;
}

/** Returns the next of 1, 2, 2.5, 5 times a power of ten. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return power * ([1, 2, 2.5, 5, 10].find((step) => step * power >= value) ?? 10);
}
