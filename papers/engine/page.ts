/** The outcome of an experiment as one HTML file that needs nothing else, not even a script: the picture is SVG. */
import { banner, gridSection, list, renderPage } from "../../src/result/report/html.js";
import { escapeHtml } from "../../src/result/report/markup.js";
import { partsOf } from "../../src/result/report/plot_parts.js";
import type { PaperDocument } from "./document.js";
import {
  explanations,
  findingLines,
  grids,
  judgedOf,
  kCauses,
  madeLine,
  otherVerdict,
  partialLine,
  runLines,
} from "./text.js";
import { causeLines, totalText } from "./total.js";
import type { Ruling, Verdict } from "./verdict.js";

export const kClasses: Record<Ruling, string> = {
  holds: "holds",
  "falls short": "short",
  agrees: "open",
  differs: "open",
  "not judged": "open",
};

/** `svg`: the figure. */
export function renderPaperPage(paper: PaperDocument, svg: string): string {
  const { experiment, place, title } = paper;
  return renderPage({
    title: `${place}: ${title}`,
    kind: `Weir paper: ${experiment}`,
    subtitle: paper.paper.citation,
    main: paperContent(paper, svg),
  });
}

/** All of it below the title; `level` of its headings. */
export function paperContent(paper: PaperDocument, svg: string, level = 2): string {
  const heading = (text: string) => `<h${level}>${text}</h${level}>`;
  const { clocks, setup, statements, choices } = paper;
  const partial = partialLine(paper);
  const causes = causeLines([judgedOf(paper)]);
  return `${partial === "" ? "" : banner("invalid", "Partial.", partial)}
<p>${escapeHtml(setup)}</p>
${list(runLines(paper))}
<figure class="wide paper">${svg}${partsOf(svg)}</figure>
${heading("Statements of the paper")}
${namesTable(
  "statements",
  ["the paper says", ...clocks],
  statements.map((one) => statementRow(one, paper.alternative?.name)),
)}
<p>${escapeHtml(totalText(paper.total))}</p>
${causes.length === 0 ? "" : `${heading(kCauses)}${list(causes)}`}
${grids(paper)
  .map((grid) => gridSection(grid, level))
  .join("\n")}
${choices.length === 0 ? "" : `${heading("What the paper leaves open")}${list(choices)}`}
<p class="soft">${escapeHtml(madeLine(paper))}</p>`;
}

/** A table of words; `rows` are markup. */
export function namesTable(kind: string, head: readonly string[], rows: readonly string[]): string {
  const heads = head.map((name) => `<th scope="col" class="name">${escapeHtml(name)}</th>`).join("");
  return `<div class="scroll"><table class="${kind}"><thead><tr>${heads}</tr></thead>
<tbody>${rows.join("\n")}</tbody></table></div>`;
}

export function quotation({ quote, where }: Pick<PaperDocument["statements"][number], "quote" | "where">): string {
  return `<q>${escapeHtml(quote)}</q> <span class="soft">(${escapeHtml(where)})</span>`;
}

function statementRow(statement: PaperDocument["statements"][number], alternative: string | undefined): string {
  const { reading, verdicts } = statement;
  const explained = explanations(statement)
    .map((line) => `<p class="soft">${escapeHtml(line)}</p>`)
    .join("");
  return `<tr><td class="name">${quotation(statement)}<p class="soft">Read as: ${escapeHtml(reading)}</p>${explained}</td>${verdicts.map((verdict) => verdictCell(verdict, otherVerdict(statement, verdict), alternative)).join("")}</tr>`;
}

function verdictCell(verdict: Verdict, other: Verdict | undefined, alternative = ""): string {
  const text = (one: Verdict) => {
    const lines = findingLines(one).map((line) => `<p class="soft">${escapeHtml(line)}</p>`);
    return `<strong>${one.ruling}</strong>${lines.join("")}`;
  };
  const second =
    other === undefined
      ? ""
      : `<div class="${kClasses[other.ruling]}">${escapeHtml(alternative)}: ${text(other)}</div>`;
  return `<td class="name ${kClasses[verdict.ruling]}">${text(verdict)}${second}</td>`;
}
