/** The outcome of an experiment for a terminal, and as Markdown. */
import pc from "picocolors";
import { drawGrid } from "../report/table.js";
import type { Clock, Experiment } from "./experiment.js";
import type { PaperOutcome, RunState } from "./run.js";
import { type JudgedStatement, type Ruling, showValue, type Verdict } from "./verdict.js";

/** Everything to know at the end of a run; ends with a line feed. */
export function renderText(outcome: PaperOutcome, color = false): string {
  const colors = pc.createColors(color);
  const paint: Record<Ruling, (text: string) => string> = {
    holds: colors.green,
    "falls short": colors.red,
    "not judged": colors.yellow,
  };
  const statements = outcome.statements.map((statement, i) => {
    const verdicts = statement.verdicts.map(({ clock, ruling, ...rest }) => {
      const [first = "", ...more] = findingLines({ clock, ruling, ...rest });
      const head = `   ${clock.padEnd(5)}  ${paint[ruling](ruling.padEnd(11))}  ${first}`.trimEnd();
      return [head, ...more.map((line) => `${" ".repeat(23)}${line}`)].join("\n");
    });
    const short = statement.verdicts.some(({ ruling }) => ruling === "falls short");
    const remark = short && statement.remark !== undefined ? [`   remark: ${statement.remark}`] : [];
    return [
      `${i + 1}. "${statement.quote}" (${statement.where})`,
      `   read as: ${statement.reading}`,
      ...verdicts,
      ...remark,
    ].join("\n");
  });
  return `${[
    colors.bold(headline(outcome.experiment)),
    outcome.runs.map(runLine).join("\n"),
    `${colors.bold("Statements of the paper")}\n${statements.join("\n")}`,
    drawGrid(measuredGrid(outcome), color),
  ].join("\n\n")}\n`;
}

/** The same with figures; `figure` is the path of the picture from where the text will lie. */
export function renderMarkdown(outcome: PaperOutcome, figure: string): string {
  const { experiment, runs, statements } = outcome;
  const grid = measuredGrid(outcome);
  const row = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  const clocks = outcome.clocks.length;
  return `# ${experiment.id}: ${experiment.title}

${experiment.paper.citation}, ${experiment.place}.

${experiment.setup}

${partial(outcome)}${runs.map((run) => `- ${runLine(run)}`).join("\n")}

![${experiment.title}](${figure})

## Statements of the paper

${row(["the paper says", "read as", ...outcome.clocks])}
${row(Array.from({ length: 2 + clocks }, () => "---"))}
${statements.map((statement) => row([quoted(statement), statement.reading, ...statement.verdicts.map(verdictText)])).join("\n")}

${remarks(statements)}## Measured

${row(grid.head)}
${row(grid.head.map((_, i) => (i < grid.names ? "---" : "---:")))}
${grid.rows.map(row).join("\n")}
${experiment.choices.length === 0 ? "" : `\n## What the paper leaves open\n\n${experiment.choices.map((one) => `- ${one}`).join("\n")}\n`}`;
}

export function headline({ id, paper, place, title }: Experiment): string {
  return `${id}: ${paper.name}, ${place}: ${title}`;
}

/** "sim, qcn-t: seed 1, valid". */
export function runLine({ clock, trial, scale, seed, complete, valid, reasons }: RunState): string {
  const name = trial === clock ? "" : `, ${trial}`;
  const facts = [
    ...(clock === "wire" && scale !== undefined ? [`scale ${scale}`] : []),
    ...(clock === "model" || seed === undefined ? [] : [`seed ${seed}`]),
  ];
  const state = valid ? "valid" : `${complete ? "INVALID" : "INCOMPLETE"} (${reasons.join("; ")})`;
  return `${clock}${name}: ${[...facts, state].join(", ")}`;
}

/** What was measured and what was asked for, one line for each quantity; then why it was not judged. */
export function findingLines({ findings, why }: Omit<Verdict, "clock" | "ruling"> & Partial<Verdict>): string[] {
  const lines = findings.map(({ measured, required, within }) =>
    required === "" ? measured : `${measured} (${within ? "" : "not "}${required})`,
  );
  return why === undefined ? lines : [...lines, why];
}

/** One row for each quantity, one column for each clock. */
export function measuredGrid({ experiment, clocks, observations }: PaperOutcome) {
  const value = (clock: Clock, name: string, unit: string) => showValue(observations[clock]?.values[name], unit);
  return {
    title: "Measured",
    head: ["quantity", ...clocks],
    names: 1,
    rows: Object.entries(experiment.quantities)
      .map(([name, { label, unit }]) => [label, ...clocks.map((clock) => value(clock, name, unit))])
      .filter((row) => row.slice(1).some((text) => text !== "-")),
  };
}

/** Says it first where not everything was run. */
export function partial({ complete, runs }: PaperOutcome): string {
  if (complete) return "";
  const bad = runs.filter(({ valid }) => !valid).length;
  return `**Partial: ${bad} of ${runs.length} runs did not come to a valid end. What depends on them is not judged.**\n\n`;
}

function quoted({ quote, where }: JudgedStatement): string {
  return `"${quote}" (${where})`;
}

function verdictText(verdict: Verdict): string {
  return [`**${verdict.ruling}**`, ...findingLines(verdict)].join("<br>");
}

function remarks(statements: readonly JudgedStatement[]): string {
  const said = statements.filter(({ remark, verdicts }) => {
    return remark !== undefined && verdicts.some(({ ruling }) => ruling === "falls short");
  });
  if (said.length === 0) return "";
  return `What could explain what falls short:\n\n${said.map((one) => `- "${one.quote}": ${one.remark}`).join("\n")}\n\n`;
}

/** Text in a cell of a Markdown table. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
