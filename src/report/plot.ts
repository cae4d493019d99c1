/**
 * Pictures that need no script: axes with units, curves, levels, marks, as one SVG file. Colours are those of Okabe and Ito, which
 * remain apart for colour-blind readers; curves also differ by line style where they are of different kinds.
 */
import { downsample } from "./downsample.js";
import { escapeHtml } from "./html.js";

export interface Curve {
  label: string;
  x: readonly number[];
  /** null: nothing known there. */
  y: readonly (number | null)[];
  /** Counts from 0; default: the position. */
  color?: number;
  style?: "solid" | "dashed" | "dotted";
  /** Each value stands until the next. */
  stepped?: boolean;
}

export interface Plot {
  title: string;
  x_label: string;
  y_label: string;
  /** Names of places on the x axis, instead of numbers. */
  x_names?: readonly { x: number; label: string }[];
  /** Default: what the curves need. */
  x_range?: readonly [number, number];
  y_range?: readonly [number, number];
  curves: readonly Curve[];
  /** Horizontal lines, such as the set point of a queue. */
  levels?: readonly { label: string; value: number }[];
  /** Vertical lines, such as the time of a change. */
  marks?: readonly { label: string; x: number }[];
}

/** Plots below each other under one heading. */
export interface PlotColumn {
  heading: string;
  plots: readonly Plot[];
}

const kColors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222", "#8c6d1f"];
const kDashes = { solid: "", dashed: "7 4", dotted: "2 3" } as const;
const kPlot = { width: 690, height: 270 };
/** Names of levels stand to the right of the axes. */
const kInset = { left: 62, right: 92, top: 46, bottom: 40 };
const kHeading = 30;
/** Points of a curve: three times as many as there are pixels show every extreme. */
const kPoints = 1600;
const kFont = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const kLegendStep = { swatch: 22, gap: 14, letter: 6.2 };

