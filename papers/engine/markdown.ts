/** The outcome of an experiment as Markdown. */
import type { Grid } from "../../src/result/report/table.js";
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
import type { Verdict } from "./verdict.js";

/** `figure`: path of the picture from where the text will lie. `level`: of its first heading. */
export function renderMarkdown(paper: PaperDocument, figure: string, level = 1): string {
  const { experiment, title, place, setup, statements, clocks, choices } = paper;
  const heading = (depth: number, text: string) => `${"#".repeat(level + depth)} ${text}`;
  const list = choices.map((one) => `- ${one}`).join("\n");
  const open = choices.length === 0 ? "" : `\n${heading(1, "What the paper leaves open")}\n\n${list}\n`;
  const causes = causeLines([judgedOf(paper)])
    .map((line) => `- ${line}\n`)
    .join("");
  const [made, partial] = [madeLine(paper), partialLine(paper)];
  return `${heading(0, `${experiment}: ${title}`)}

${paper.paper.citation}, ${place}.

${setup}

${partial === "" ? "" : `**Partial: ${partial}**\n\n`}${runLines(paper)
  .map((line) => `- ${line}`)
  .join("\n")}

![${title}](${figure})

${heading(1, "Statements of the paper")}

${markdownTable({
  head: ["the paper says", "read as", ...clocks],
  names: 2 + clocks.length,
  rows: statements.map((one) => [
    quoted(one),
    one.reading,
    ...one.verdicts.map((verdict) => verdictText(verdict, otherVerdict(one, verdict), paper.alternative?.name)),
  ]),
})}

${totalText(paper.total)}

${remarks(statements)}${causes === "" ? "" : `${heading(1, kCauses)}\n\n${causes}\n`}${grids(paper)
  .map((grid) => `${heading(1, grid.title)}\n\n${markdownTable(grid)}\n`)
  .join("\n")}${open}${made === "" ? "" : `\n${made}\n`}`;
}

export function markdownTable({ head, names, rows }: Pick<Grid, "head" | "names" | "rows">): string {
  const row = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  const line = `|${head.map((_, i) => (i < names ? "---|" : "---:|")).join("")}`;
  return [row(head), line, ...rows.map(row)].join("\n");
}

export function quoted({ quote, where }: Pick<PaperDocument["statements"][number], "quote" | "where">): string {
  return `"${quote}" (${where})`;
}

function verdictText(verdict: Verdict, other: Verdict | undefined, name = ""): string {
  const own = [`**${verdict.ruling}**`, ...findingLines(verdict)];
  return [...own, ...(other === undefined ? [] : [`${name}: ${verdictText(other, undefined)}`])].join("<br>");
}

function remarks(statements: PaperDocument["statements"]): string {
  const said = statements.flatMap((one) => {
    const lines = explanations(one);
    return lines.length === 0 ? [] : `- "${one.quote}": ${lines.join("; ")}\n`;
  });
  return said.length === 0 ? "" : `${said.join("")}\n`;
}

/** Text in a cell of a table. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
