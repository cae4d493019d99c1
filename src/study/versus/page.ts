/** A comparison of congestion controls as one HTML file that needs nothing else. Its bytes depend on the results only. */

import { describeMade } from "../../result/made_schema.js";
import { barFigure } from "../../result/report/fct_chart.js";
import { count } from "../../result/report/format.js";
import { progressFigures } from "../../result/report/graph_progress.js";
import { banner, curves, gridSection, list, renderPage } from "../../result/report/html.js";
import type { NamedRun } from "../../result/report/overlay.js";
import type { ContenderDocument, VersusDocument } from "./document.js";
import { kPercentiles, type Percentile } from "./figures.js";
import { columnNames, invalidLines, remarks, versusGrids } from "./tables.js";

/** Colours of a figure: there are no more in the theme, so further contenders take the first again. */
const kColors = Array.from({ length: 8 }, (_, i) => `var(--c${i})`);

/** @param runs One of each contender, whose curves are drawn over each other. */
export function renderVersusPage(document: VersusDocument, runs: readonly NamedRun[]): string {
  const { contenders, scenario, seeds, made } = document;
  const names = columnNames(document);
  const { main, data } = curves(runs);
  const invalid = invalidLines(document);
  return renderPage({
    title: scenario,
    kind: "Weir comparison of congestion controls",
    subtitle: `${names.join(", ")}; seeds ${seeds.join(", ")}; curves are of seed ${seeds[0]}; ${describeMade(made)}`,
    main: `${invalid.length === 0 ? "" : banner("invalid", "INVALID", "some runs do not count", invalid)}
${versusGrids(document)
  .map((grid) => gridSection(grid))
  .join("\n")}
${list(remarks(document))}
${kPercentiles.map((name) => slowdownFigure(contenders, names, name)).join("\n")}
${progressFigures(runs)}
${main}`,
    data,
  });
}

/** A bar for each contender in each size class. */
function slowdownFigure(
  contenders: readonly ContenderDocument[],
  names: readonly string[],
  percentile: Percentile,
): string {
  const classes = contenders.flatMap(({ sizes }) => sizes.filter(({ above_bytes }) => above_bytes >= 0));
  const bounds = [...new Set(classes.map(({ above_bytes }) => above_bytes))].sort((a, b) => a - b);
  return barFigure({
    title: `Slowdown by size, ${percentile}`,
    caption:
      "Completion time / that in the empty network, mean over the seeds; under each size the transfers of a run.",
    names: [...names],
    colors: contenders.map((_, i) => kColors[i % kColors.length] as string),
    groups: bounds.map((bound) => {
      const found = contenders.map(({ sizes }) => sizes.find(({ above_bytes }) => above_bytes === bound));
      const some = found.find((one) => one !== undefined);
      return {
        label: some?.size ?? "",
        note: count(some?.count.mean ?? 0),
        values: found.map((one) => one?.slowdown[percentile].mean),
      };
    }),
  });
}