/** The columns side by side; `title` is what a reader without the picture gets. */
export function drawFigure(title: string, columns: readonly PlotColumn[]): string {
  const rows = Math.max(0, ...columns.map(({ plots }) => plots.length));
  const width = kPlot.width * columns.length;
  const height = kHeading + kPlot.height * rows;
  const drawn = columns.flatMap(({ heading, plots }, column) => {
    const left = column * kPlot.width;
    const head = text(left + kInset.left, 21, heading, 'font-size="15" font-weight="600"');
    return [head, ...plots.map((plot, row) => drawPlot(plot, left, kHeading + row * kPlot.height))];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="${kFont}" font-size="12" fill="#222">
<title>${escapeHtml(title)}</title>
<rect width="${width}" height="${height}" fill="#fff"/>
${drawn.join("\n")}
</svg>
`;
}

interface Frame {
  left: number;
  right: number;
  top: number;
  bottom: number;
  x: (value: number) => number;
  y: (value: number) => number;
}

function drawPlot(plot: Plot, left: number, top: number): string {
  const curves = plot.curves.map(thin);
  const xs = plot.x_range ?? extent(curves.flatMap(({ x }) => [x[0] ?? 0, x.at(-1) ?? 0]));
  const ys = plot.y_range ?? heightOf(plot, curves);
  const frame = frameOf(left, top, xs, ys);
  const clip = `clip-${left}-${top}`;
  return `<g>
${text(left + kInset.left, top + 16, plot.title, 'font-weight="600"')}
${legend(plot.curves, left + kInset.left, top + 33)}
<clipPath id="${clip}"><rect x="${frame.left}" y="${frame.top}" width="${frame.right - frame.left}" height="${frame.bottom - frame.top}"/></clipPath>
${axes(plot, frame, xs, ys)}
<g clip-path="url(#${clip})" fill="none" stroke-width="1.4" stroke-linejoin="round">
${curves.map((curve, i) => path(curve, i, frame)).join("\n")}
</g>
${levels(plot, frame, ys)}
${marks(plot, frame, xs)}
</g>`;
}

function frameOf(left: number, top: number, xs: readonly [number, number], ys: readonly [number, number]): Frame {
  const box = {
    left: left + kInset.left,
    right: left + kPlot.width - kInset.right,
    top: top + kInset.top,
    bottom: top + kPlot.height - kInset.bottom,
  };
  const part = (value: number, [low, high]: readonly [number, number]) => (value - low) / (high - low || 1);
  return {
    ...box,
    x: (value) => box.left + part(value, xs) * (box.right - box.left),
    y: (value) => box.bottom - part(value, ys) * (box.bottom - box.top),
  };
}

function axes(plot: Plot, frame: Frame, xs: readonly [number, number], ys: readonly [number, number]): string {
  const { left, right, top, bottom } = frame;
  const horizontal = ticks(ys, 5).map((value) => {
    const y = round(frame.y(value));
    return `<line x1="${left}" x2="${right}" y1="${y}" y2="${y}" stroke="#e3e6ea"/>${text(left - 7, y + 4, label(value), 'text-anchor="end"')}`;
  });
  const places = plot.x_names ?? ticks(xs, 8).map((x) => ({ x, label: label(x) }));
  const vertical = places.map(({ x: value, label: name }) => {
    const x = round(frame.x(value));
    return `<line x1="${x}" x2="${x}" y1="${bottom}" y2="${bottom + 4}" stroke="#666"/>${text(x, bottom + 17, name, 'text-anchor="middle"')}`;
  });
  const middle = (top + bottom) / 2;
  return [
    ...horizontal,
    ...vertical,
    `<path d="M${left} ${top}V${bottom}H${right}" fill="none" stroke="#666"/>`,
    text((left + right) / 2, bottom + 33, plot.x_label, 'text-anchor="middle"'),
    text(left - 48, middle, plot.y_label, `text-anchor="middle" transform="rotate(-90 ${left - 48} ${middle})"`),
  ].join("\n");
}

function path({ x, y, color, style = "solid", stepped = false }: Curve, position: number, frame: Frame): string {
  let steps = "";
  let pen = false;
  x.forEach((at, i) => {
    const value = y[i];
    if (value === null || value === undefined || !Number.isFinite(value)) {
      pen = false;
      return;
    }
    const [px, py] = [round(frame.x(at)), round(frame.y(value))];
    steps += pen ? (stepped ? `H${px}V${py}` : `L${px} ${py}`) : `M${px} ${py}`;
    pen = true;
  });
  const dash = kDashes[style] === "" ? "" : ` stroke-dasharray="${kDashes[style]}"`;
  return `<path d="${steps}" stroke="${ink(color ?? position)}"${dash}/>`;
}

function levels(plot: Plot, frame: Frame, [low, high]: readonly [number, number]): string {
  const within = (plot.levels ?? []).filter(({ value }) => value >= low && value <= high);
  return within
    .map(({ label: name, value }) => {
      const y = round(frame.y(value));
      return `<line x1="${frame.left}" x2="${frame.right}" y1="${y}" y2="${y}" stroke="#444" stroke-dasharray="5 4"/>${text(frame.right + 5, y + 4, name, 'font-size="11"')}`;
    })
    .join("\n");
}

function marks(plot: Plot, frame: Frame, [low, high]: readonly [number, number]): string {
  const within = (plot.marks ?? []).filter(({ x }) => x >= low && x <= high);
  return within
    .map(({ label: name, x: at }) => {
      const x = round(frame.x(at));
      return `<line x1="${x}" x2="${x}" y1="${frame.top}" y2="${frame.bottom}" stroke="#444" stroke-dasharray="2 3"/>${haloed(x + 4, frame.top + 11, name, "")}`;
    })
    .join("\n");
}

function legend(curves: readonly Curve[], left: number, y: number): string {
  let x = left;
  return curves
    .map(({ label: name, color, style = "solid" }, i) => {
      if (name === "") return "";
      const at = x;
      x += kLegendStep.swatch + name.length * kLegendStep.letter + kLegendStep.gap;
      const dash = kDashes[style] === "" ? "" : ` stroke-dasharray="${kDashes[style]}"`;
      return `<line x1="${round(at)}" x2="${round(at + 17)}" y1="${y}" y2="${y}" stroke="${ink(color ?? i)}" stroke-width="2"${dash}/>${text(at + kLegendStep.swatch, y + 4, name, "")}`;
    })
    .join("");
}

/** As many points as can be seen; peaks stay. */
function thin(curve: Curve): Curve {
  const { x, ys } = downsample({ x: [...curve.x], ys: [[...curve.y]] }, kPoints);
  return { ...curve, x, y: ys[0] ?? [] };
}

function heightOf(plot: Plot, curves: readonly Curve[]): [number, number] {
  const values = curves.flatMap(({ y }) =>
    y.filter((value): value is number => value !== null && Number.isFinite(value)),
  );
  const all = [...values, ...(plot.levels ?? []).map(({ value }) => value)];
  const high = all.reduce((most, value) => Math.max(most, value), 0);
  const low = all.reduce((least, value) => Math.min(least, value), 0);
  return [low, high === low ? low + 1 : high + (high - low) * 0.06];
}

function extent(values: readonly number[]): [number, number] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  return Number.isFinite(low) && high > low ? [low, high] : [0, 1];
}

/** About `wanted` round numbers in a range. */
export function ticks([low, high]: readonly [number, number], wanted: number): number[] {
  const raw = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 2.5, 5, 10].find((one) => one * power >= raw * 0.999) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, i) => (first + i) * step);
}

function label(value: number): string {
  return String(Number(value.toPrecision(6)));
}

function ink(color: number): string {
  return kColors[color % kColors.length] as string;
}

function round(value: number): number {
  return Number(value.toFixed(1));
}

function text(x: number, y: number, content: string, attributes: string): string {
  return `<text x="${round(x)}" y="${round(y)}"${attributes === "" ? "" : ` ${attributes}`}>${escapeHtml(content)}</text>`;
}

/** Legible on top of curves. */
function haloed(x: number, y: number, content: string, attributes: string): string {
  return text(x, y, content, `${attributes} stroke="#fff" stroke-width="3" paint-order="stroke" font-size="11"`);
}
