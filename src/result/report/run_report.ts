/** Writes report.html of a finished run, beside the files that it is made of. */

import { statSync } from "node:fs";
import { join } from "node:path";
import { writeWhole } from "../../base/write_file.js";
import { hearsCnms } from "../../congestion/flow_state.js";
import { networkCounts } from "../counts.js";
import { nothingSent } from "../nothing.js";
import type { Result, Series } from "../result.js";
import { readRun, saveRun } from "../run_files.js";
import type { RunSource, SavedRun } from "../saved_run.js";
import { parameterFacts, runFacts } from "./facts.js";
import { fctFigure } from "./fct_chart.js";
import { timeLineFigures } from "./graph_tables.js";
import { curves, factsTable, gridSection, list, renderPage } from "./html.js";
import { escapeHtml } from "./markup.js";
import { changeLines, eventLines, fidelityLines, grids, totals } from "./table.js";

const kPageRows = { most: 1000, shown: 100 };

/** Writes all files of a finished run into `directory` (created when missing) and returns the report's path. */
export function writeRun(directory: string, result: Result, series: Series, source: RunSource): string {
  saveRun(directory, result, series, source);
  const report = join(directory, "report.html");
  writeWhole(report, renderReport({ result, series, source }, madeAt(result) ?? new Date()));
  return report;
}

/**
 * The page for a saved result; without series it has tables only. Scenario text and thresholds come from scenario.json
 * where there is one.
 * @throws WeirError when the result cannot be read.
 */
export function renderSavedRun(resultFile: string): string {
  const run = readRun(resultFile);
  return renderReport(run, madeAt(run.result) ?? statSync(resultFile).mtime);
}

/** Returns undefined for results of older versions, and where the time is no date. */
function madeAt({ made }: Result): Date | undefined {
  const date = new Date(made?.at ?? "");
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** The whole page. Names and texts from the run are data: none of them can become markup. `date`: when the run finished. */
export function renderReport(run: SavedRun, date: Date): string {
  const { result, source } = run;
  const { main, data } = curves([{ ...run, label: result.scenario }]);
  const parameters = parameterFacts(run);
  return renderPage({
    title: result.scenario,
    kind: "Weir report",
    subtitle: subtitle(result, date),
    main: `${banner(result)}
${tiles(result)}
${fctFigure(result.fct)}
${timeLineFigures(result.graphs)}
${main}
${grids(result, kPageRows)
  .map((grid) => gridSection(grid))
  .join("\n")}
<h2>What was run</h2>
${factsTable(runFacts(run))}
${parameters.facts.length === 0 ? "" : `<h3>${escapeHtml(parameters.title)}</h3>\n${factsTable(parameters.facts)}`}
${source === undefined ? "" : `<h2>Scenario file</h2>\n<pre>${escapeHtml(source.text)}</pre>`}`,
    data,
  });
}

const kClocks = {
  wire: "real frames, monotonic clock",
  sim: "discrete events, virtual time",
  model: "fluid equations",
} as const;

function subtitle(result: Result, date: Date): string {
  const scale = result.scale === 1 ? "at face value" : `at scale 1/${Number(result.scale.toPrecision(4))}`;
  const until = result.until_s === undefined ? "" : `the first ${result.until_s} s of `;
  return [
    result.clock === "wire"
      ? `${until}${result.duration_s} s of scaled time on wire (${kClocks.wire})`
      : `${until}${result.duration_s} s in ${result.clock} (${kClocks[result.clock]})`,
    ...(result.clock === "wire" ? [scale] : []),
    date
      .toISOString()
      .replace("T", " ")
      .replace(/\.\d+Z$/, " UTC"),
  ].join(", ");
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function banner(result: Result): string {
  const { valid, reasons } = result.fidelity;
  const empty = result.frames !== undefined && nothingSent(result.frames) !== undefined;
  const [figures = ""] = fidelityLines(result);
  const [good, bad] =
    result.clock === "wire"
      ? [
          "The host kept up: the figures are the network's.",
          "This host, not the network, shaped the figures; do not use them.",
        ]
      : ["The run is complete.", "The run is not what was asked for."];
  const verdict = valid
    ? `<strong>Valid.</strong> ${good}`
    : `<strong>Invalid.</strong> ${empty ? "The run has no figures." : bad}`;
  const measured = figures.replace(/^fidelity: \w+, /, "");
  return `<div class="banner ${valid ? "valid" : "invalid"}" role="status"><p>${verdict}</p>${list(reasons)}
${happened(changeLines(result))}${happened(eventLines(result))}
<p class="soft">${escapeHtml(measured)}</p></div>`;
}

function happened([head, ...lines]: string[]): string {
  return head === undefined ? "" : `<p><strong>${escapeHtml(capital(head))}.</strong></p>${list(lines)}`;
}

function tiles(result: Result): string {
  const { cnm_sent, ecn_marked, pfc_sent, drops } = networkCounts(result);
  const counts: [string, string][] = [
    hearsCnms(result.congestion_control) ? ["CNMs", String(cnm_sent)] : ["ECN marks", String(ecn_marked)],
    ["PFC pauses", String(pfc_sent)],
    ["switch drops", String(drops)],
  ];
  const items = [...totals(result), ...counts].map(
    ([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`,
  );
  return `<dl class="tiles">${items.join("")}</dl>`;
}
