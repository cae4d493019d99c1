/** A comparison of runs as one HTML file that needs nothing else. Its bytes depend on the runs and their names only. */
import { escapeHtml, gridSection, plots, renderPage } from "./html.js";
import type { Comparison, NamedRun } from "./overlay.js";
import { overlayCharts } from "./overlay_charts.js";
import type { Verdict } from "./overlay_limits.js";
import { comparisonGrids, invalidLines, leftOut, verdictLine } from "./overlay_table.js";

const kPageRows = { flows: 1000, queues: 256 };

export function renderOverlay(
  runs: readonly NamedRun[],
  comparison: Comparison,
  verdicts: readonly Verdict[] = [],
): string {
  const { charts, flows, omitted } = overlayCharts(runs);
  const scenarios = [...new Set(runs.map(({ result }) => result.scenario))];
  const [first, ...others] = runs.map(({ label }) => label);
  const remarks = [...comparison.notes, ...leftOut(comparison), ...omitted];
  const data = {
    charts: charts.map(({ figures, ...drawn }) => drawn),
    flows,
    runs: runs.map(runName),
  };
  return renderPage({
    title: scenarios.join(", "),
    kind: "Weir comparison",
    subtitle: `${others.join(", ")} beside ${first}; differences are to ${first}`,
    main: `${verdictBanner(comparison, verdicts)}
${charts.length > 0 ? plots(charts, flows.length, runs.length) : ""}
${remarks.length > 0 ? list(remarks) : ""}
${comparisonGrids(comparison, kPageRows)
  .map((grid) => gridSection(grid))
  .join("\n")}`,
    data: charts.length > 0 ? data : undefined,
  });
}

/** With the clock, where the label does not say it. */
function runName({ label, result }: NamedRun): string {
  return label === result.clock ? label : `${label} (${result.clock})`;
}

/** Nothing when all runs are valid and no limits were asked for. */
function verdictBanner(comparison: Comparison, verdicts: readonly Verdict[]): string {
  const invalid = invalidLines(comparison);
  const lines = [...invalid, ...verdicts.map(verdictLine)];
  if (lines.length === 0) return "";
  const bad = invalid.length > 0 || verdicts.some(({ within }) => !within);
  return `<div class="banner ${bad ? "invalid" : "valid"}" role="status">${list(lines)}</div>`;
}

function list(lines: readonly string[]): string {
  return `<ul>${lines.map((line) => `<li>${escapeHtml(line)}</li>`).join("")}</ul>`;
}
