/** A plot in the terms of Vega-Lite: layers of lines, points, bars and rules that share two axes and a legend. */
import type { Curve, Plot } from "./plot.js";

type Spec = Record<string, unknown>;

const kColors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222", "#8c6d1f"];
const kDashes = { solid: [1, 0], dashed: [7, 4], dotted: [2, 3] } as const;
const kInk = "#444";
/** A letter's width on average, px. */
const kLetter = 5.6;

/** Of `curve`, so that two with the same label stay two. */
interface Datum {
  curve: string;
  x: number;
  y: number | null;
  low?: number | null;
  high?: number | null;
}

/** What differs between plots; `size` of the area in px. */
export function layersOf(plot: Plot, size: { width: number; height: number }): Spec {
  const { curves, levels = [], marks = [], y_range } = plot;
  const x = xChannel(plot, size.width);
  const bars = curves.some(isBar);
  const empty = curves.length === 0;
  const scale = scaleOf(plot.y_scale, empty ? (y_range ?? [0, 1]) : y_range);
  const y = { field: "y", type: "quantitative", title: plot.y_label, scale, axis: { tickCount: 5 } };
  const color = { ...colorChannel(curves), legend: legendOf(curves, size.width, bars) };
  const strokeDash = { ...dashChannel(curves), legend: bars ? null : color.legend };
  const drawn = curves.map((curve, i) => ({ curve, data: { values: dataOf(curve, i, plot) } }));
  const side = bars ? { xOffset: { field: "curve", type: "nominal", sort: null } } : {};
  const within = levels.filter(({ value }) => y_range === undefined || (value >= y_range[0] && value <= y_range[1]));
  return {
    layer: [
      ...drawn.flatMap(({ curve, data }) => [
        { data, mark: markOf(curve), encoding: { x, y, color, ...(isBar(curve) ? side : { strokeDash }) } },
        ...(curve.low === undefined ? [] : [whiskers(data, x, y, isBar(curve) ? side : {})]),
      ]),
      ...within.flatMap(({ label, value }) => levelLayers(label, value)),
      ...(bars
        ? []
        : marks.filter(({ x: at }) => inRange(at, plot.x_range)).flatMap((one) => markLayers(one, plot.x_scale))),
      // Axes also where there is nothing to draw.
      ...(empty
        ? [{ data: { values: [{ x: 0, y: 0 }] }, mark: { type: "point", opacity: 0 }, encoding: { x, y } }]
        : []),
    ],
  };
}

function isBar({ kind }: Curve): boolean {
  return kind === "bars";
}

function dataOf({ x, y, low, high }: Curve, i: number, { x_scale, y_scale }: Plot): Datum[] {
  return x.flatMap((at, k) => {
    if (x_scale === "log" && !(at > 0)) return [];
    return [
      {
        curve: String(i),
        x: at,
        y: drawable(y[k], y_scale),
        ...(low !== undefined && { low: drawable(low[k], y_scale), high: drawable(high?.[k], y_scale) }),
      },
    ];
  });
}

function drawable(value: number | null | undefined, scale: Plot["y_scale"]): number | null {
  if (value === null || value === undefined || !Number.isFinite(value)) return null;
  return scale === "log" && value <= 0 ? null : value;
}

function scaleOf(type: "log" | undefined, domain: readonly [number, number] | undefined): Spec {
  return { ...(type !== undefined && { type }), ...(domain !== undefined && { domain }) };
}

function xChannel({ curves, x_label, x_names, x_range, x_scale }: Plot, width: number): Spec {
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
  const scale = { ...scaleOf(x_scale, x_range), nice: false, ...(x_scale === undefined && { zero: false }) };
  return { field: "x", type: "quantitative", title: x_label, scale, axis: { ...named, ...values, grid: false } };
}

function colorChannel(curves: readonly Curve[]): Spec {
  const range = curves.map(({ color }, i) => kColors[(color ?? i) % kColors.length]);
  return { field: "curve", type: "nominal", scale: { domain: curves.map((_, i) => String(i)), range } };
}

function dashChannel(curves: readonly Curve[]): Spec {
  const range = curves.map(({ style = "solid" }) => kDashes[style]);
  return { field: "curve", type: "nominal", scale: { domain: curves.map((_, i) => String(i)), range } };
}

/** Above the plot, in as many columns as its width holds. */
function legendOf(curves: readonly Curve[], width: number, bars: boolean): Spec | null {
  const labels = Object.fromEntries(curves.flatMap(({ label }, i) => (label === "" ? [] : [[String(i), label]])));
  const names = Object.values(labels);
  if (names.length === 0) return null;
  const widest = 34 + kLetter * Math.max(...names.map(({ length }) => length));
  const points = curves.every(({ kind }) => kind === "points");
  return {
    title: null,
    orient: "top",
    direction: "horizontal",
    columns: Math.max(1, Math.min(names.length, Math.floor(width / widest))),
    values: Object.keys(labels),
    labelExpr: `(${JSON.stringify(labels)})[datum.value]`,
    ...(bars
      ? { symbolType: "square", symbolStrokeWidth: 0 }
      : points
        ? {}
        : { symbolType: "stroke", symbolSize: 300 }),
  };
}

function markOf({ kind = "line", stepped = false }: Curve): Spec {
  if (kind === "bars") return { type: "bar", clip: true };
  if (kind === "points") return { type: "point", filled: true, size: 40, clip: true };
  // Points too: one between two gaps is no line.
  return { type: "line", clip: true, strokeWidth: 1.4, interpolate: stepped ? "step-after" : "linear" };
}

function whiskers(data: Spec, x: Spec, y: Spec, side: Spec): Spec {
  return {
    data,
    mark: { type: "rule", color: kInk, strokeWidth: 1.2, clip: true },
    encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, ...side },
  };
}

/** The name stands to the right of the axes. */
function levelLayers(label: string, value: number): Spec[] {
  const y = { datum: value, type: "quantitative" };
  const data = { values: [{}] };
  return [
    { data, mark: { type: "rule", strokeDash: [5, 4], color: kInk }, encoding: { y } },
    {
      data,
      mark: { type: "text", align: "left", dx: 5 },
      encoding: { y, x: { value: "width" }, text: { value: label } },
    },
  ];
}

function markLayers({ label, x: at }: { label: string; x: number }, scale: Plot["x_scale"]): Spec[] {
  const x = { datum: at, type: "quantitative", ...(scale !== undefined && { scale: { type: scale } }) };
  const data = { values: [{}] };
  const text = {
    type: "text",
    align: "left",
    baseline: "top",
    dx: 4,
    dy: 3,
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

function inRange(value: number, range: readonly [number, number] | undefined): boolean {
  return range === undefined || (value >= range[0] && value <= range[1]);
}
