/** A finished run as one HTML file that needs nothing else: styles, plotting library and data are inside. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { hearsCnms } from "../congestion/flow_state.js";
import { fidelitySchema, type Result, resultSchema, type Series } from "../result/result.js";
import { buildCharts, type Chart, type ChartInput } from "./charts.js";
import { fctFigure } from "./fct_chart.js";
import { fixed } from "./format.js";
import { changeLines, fidelityLines, type Grid, grids, totals } from "./table.js";

/** What the page shows beyond result and series; all optional. */
export interface ReportExtra {
  /** The scenario file as written. */
  scenarioText?: string | undefined;
  /** Overrides given on the command line, "path=value". */
  set?: readonly string[] | undefined;
  /** Congestion control parameters in force. */
  parameters?: object | undefined;
  /** When the run finished. */
  date?: Date | undefined;
  thresholds?: ChartInput["thresholds"] | undefined;
}

const kPageRows = { most: 1000, shown: 100 };

const kPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'";

/** The whole page. Names and texts from the run are data: none of them can become markup. */
export function renderReport(result: Result, series: Series, extra: ReportExtra = {}): string {
  const charts = buildCharts({ result, series, thresholds: extra.thresholds ?? {} });
  const data = { charts: charts.map(({ figures, ...drawn }) => drawn), flows: Object.keys(series.flows) };
  return renderPage({
    title: result.scenario,
    kind: "Weir report",
    subtitle: subtitle(result, extra),
    main: `${banner(result)}
${tiles(result)}
${fctFigure(result.fct)}
${charts.length > 0 ? plots(charts, data.flows.length) : ""}
${grids(result, kPageRows)
  .map((grid) => gridSection(grid))
  .join("\n")}
<h2>What was run</h2>
${factsTable(facts(result, extra))}
${scenarioSection(extra)}`,
    data: charts.length > 0 ? data : undefined,
  });
}

/** One page: `main` is markup, `data` what its charts are drawn from, all else text. */
export interface Page {
  title: string;
  /** What kind of page it is, above the title. */
  kind: string;
  subtitle: string;
  main: string;
  data?: unknown;
}

export function renderPage({ title, kind, subtitle, main, data }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${kPolicy}">
<title>${escapeHtml(title)} - Weir</title>
<style>${asset("uplot/dist/uPlot.min.css")}
${ownAsset("report.css")}</style>
</head>
<body>
<header>
<p class="soft">${escapeHtml(kind)}</p>
<h1>${escapeHtml(title)}</h1>
<p class="soft">${escapeHtml(subtitle)}</p>
</header>
<main>
${main}
</main>
${data === undefined ? "" : scripts(data)}
</body>
</html>
`;
}

/** Text as HTML content or as a double-quoted attribute. */
export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] as string);
}

/** JSON that can stand inside a script element: no "<" is left that could end it. */
export function scriptJson(value: unknown): string {
  return JSON.stringify(value)
    .replace(/</g, "\\u003c")
    .replace(/\u2028/g, "\\u2028")
    .replace(/\u2029/g, "\\u2029");
}

const kClocks = {
  wire: "real frames, monotonic clock",
  sim: "discrete events, virtual time",
  model: "fluid equations",
} as const;

function subtitle(result: Result, { date }: ReportExtra): string {
  const scale = result.scale === 1 ? "at face value" : `at scale 1/${Number(result.scale.toPrecision(4))}`;
  const until = result.until_s === undefined ? "" : `the first ${result.until_s} s of `;
  return [
    result.clock === "wire"
      ? `${until}${result.duration_s} s meant time on wire (${kClocks.wire})`
      : `${until}${result.duration_s} s in ${result.clock} (${kClocks[result.clock]})`,
    ...(result.clock === "wire" ? [scale] : []),
    ...(date
      ? [
          date
            .toISOString()
            .replace("T", " ")
            .replace(/\.\d+Z$/, " UTC"),
        ]
      : []),
  ].join(", ");
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function list(items: readonly string[]): string {
  return items.length === 0 ? "" : `<ul>${items.map((item) => `<li>${escapeHtml(item)}</li>`).join("")}</ul>`;
}

function banner(result: Result): string {
  const { valid, reasons } = result.fidelity;
  const [figures = ""] = fidelityLines(result);
  const [good, bad] =
    result.clock === "wire"
      ? [
          "The host kept up: the figures are the network's.",
          "This host, not the network, shaped the figures; do not use them.",
        ]
      : ["The run is complete.", "The run is not what was asked for."];
  const verdict = valid ? `<strong>Valid.</strong> ${good}` : `<strong>Invalid.</strong> ${bad}`;
  const [changed = "", ...changes] = changeLines(result);
  const measured = figures.replace(/^fidelity: \w+, /, "");
  return `<div class="banner ${valid ? "valid" : "invalid"}" role="status"><p>${verdict}</p>${list(reasons)}
${changed === "" ? "" : `<p><strong>${escapeHtml(capital(changed))}.</strong></p>${list(changes)}`}
<p class="soft">${escapeHtml(measured)}</p></div>`;
}

function tiles(result: Result): string {
  const sumOf = (count: (one: Result["switches"][string]) => number) =>
    Object.values(result.switches).reduce((sum, one) => sum + count(one), 0);
  const told: [string, string] = hearsCnms(result.congestion_control)
    ? ["CNMs", String(sumOf((one) => one.cnm_sent ?? 0))]
    : ["ECN marks", String(sumOf((one) => one.ecn_marked))];
  const pauses = sumCounts(Object.values(result.switches).map((one) => one.pfc_sent));
  const drops = sumCounts(Object.values(result.switches).map((one) => one.drops));
  const counts: [string, string][] = [told, ["PFC pauses", String(pauses)], ["switch drops", String(drops)]];
  const items = [...totals(result), ...counts].map(
    ([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`,
  );
  return `<dl class="tiles">${items.join("")}</dl>`;
}

