/** Translates a plot into Vega-Lite: layers of lines, points, bars and rules that share two axes and a legend. */
import type { Curve, Plot } from "./plot.js";

type Spec = Record<string, unknown>;

const kColors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222", "#8c6d1f"];
const kDashes = { solid: [1, 0], dashed: [7, 4], dotted: [2, 3] } as const;
const kStyles = ["solid", "dashed", "dotted"] as const;
const kInk = "#444";
/** Width of a letter on average, and height of a line of text, px. */
const kLetter = 5.6;
const kLine = 14;

/** One point of a curve; `curve` keeps two with the same label apart. */
interface Datum {
  curve: string;
  x: number;
  y: number | null;
  low?: number | null;
  high?: number | null;
}

/** Parts of the specification that differ between plots; `size` of the area in px. */
export function layersOf(plot: Plot, size: { width: number; height: number }): Spec {
  const { curves, levels = [], marks = [], y_range } = plot;
  const x = xChannel(plot, size.width);
  const bars = curves.some(isBar);
  const empty = curves.length === 0;
  const scale = scaleOf(empty ? (y_range ?? [0, 1]) : y_range);
  const y = { field: "y", type: "quantitative", title: plot.y_label, scale, axis: { tickCount: 5 } };
  const color = { ...colorChannel(curves), legend: legendOf(curves, size.width, bars) };
  const strokeDash = { ...dashChannel(curves), legend: bars ? null : color.legend };
  const drawn = curves.map((curve, i) => ({ curve, data: { values: dataOf(curve, i) } }));
  const side = bars ? { xOffset: { field: "curve", type: "nominal", sort: null } } : {};
  const within = levels.filter(({ value }) => y_range === undefined || (value >= y_range[0] && value <= y_range[1]));
  return {
    layer: [
      ...drawn.flatMap(({ curve, data }) => [
        { data, mark: markOf(curve), encoding: { x, y, color, ...(isBar(curve) ? side : { strokeDash }) } },
        ...(curve.low === undefined ? [] : [whiskers(data, x, y, isBar(curve) ? side : {})]),
      ]),
      ...levelPlaces(plot, within, size.height).flatMap(levelLayers),
      ...(bars
        ? []
        : markPlaces(
            plot,
            marks.filter(({ x: at }) => inRange(at, plot.x_range)),
            size.width,
          ).flatMap(markLayers)),
      // Axes are drawn also where there is nothing to draw.
      ...(empty
        ? [{ data: { values: [{ x: 0, y: 0 }] }, mark: { type: "point", opacity: 0 }, encoding: { x, y } }]
        : []),
    ],
  };
}

function isBar({ kind }: Curve): boolean {
  return kind === "bars";
}

function dataOf({ x, y, low, high }: Curve, i: number): Datum[] {
  return x.map((at, k) => ({
    curve: String(i),
    x: at,
    y: drawable(y[k]),
    ...(low !== undefined && { low: drawable(low[k]), high: drawable(high?.[k]) }),
  }));
}

function drawable(value: number | null | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

function scaleOf(domain: readonly [number, number] | undefined): Spec {
  return domain === undefined ? {} : { domain };
}

function xChannel({ curves, x_label, x_names, x_range }: Plot, width: number): Spec {
  const names = Object.fromEntries((x_names ?? []).map(({ x, label }) => [x, label]));
  const named = x_names === undefined ? {} : { labelExpr: `(${JSON.stringify(names)})[datum.value]` };
  if (curves.some(isBar)) {
    const count = new Set(curves.flatMap(({ x }) => x)).size;
    const longest = Math.max(0, ...Object.values(names).map(({ length }) => length));
    const narrow = longest * kLetter > width / Math.max(1, count);
    const angle = narrow ? { labelAngle: -35 } : { labelAngle: 0 };
    return { field: "x", type: "ordinal", title: x_label, axis: { ...named, ...angle, grid: false } };
  }
  const values = x_names === undefined ? {} : { values: x_names.map(({ x }) => x) };
  const scale = { ...scaleOf(x_range), nice: false, zero: false };
  return { field: "x", type: "quantitative", title: x_label, scale, axis: { ...named, ...values, grid: false } };
}

function inkOf(color: number | undefined, position: number): string {
  return kColors[(color ?? position) % kColors.length] as string;
}

function colorChannel(curves: readonly Curve[]): Spec {
  const range = curves.map(({ color }, i) => inkOf(color, i));
  return { field: "curve", type: "nominal", scale: { domain: curves.map((_, i) => String(i)), range } };
}

function dashChannel(curves: readonly Curve[]): Spec {
  // Colours begin again after the last: the style tells curves of one colour apart.
  const range = curves.map(({ style, color }, i) => {
    const turn = color === undefined ? Math.floor(i / kColors.length) : 0;
    return kDashes[style ?? kStyles[turn % kStyles.length] ?? "solid"];
  });
  return { field: "curve", type: "nominal", scale: { domain: curves.map((_, i) => String(i)), range } };
}

/** The legend is above the plot, in as many columns as its width holds. */
function legendOf(curves: readonly Curve[], width: number, bars: boolean): Spec | null {
  const labels = Object.fromEntries(curves.flatMap(({ label }, i) => (label === "" ? [] : [[String(i), label]])));
  const names = Object.values(labels);
  if (names.length === 0) return null;
  const widest = 34 + kLetter * Math.max(...names.map(({ length }) => length));
  return {
    title: null,
    orient: "top",
    direction: "horizontal",
    columns: Math.max(1, Math.min(names.length, Math.floor(width / widest))),
    values: Object.keys(labels),
    labelExpr: `(${JSON.stringify(labels)})[datum.value]`,
    ...(bars ? { symbolType: "square", symbolStrokeWidth: 0 } : { symbolType: "stroke", symbolSize: 300 }),
  };
}

function markOf({ kind = "line", stepped = false }: Curve): Spec {
  if (kind === "bars") return { type: "bar", clip: true };
  // Points are drawn, too: one between two gaps is no line.
  return { type: "line", clip: true, strokeWidth: 1.4, interpolate: stepped ? "step-after" : "linear" };
}

function whiskers(data: Spec, x: Spec, y: Spec, side: Spec): Spec {
  return {
    data,
    mark: { type: "rule", color: kInk, strokeWidth: 1.2, clip: true },
    encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, ...side },
  };
}

