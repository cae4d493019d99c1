/** The outcome of an experiment as one HTML file that needs nothing else, not even a script: the picture is SVG. */
import { gridSection, renderPage } from "../report/html.js";
import { escapeHtml } from "../report/markup.js";
import { partsOf } from "../report/plot_parts.js";
import type { PaperDocument } from "./document.js";
import { alternativeLines, findingLines, grids, madeLine, otherVerdict, runLine } from "./text.js";
import type { Ruling, Verdict } from "./verdict.js";

export const kClasses: Record<Ruling, string> = { holds: "holds", "falls short": "short", "not judged": "open" };

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
  const { clocks, setup, runs, statements, choices, complete } = paper;
  const list = (lines: readonly string[]) => `<ul>${lines.map((line) => `<li>${escapeHtml(line)}</li>`).join("")}</ul>`;
  const bad = runs.filter(({ valid }) => !valid);
  const banner = complete
    ? ""
    : `<div class="banner invalid" role="status"><p><strong>Partial.</strong> ${bad.length} of ${runs.length} runs did not come to a valid end. What depends on them is not judged.</p></div>`;
  return `${banner}
<p>${escapeHtml(setup)}</p>
${list([...runs.map(runLine), ...alternativeLines(paper)])}
<figure class="wide paper">${svg}${partsOf(svg)}</figure>
${heading("Statements of the paper")}
<div class="scroll"><table class="statements"><thead><tr><th scope="col" class="name">the paper says</th>${clocks.map((clock) => `<th scope="col" class="name">${clock}</th>`).join("")}</tr></thead>
<tbody>${statements.map((one) => statementRow(one, paper.alternative?.name)).join("\n")}</tbody></table></div>
${grids(paper)
  .map((grid) => gridSection(grid, level))
  .join("\n")}
${choices.length === 0 ? "" : `${heading("What the paper leaves open")}${list(choices)}`}
<p class="soft">${escapeHtml(madeLine(paper))}</p>`;
}

function statementRow(statement: PaperDocument["statements"][number], alternative: string | undefined): string {
  const { quote, where, reading, remark, verdicts } = statement;
  const short = verdicts.some(({ ruling }) => ruling === "falls short");
  const explained = short && remark !== undefined ? `<p class="soft">${escapeHtml(remark)}</p>` : "";
  return `<tr><td class="name"><q>${escapeHtml(quote)}</q> <span class="soft">(${escapeHtml(where)})</span><p class="soft">Read as: ${escapeHtml(reading)}</p>${explained}</td>${verdicts.map((verdict) => verdictCell(verdict, otherVerdict(statement, verdict), alternative)).join("")}</tr>`;
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