function sumCounts(all: readonly Record<string, number>[]): number {
  return all.flatMap((counts) => Object.values(counts)).reduce((sum, n) => sum + n, 0);
}

/** The charts with the legends that they share: of flows, and of runs where several are compared. */
export function plots(charts: readonly Chart[], flows: number, runs = 0): string {
  const legend = [
    runs > 0 ? `<div class="legend" id="runs" aria-label="Runs"></div>` : "",
    flows > 0 ? `<div class="legend" id="flows" aria-label="Flows"></div>` : "",
  ].join("");
  const narrow = charts.filter((chart) => !chart.wide);
  const alone = narrow.length % 2 === 1 ? narrow.at(-1) : undefined;
  return `<h2>Over time</h2>
<p class="soft">Shaded: warm-up. <span class="screen scripted">Drag to zoom, double-click to reset, click a name to hide it.</span></p>
<noscript><p>Plots need JavaScript. Their figures are in the tables.</p></noscript>
${legend}
<div class="plots">
${charts.map((chart) => figure(chart, chart.wide || chart === alone)).join("\n")}
</div>`;
}

function figure(chart: Chart, wide: boolean): string {
  const own = chart.lines.some((line) => line.flow === undefined && line.run === undefined);
  const label = `${chart.title}, ${chart.y_label} over ${chart.x_label}; figures in the table below`;
  const rows = chart.figures.map(({ label: name, summary }) => [
    name,
    ...[summary.mean, summary.p50, summary.p95, summary.p99, summary.max].map(fixed),
  ]);
  const grid = { head: [chart.time ? chart.y_label : "line", "mean", "p50", "p95", "p99", "max"], names: 1, rows };
  return `<figure${wide ? ' class="wide"' : ""}>
<figcaption><h3>${escapeHtml(chart.title)}</h3><p>${escapeHtml(chart.note)}</p></figcaption>
${own ? `<div class="legend" id="legend-${chart.id}"></div>` : ""}
<div class="chart" id="chart-${chart.id}" role="img" aria-label="${escapeHtml(label)}"></div>
<details><summary>Figures</summary>${tableOf(grid)}</details>
</figure>`;
}

/** `level`: of its heading. */
export function gridSection(grid: Grid, level = 2): string {
  return `<h${level}>${escapeHtml(grid.title)}</h${level}>\n${tableOf(grid)}`;
}

function tableOf({ head, names, rows }: Pick<Grid, "head" | "names" | "rows">): string {
  const cell = (tag: string) => (text: string, i: number) =>
    `<${tag}${i < names ? ' class="name"' : ""}${tag === "th" ? ' scope="col"' : ""}>${escapeHtml(text)}</${tag}>`;
  const body = rows.map((row) => `<tr>${row.map(cell("td")).join("")}</tr>`).join("\n");
  return `<div class="scroll"><table><thead><tr>${head.map(cell("th")).join("")}</tr></thead>
<tbody>${body}</tbody></table></div>`;
}

/** Everything that defines the run, and whatever else the result says about it, of a later version, too. */
function facts(result: Result, { set = [], parameters = {} }: ReportExtra): [string, string][] {
  const { scenario, clock, scale, seed, duration_s, warmup_s, profile, path_mtu, payload_share } = result;
  const { frames, transport, model, environment, fidelity } = result;
  const { timer_lateness_us, stragglers, capture_dropped, capture_errors, tuning } = fidelity;
  return flatten({
    ...{ scenario, clock, scale, seed, duration_s, warmup_s, profile, path_mtu, payload_share },
    ...{ frames, transport, model, environment, ...beyond(result, resultSchema.shape) },
    fidelity: {
      ...{ timer_lateness_us, stragglers, capture_dropped, capture_errors, tuning },
      ...beyond(fidelity, fidelitySchema.shape),
    },
    ...(set.length > 0 ? { set } : {}),
    parameters,
  });
}

function beyond(fields: object, known: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !(name in known)));
}

/** { environment: { node: "v20" } } as [["environment.node", "v20"]]. */
function flatten(fields: object, prefix = ""): [string, string][] {
  return Object.entries(fields).flatMap(([name, value]): [string, string][] => {
    if (value === undefined) return [];
    if (Array.isArray(value)) return value.length === 0 ? [] : [[prefix + name, value.join("; ")]];
    if (typeof value === "object" && value !== null) return flatten(value, `${prefix}${name}.`);
    return [[prefix + name, String(value)]];
  });
}

export function factsTable(rows: readonly [string, string][]): string {
  const body = rows.map(
    ([name, value]) => `<tr><td class="name">${escapeHtml(name)}</td><td class="name">${escapeHtml(value)}</td></tr>`,
  );
  return `<div class="scroll"><table class="facts"><tbody>${body.join("\n")}</tbody></table></div>`;
}

function scenarioSection({ scenarioText }: ReportExtra): string {
  return scenarioText === undefined ? "" : `<h2>Scenario file</h2>\n<pre>${escapeHtml(scenarioText)}</pre>`;
}

function scripts(data: unknown): string {
  const inline = (code: string) => `<script>${code.replace(/<\/script/gi, "<\\/script")}</script>`;
  return `<script type="application/json" id="data">${scriptJson(data)}</script>
${inline(asset("uplot/dist/uPlot.iife.min.js"))}
${inline(ownAsset("report.js"))}`;
}

function asset(name: string): string {
  return readFileSync(createRequire(import.meta.url).resolve(name), "utf8").trim();
}

function ownAsset(name: string): string {
  return readFileSync(new URL(`./assets/${name}`, import.meta.url), "utf8").trim();
}
