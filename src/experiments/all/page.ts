/** What all experiments came to, as one HTML file that needs nothing else: every figure is inside, and links stay in the page. */
import { duration } from "../../report/format.js";
import { factsTable, renderPage } from "../../report/html.js";
import { escapeHtml } from "../../report/markup.js";
import type { PaperDocument } from "../document.js";
import type { Clock } from "../experiment.js";
import { kClasses, paperContent } from "../page.js";
import { missingLines, rulingsText, rulingText, type Summary, type SummaryEntry } from "./summary.js";
import { factRows, shownClocks, totalLines } from "./text.js";

/** An experiment that has something to show. */
export interface Shown {
  document: PaperDocument;
  svg: string;
}

export function renderAllPage(summary: Summary, shown: readonly Shown[]): string {
  const { experiments, options } = summary;
  const clocks = shownClocks(experiments, options.clocks);
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
    main: `${banner(summary)}
<ul>${totalLines(summary)
      .map((line) => `<li>${escapeHtml(line)}</li>`)
      .join("")}</ul>
<h2 id="experiments">Experiments</h2>
${table(
  "overview",
  ["id", "paper", "place", "title", ...clocks, "state", "time"],
  experiments.map((entry) => experimentRow(entry, clocks)),
)}
<h2 id="statements">Statements</h2>
${table(
  "statements",
  ["the paper says", "experiment", ...clocks],
  experiments.flatMap((entry) => statementRows(entry, clocks)),
)}
${sections.join("\n")}
<h2>How it was made</h2>
${factsTable(factRows(summary))}`,
  });
}

function banner(summary: Summary): string {
  const missing = missingLines(summary);
  if (missing.length === 0) {
    return '<div class="banner valid" role="status"><p><strong>Complete.</strong> Every run was made to its end, and is valid.</p></div>';
  }
  const list = missing.map((line) => `<li>${escapeHtml(line)}</li>`).join("");
  return `<div class="banner invalid" role="status"><p><strong>Partial.</strong> ${missing.length} of ${summary.experiments.length} experiments are not complete.</p><ul>${list}</ul></div>`;
}

function table(kind: string, head: readonly string[], rows: readonly string[]): string {
  const heads = head.map((name) => `<th scope="col" class="name">${escapeHtml(name)}</th>`).join("");
  return `<div class="scroll"><table class="${kind}"><thead><tr>${heads}</tr></thead>
<tbody>${rows.join("\n")}</tbody></table></div>`;
}

function experimentRow(entry: SummaryEntry, clocks: readonly Clock[]): string {
  const { id, paper, place, title, state, reused, made } = entry;
  const texts = [
    paper,
    place,
    title,
    ...clocks.map((clock) => rulingText(entry, clock)),
    reused ? `${state}, made before` : state,
    made === undefined ? "" : duration(made.wall_s),
  ];
  return `<tr>${cell(anchor(id))}${texts.map((text) => cell(escapeHtml(text))).join("")}</tr>`;
}

function statementRows({ id, statements }: SummaryEntry, clocks: readonly Clock[]): string[] {
  return statements.map((statement) => {
    const { quote, where, rulings } = statement;
    const verdicts = clocks.map((clock) => {
      const ruling = rulings[clock];
      if (ruling === undefined) return cell("");
      return cell(`<strong>${escapeHtml(rulingsText(statement, clock))}</strong>`, kClasses[ruling]);
    });
    const said = `<q>${escapeHtml(quote)}</q> <span class="soft">(${escapeHtml(where)})</span>`;
    return `<tr>${cell(said)}${cell(anchor(id))}${verdicts.join("")}</tr>`;
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
      ? `<div class="banner invalid" role="status"><p><strong>${state}</strong> ${escapeHtml(error ?? "")}</p></div>`
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
