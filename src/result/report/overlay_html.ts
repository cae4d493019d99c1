/** A comparison of runs as one HTML file that needs nothing else. Its bytes depend on the runs and their names only. */
import { progressFigures } from "./graph_progress.js";
import { curves, gridSection, list, renderPage } from "./html.js";
import type { Comparison, NamedRun } from "./overlay.js";
import type { Verdict } from "./overlay_limits.js";
import { comparisonGrids, invalidLines, leftOut, verdictLine } from "./overlay_table.js";

const kPageRows = { flows: 1000, queues: 256 };

export function renderOverlay(
  runs: readonly NamedRun[],
  comparison: Comparison,
  verdicts: readonly Verdict[] = [],
): string {
  const { main, data } = curves(runs.map((run) => ({ ...run, label: runName(run) })));
  const scenarios = [...new Set(runs.map(({ result }) => result.scenario))];
  const [first, ...others] = runs.map(({ label }) => label);
  const without = runs.filter(({ series }) => series.time_s.length <= 1);
  const remarks = [
    ...comparison.notes,
    ...leftOut(comparison),
    ...without.map(
      ({ label }) => `${label} has no series (no series.json beside its result): it is not in the charts.`,
    ),
  ];
  return renderPage({
    title: scenarios.join(", "),
    kind: "Weir comparison",
    subtitle: `${others.join(", ")} beside ${first}; differences are to ${first}`,
    main: `${verdictBanner(comparison, verdicts)}
${progressFigures(runs)}
${main}
${list(remarks)}
${comparisonGrids(comparison, kPageRows)
  .map((grid) => gridSection(grid))
  .join("\n")}`,
    data,
  });
}

/** Adds the clock, where the label does not say it. */
function runName({ label, result }: NamedRun): string {
  return label === result.clock ? label : `${label} (${result.clock})`;
}

/** Returns nothing when all runs are valid and no limits were asked for. */
function verdictBanner(comparison: Comparison, verdicts: readonly Verdict[]): string {
  const invalid = invalidLines(comparison);
  const lines = [...invalid, ...verdicts.map(verdictLine)];
  if (lines.length === 0) return "";
  const bad = invalid.length > 0 || verdicts.some(({ within }) => !within);
  return `<div class="banner ${bad ? "invalid" : "valid"}" role="status">${list(lines)}</div>`;
}
