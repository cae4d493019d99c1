/** Outcome of all experiments, for a terminal and as Markdown. */
import { duration } from "../../../src/result/report/format.js";
import { drawGrid, type Grid } from "../../../src/result/report/table.js";
import { CLOCKS, type Clock } from "../experiment.js";
import { markdownTable, quoted, renderMarkdown } from "../markdown.js";
import { kCauses } from "../text.js";
import { causeLines, totalText } from "../total.js";
import type { Finished, Summary, SummaryEntry } from "./summary.js";
import { judgedIn, missingLines, rulingsText, rulingText } from "./summary.js";

/** Renders for a terminal; ends with a line feed. */
export function renderAllText(summary: Summary, color = false): string {
  const grid = experimentGrid(summary);
  return `${[drawGrid(grid, color), ...partialText(summary), totalLines(summary).join("\n")].join("\n\n")}\n`;
}

/** Pictures lie in the experiments' folders, beside the text. */
export function renderAllMarkdown(summary: Summary, finished: readonly Finished[]): string {
  const { title: _, ...experiments } = experimentGrid(summary);
  const linked = { ...experiments, rows: experiments.rows.map(([id = "", ...rest]) => [link(id, finished), ...rest]) };
  const partial = partialText(summary).map((text) => `**${text.replace("\n", "**\n\n")}\n`);
  return `# Figures of papers, run again

${partial.join("\n")}
${totalLines(summary)
  .map((line) => `- ${line}`)
  .join("\n")}

## Experiments

${markdownTable(linked)}

## Statements

${markdownTable(statementGrid(summary))}

## ${kCauses}

${causeLines(judgedIn(finished))
  .map((line) => `- ${line}`)
  .join("\n")}

${finished.flatMap(({ document }) => (document === undefined ? [] : [renderMarkdown(document, `${document.experiment}/figure.svg`, 2)])).join("\n")}
## How it was made

${markdownTable({ head: ["", ""], names: 2, rows: factRows(summary) })}
`;
}

function link(id: string, finished: readonly Finished[]): string {
  const there = finished.some(({ document }) => document?.experiment === id);
  return there ? `[${id}](${id}/report.html)` : id;
}

/** One row for each experiment. `titled`: with what it is about. */
export function experimentGrid({ experiments, options }: Summary, titled = false): Grid {
  const clocks = shownClocks(experiments, options.clocks);
  return {
    title: "Experiments",
    head: ["id", "paper", "place", ...(titled ? ["title"] : []), ...clocks, "state", "time"],
    names: 4 + clocks.length,
    rows: experiments.map((entry) => [
      entry.id,
      entry.paper,
      entry.place,
      ...(titled ? [entry.title] : []),
      ...clocks.map((clock) => rulingText(entry, clock)),
      entry.reused ? `${entry.state}, made before` : entry.state,
      entry.made === undefined ? "" : duration(entry.made.wall_s),
    ]),
  };
}

/** One row for each statement. */
function statementGrid({ experiments, options }: Summary): Grid {
  const clocks = shownClocks(experiments, options.clocks);
  return {
    title: "Statements",
    head: ["experiment", "the paper says", ...clocks],
    names: 2 + clocks.length,
    rows: experiments.flatMap(({ id, statements }) =>
      statements.map((statement) => [id, quoted(statement), ...clocks.map((clock) => rulingsText(statement, clock))]),
    ),
  };
}

export function shownClocks(experiments: readonly SummaryEntry[], wanted: readonly Clock[]): Clock[] {
  return CLOCKS.filter((clock) => wanted.includes(clock) && experiments.some(({ clocks }) => clocks.includes(clock)));
}

/** All in one line, one for each clock, and what is about all. */
export function totalLines({ total, totals, wall_s, left_out, experiments }: Summary): string[] {
  const lines = CLOCKS.flatMap((clock) => {
    const own = totals[clock];
    return own === undefined ? [] : `${clock} alone: ${totalText(own)}`;
  });
  const made = experiments.reduce((sum, { runs }) => sum + runs.reduce((all, { wall_s: own = 0 }) => all + own, 0), 0);
  return [
    totalText(total),
    ...lines,
    ...(left_out.length > 0 ? [`left out, as they run on other clocks only: ${left_out.join(", ")}`] : []),
    `this call took ${duration(wall_s)}; all runs by themselves take ${duration(made)}`,
  ];
}

/** Says it first where not everything is there; none where it is. */
function partialText(summary: Summary): string[] {
  const missing = missingLines(summary);
  if (missing.length === 0) return [];
  const { length } = summary.experiments;
  return [
    `Partial: ${missing.length} of ${length} experiments are not complete.\n${missing.map((one) => `- ${one}`).join("\n")}`,
  ];
}

/** Versions, host, options. */
export function factRows({ weir, commit, host, at, options }: Summary): [string, string][] {
  const { clocks, seed, scale, only, reference, jobs } = options;
  return [
    ["Weir", weir],
    ...(commit === undefined ? [] : [["commit", commit] as [string, string]]),
    ["Node.js", host.node],
    ["kernel", host.kernel],
    ["CPU", `${host.cpus} x ${host.cpu ?? "unknown"}`],
    ["time", at],
    ["clocks", clocks.join(", ")],
    ["seed", seed === null ? "of each scenario" : String(seed)],
    ["scale of the wire", scale === null ? "of each scenario" : String(scale)],
    ["experiments", only.length === 0 ? "all" : only.join(", ")],
    ["references", reference ?? "none"],
    ["experiments at a time", String(jobs)],
  ];
}
