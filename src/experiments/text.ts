/** The outcome of an experiment for a terminal, and as Markdown. */
import pc from "picocolors";
import { duration } from "../report/format.js";
import { drawGrid, type Grid } from "../report/table.js";
import type { PaperDocument } from "./document.js";
import type { RunState } from "./run.js";
import { type Ruling, showValue, type Verdict } from "./verdict.js";

/** Everything to know at the end of a run; ends with a line feed. */
export function renderText(paper: PaperDocument, color = false): string {
  const colors = pc.createColors(color);
  const paint: Record<Ruling, (text: string) => string> = {
    holds: colors.green,
    "falls short": colors.red,
    "not judged": colors.yellow,
  };
  const statements = paper.statements.map((statement, i) => {
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
    colors.bold(headline(paper)),
    paper.runs.map(runLine).join("\n"),
    `${colors.bold("Statements of the paper")}\n${statements.join("\n")}`,
    ...grids(paper).map((grid) => drawGrid(grid, color)),
  ].join("\n\n")}\n`;
}

export function headline({ experiment, paper, place, title }: PaperDocument): string {
  return `${experiment}: ${paper.name}, ${place}: ${title}`;
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

/** By what, where and when; "" where that is not known. */
export function madeLine({ made }: PaperDocument): string {
  if (made === undefined) return "";
  const { weir, host, at, wall_s } = made;
  const machine = `kernel ${host.kernel}, ${host.cpus} x ${host.cpu ?? "unknown CPU"}`;
  return `Made by Weir ${weir} with Node.js ${host.node} on ${machine}, ${at}, in ${duration(wall_s)}.`;
}

/** What was measured and what was asked for, one line for each quantity; then why it was not judged. */
export function findingLines({ findings, why }: Omit<Verdict, "clock" | "ruling"> & Partial<Verdict>): string[] {
  const lines = findings.map(({ measured, required, within }) =>
    required === "" ? measured : `${measured} (${within ? "" : "not "}${required})`,
  );
  return why === undefined ? lines : [...lines, why];
}

/** What was measured, and how far curves are apart, where there are any. */
export function grids(paper: PaperDocument): Grid[] {
  return [measuredGrid(paper), differenceGrid(paper)].filter(({ rows }) => rows.length > 0);
}

/** One row for each quantity, one column for each clock. */
function measuredGrid({ clocks, quantities }: PaperDocument): Grid {
  return {
    title: "Measured",
    head: ["quantity", ...clocks],
    names: 1,
    rows: quantities
      .map(({ label, unit, values }) => [label, ...clocks.map((clock) => measured(values[clock], unit))])
      .filter((row) => row.slice(1).some((text) => text !== "-")),
  };
}

/** null: did not happen. */
function measured(value: number | null | undefined, unit: string): string {
  return showValue(value === null ? Number.POSITIVE_INFINITY : value, unit);
}

/** One row for each two curves of a trace. */
function differenceGrid({ traces }: PaperDocument): Grid {
  return {
    title: "Mean absolute difference",
    head: ["curve", "over", "between", "difference"],
    names: 3,
    rows: traces.flatMap(({ title, x_label, x_range: [low, high], unit, differences }) =>
      differences.map(({ between, mean_absolute }) => [
        title,
        `${x_label} ${low} to ${high}`,
        between.join(", "),
        mean_absolute === null ? "nothing in common" : showValue(mean_absolute, unit),
      ]),
    ),
  };
}
