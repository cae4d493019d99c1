/** Page of all experiments' outcomes, as one HTML file that needs nothing else: every figure is inside, and links stay in the page. */
import { banner, factsTable, list, renderPage } from "../../../src/result/report/html.js";
import { escapeHtml } from "../../../src/result/report/markup.js";
import type { PaperDocument } from "../document.js";
import type { Clock } from "../experiment.js";
import { kClasses, namesTable, paperContent, quotation } from "../page.js";
import { judgedOf, kCauses } from "../text.js";
import { causeLines } from "../total.js";
import { missingLines, rulingsText, type Summary, type SummaryEntry } from "./summary.js";
import { experimentGrid, factRows, shownClocks, totalLines } from "./text.js";

/** An experiment that has something to show. */
export interface Shown {
  document: PaperDocument;
  svg: string;
}

export function renderAllPage(summary: Summary, shown: readonly Shown[]): string {
  const causes = causeLines(shown.map(({ document }) => judgedOf(document)));
  const { experiments, options } = summary;
  const clocks = shownClocks(experiments, options.clocks);
  const overview = experimentGrid(summary, true);
  const sections = experiments.map((entry) => {
    return section(
      entry,
      shown.find(({ document }) => document.experiment === entry.id),
    );
  });
  return renderPage({
    title: "Figures of papers, run again",
    kind: "Weir paper all",
    subtitle: `Weir ${summary.weir}, ${summary.at}`,
    main: `${stateBanner(summary)}
${list(totalLines(summary))}
<h2 id="experiments">Experiments</h2>
${namesTable(
  "overview",
  overview.head,
  overview.rows.map(([id = "", ...rest]) => {
    return `<tr>${cell(anchor(id))}${rest.map((text) => cell(escapeHtml(text))).join("")}</tr>`;
  }),
)}
<h2 id="statements">Statements</h2>
${namesTable(
  "statements",
  ["the paper says", "experiment", ...clocks],
  experiments.flatMap((entry) => statementRows(entry, clocks)),
)}
${causes.length === 0 ? "" : `<h2 id="causes">${kCauses}</h2>\n${list(causes)}`}
${sections.join("\n")}
<h2>How it was made</h2>
${factsTable(factRows(summary))}`,
  });
}

function stateBanner(summary: Summary): string {
  const missing = missingLines(summary);
  if (missing.length === 0) return banner("valid", "Complete.", "Every run was made to its end, and is valid.");
  const text = `${missing.length} of ${summary.experiments.length} experiments are not complete.`;
  return banner("invalid", "Partial.", text, missing);
}

function statementRows({ id, statements }: SummaryEntry, clocks: readonly Clock[]): string[] {
  return statements.map((statement) => {
    const { rulings } = statement;
    const verdicts = clocks.map((clock) => {
      const ruling = rulings[clock];
      if (ruling === undefined) return cell("");
      return cell(`<strong>${escapeHtml(rulingsText(statement, clock))}</strong>`, kClasses[ruling]);
    });
    return `<tr>${cell(quotation(statement))}${cell(anchor(id))}${verdicts.join("")}</tr>`;
  });
}

function cell(markup: string, more = ""): string {
  return `<td class="${`name ${more}`.trim()}">${markup}</td>`;
}

function anchor(id: string): string {
  return `<a href="#${escapeHtml(id)}">${escapeHtml(id)}</a>`;
}

function section({ id, paper, place, title, state, error }: SummaryEntry, shown: Shown | undefined): string {
  const content =
    shown === undefined
      ? banner("invalid", state, error ?? "")
      : paperContent(shown.document, scoped(shown.svg, id), 3);
  return `<section class="experiment" id="${escapeHtml(id)}">
<h2>${escapeHtml(`${id}: ${title}`)}</h2>
<p class="soft">${escapeHtml(shown?.document.paper.citation ?? paper)}, ${escapeHtml(place)}. <a class="screen" href="#experiments">All experiments</a></p>
${content}
</section>`;
}

/** Names in a picture are its own, whatever other pictures are in the page. */
function scoped(svg: string, prefix: string): string {
  return svg
    .replace(/(\s)id="([^"]+)"/g, `$1id="${prefix}-$2"`)
    .replace(/url\(#([^)]+)\)/g, `url(#${prefix}-$1)`)
    .replace(/href="#([^"]+)"/g, `href="#${prefix}-$1"`);
}
