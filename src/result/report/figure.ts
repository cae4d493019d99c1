/**
 * Figures for print and for pages without a script: curves, points and bars with units on their axes, drawn by Vega-Lite as SVG. The
 * same figure gives the same bytes.
 */
import type { TopLevelSpec } from "vega-lite";
import { downsample } from "./downsample.js";
import { escapeHtml } from "./markup.js";
import type { Curve, Plot, PlotColumn } from "./plot.js";
import { layersOf } from "./plot_layers.js";
import { markParts } from "./plot_parts.js";

/** Fonts that have the metrics of Arial. */
const kFont = "Arimo, 'Liberation Sans', Arial, Helvetica, sans-serif";
const kPlot = { width: 540, height: 190 };
/** More than two plots beside each other are too small on a page. */
const kColumns = 2;
/** Points of a curve: three times as many as there are pixels show every extreme. */
const kPoints = 1600;

const kConfig = {
  font: kFont,
  background: "white",
  view: { stroke: null },
  axis: { titleFontWeight: "normal", gridColor: "#e3e6ea", domainColor: "#666", tickColor: "#666", labelLimit: 400 },
  title: { fontSize: 12, fontWeight: 600, anchor: "start", frame: "group" },
  concat: { spacing: 24 },
  legend: { labelLimit: 500, symbolStrokeWidth: 2 },
} as const;

/** Gives every plot scales and a legend of its own. */
const kEachItsOwn = { scale: { color: "independent", strokeDash: "independent", xOffset: "independent" } } as const;

/** Draws two columns side by side, others below them; `title` is the text for a reader without the picture. */
export async function drawFigure(title: string, columns: readonly PlotColumn[]): Promise<string> {
  const named = `<title>${escapeHtml(title)}</title>`;
  const filled = columns.filter(({ plots }) => plots.length > 0);
  if (filled.length === 0)
    return `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1" role="img">${named}</svg>\n`;
  // These modules take a third of a second to load, so they are loaded only where something is drawn.
  const [vega, { compile }] = await Promise.all([import("vega"), import("vega-lite")]);
  const figure = {
    config: kConfig,
    columns: kColumns,
    concat: filled.map(({ heading, plots }) => ({
      title: { text: heading, fontSize: 15, offset: 12 },
      vconcat: plots.map(plotSpec),
      resolve: kEachItsOwn,
    })),
    resolve: kEachItsOwn,
  };
  const { spec } = compile(figure as TopLevelSpec, { logger: vega.logger(vega.Error) });
  vega.resetSVGDefIds();
  const view = new vega.View(vega.parse(spec), { renderer: "none", logLevel: vega.Error });
  try {
    const svg = markParts(await view.toSVG(), view);
    return `${svg.replace(/^<svg([^>]*)>/, (_, attributes: string) => `<svg${attributes} role="img">${named}`)}\n`;
  } finally {
    view.finalize();
  }
}

function plotSpec(plot: Plot) {
  return { title: plot.title, ...kPlot, ...layersOf({ ...plot, curves: plot.curves.map(thin) }, kPlot) };
}

/** Thins a curve to as many points as can be seen; peaks stay. */
function thin(curve: Curve): Curve {
  if (curve.kind === "bars") return curve;
  const { low, high } = curve;
  const columns = [curve.y, ...(low && high ? [low, high] : [])].map((values) => [...values]);
  const { x, ys } = downsample({ x: [...curve.x], ys: columns }, kPoints);
  return { ...curve, x, y: ys[0] ?? [], ...(low && high && { low: ys[1] ?? [], high: ys[2] ?? [] }) };
}