interface LevelPlace {
  label: string;
  value: number;
  /** Distance of its name below its line, px. */
  lower: number;
}

/** Puts names below each other where lines are close; roughly, as Vega may round the axis up. */
function levelPlaces(plot: Plot, levels: Required<Plot>["levels"], height: number): LevelPlace[] {
  const values = plot.curves.flatMap(({ y, high = [] }) => [...y, ...high]).filter((value) => value !== null);
  const range = plot.y_range ?? extent([0, ...values, ...levels.map(({ value }) => value)]);
  let last = Number.NEGATIVE_INFINITY;
  return [...levels]
    .sort((a, b) => b.value - a.value)
    .map(({ label, value }) => {
      const at = height * (1 - partOf(value, range));
      last = Math.max(at, last + kLine);
      return { label, value, lower: last - at };
    });
}

/** The name stands to the right of the axes. */
function levelLayers({ label, value, lower }: LevelPlace): Spec[] {
  const y = { datum: value, type: "quantitative" };
  const data = { values: [{}] };
  return [
    { data, mark: { type: "rule", strokeDash: [5, 4], color: kInk }, encoding: { y } },
    {
      data,
      mark: { type: "text", align: "left", dx: 5, dy: lower },
      encoding: { y, x: { value: "width" }, text: { value: label } },
    },
  ];
}

interface MarkPlace {
  label: string;
  x: number;
  /** Line of text, counted from the top. */
  line: number;
  /** The name stands to the left, where the axes end soon. */
  left: boolean;
}

/** Puts each name into the first line that is free there. */
function markPlaces(plot: Plot, marks: Required<Plot>["marks"], width: number): MarkPlace[] {
  const range = plot.x_range ?? extent([...plot.curves.flatMap(({ x }) => x), ...marks.map(({ x }) => x)]);
  const ends: number[] = [];
  return [...marks]
    .sort((a, b) => a.x - b.x)
    .map(({ label, x }) => {
      const at = width * partOf(x, range);
      const wide = label.length * kLetter + kLine;
      const left = at + wide > width;
      const start = left ? at - wide : at;
      const free = ends.findIndex((end) => end <= start);
      const line = free < 0 ? ends.length : free;
      ends[line] = start + wide;
      return { label, x, line, left };
    });
}

function markLayers({ label, x: at, line, left }: MarkPlace): Spec[] {
  const x = { datum: at, type: "quantitative" };
  const data = { values: [{}] };
  const text = {
    type: "text",
    align: left ? "right" : "left",
    baseline: "top",
    dx: left ? -4 : 4,
    dy: 3 + line * kLine,
    stroke: "white",
    strokeWidth: 3,
    strokeJoin: "round",
  };
  const encoding = { x, y: { value: 0 }, text: { value: label } };
  return [
    { data, mark: { type: "rule", strokeDash: [2, 3], color: kInk }, encoding: { x } },
    // A halo keeps it legible on top of curves.
    { data, mark: text, encoding },
    { data, mark: { ...text, stroke: null, color: "#222" }, encoding },
  ];
}

/** Place of a value between the ends of an axis, 0 to 1. */
function partOf(value: number, [low, high]: readonly [number, number]): number {
  const part = (value - low) / (high - low);
  return Number.isFinite(part) ? part : 0;
}

function extent(values: readonly number[]): [number, number] {
  return values.reduce<[number, number]>(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
}

function inRange(value: number, range: readonly [number, number] | undefined): boolean {
  return range === undefined || (value >= range[0] && value <= range[1]);
}
