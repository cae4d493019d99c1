/** The outcome of an experiment for a terminal, and what its texts and pages have in common. */
import { isDeepStrictEqual } from "node:util";
import pc from "picocolors";
import { describeMade } from "../../src/result/made_schema.js";
import { duration } from "../../src/result/report/format.js";
import { drawGrid, type Grid } from "../../src/result/report/table.js";
import type { PaperDocument } from "./document.js";
import type { RunState } from "./run.js";
import { causeLines, totalText } from "./total.js";
import { type Ruling, showSeeds, showValue, type Verdict } from "./verdict.js";

/** Everything to know at the end of a run; ends with a line feed. */
export function renderText(paper: PaperDocument, color = false): string {
  const colors = pc.createColors(color);
  const paint: Record<Ruling, (text: string) => string> = {
    holds: colors.green,
    "falls short": colors.red,
    agrees: colors.cyan,
    differs: colors.cyan,
    "not judged": colors.yellow,
  };
  const lines = ({ clock, ruling, ...rest }: Verdict, name = "") => {
    const [first = "", ...more] = [...(name === "" ? [] : [`${name}:`]), ...findingLines({ clock, ruling, ...rest })];
    const head = `   ${clock.padEnd(5)}  ${paint[ruling](ruling.padEnd(11))}  ${first}`.trimEnd();
    return [head, ...more.map((line) => `${" ".repeat(23)}${line}`)].join("\n");
  };
  const statements = paper.statements.map((statement, i) => {
    const verdicts = statement.verdicts.flatMap((verdict) => {
      const other = otherVerdict(statement, verdict);
      return [lines(verdict), ...(other === undefined ? [] : [lines(other, paper.alternative?.name)])];
    });
    return [
      `${i + 1}. "${statement.quote}" (${statement.where})`,
      `   read as: ${statement.reading}`,
      ...verdicts,
      ...explanations(statement).map((line) => `   ${line}`),
    ].join("\n");
  });
  const causes = causeLines([judgedOf(paper)]).map((line) => `- ${line}\n`);
  return `${[
    colors.bold(headline(paper)),
    runLines(paper).join("\n"),
    `${colors.bold("Statements of the paper")}\n${statements.join("\n")}\n${totalText(paper.total)}`,
    ...(causes.length === 0 ? [] : [`${colors.bold(kCauses)}\n${causes.join("")}`.trimEnd()]),
    ...grids(paper).map((grid) => drawGrid(grid, color)),
  ].join("\n\n")}\n`;
}

export function headline({ experiment, paper, place, title }: PaperDocument): string {
  return `${experiment}: ${paper.name}, ${place}: ${title}`;
}

/** "sim, qcn-t". */
export function runName({ clock, trial, alternative }: Pick<RunState, "clock" | "trial" | "alternative">): string {
  return [clock, trial === clock ? [] : trial, alternative ?? []].flat().join(", ");
}

/** "sim, qcn-t: seed 1, valid". */
function runLine(run: RunState): string {
  const { clock, scale, seed, complete, valid, reasons } = run;
  const facts = [
    ...(clock === "wire" && scale !== undefined ? [`scale ${scale}`] : []),
    ...(clock === "model" || seed === undefined ? [] : [`seed ${seed}`]),
  ];
  const state = valid ? "valid" : `${complete ? "INVALID" : "INCOMPLETE"} (${reasons.join("; ")})`;
  return `${runName(run)}: ${[...facts, state].join(", ")}`;
}

/** Tells how each run went, and what the alternative is, if there is one. */
export function runLines({ runs, alternative }: PaperDocument): string[] {
  const lines = runs.map(runLine);
  if (alternative === undefined) return lines;
  const { name, reading } = alternative;
  return [...lines, `${name}: another reading, shown where it comes to something else. ${reading}`];
}

/** Says why not all is judged; "" if every run is whole and valid. */
export function partialLine({ complete, runs }: PaperDocument): string {
  const bad = runs.filter(({ valid }) => !valid).length;
  const what = `${bad} of ${runs.length} runs did not come to a valid end`;
  return complete ? "" : `${what}. What depends on them is not judged.`;
}

/** Heading of causes that are told once, whatever falls short by them. */
export const kCauses = "Why statements fall short";

/** Parts of a document that a total is made of. */
export function judgedOf({ paper, statements }: PaperDocument) {
  return { paper: paper.name, statements };
}

/**
 * Explains a statement: whom it is held against, if not the paper; the causes by which it falls short, and what could explain it,
 * if it does.
 */
export function explanations({ remark, itself, verdicts }: PaperDocument["statements"][number]): string[] {
  const causes = new Map(verdicts.flatMap(({ cause }) => (cause === undefined ? [] : [[cause.id, cause]])));
  const named = [...causes.values()].map(({ id, by }) => `${id}, ${by === "us" ? "by us" : "by the algorithm"}`);
  return [
    ...(itself ? ["compared with Weir's own virtual time, which runs the same code: no verdict on the paper"] : []),
    ...(named.length > 0 ? [`cause: ${named.join("; ")}`] : []),
    ...(remark !== undefined && verdicts.some(({ ruling }) => ruling === "falls short" || ruling === "differs")
      ? [`remark: ${remark}`]
      : []),
  ];
}

/** Returns the alternative's ruling in the place of `verdict`; undefined: it is the same. */
export function otherVerdict(
  { alternative = [] }: Pick<PaperDocument["statements"][number], "alternative">,
  verdict: Verdict,
): Verdict | undefined {
  const other = alternative.find(({ clock }) => clock === verdict.clock);
  return other === undefined || isDeepStrictEqual(other, verdict) ? undefined : other;
}

/** Says by what, where and when it was made; "" if that is not known. */
export function madeLine({ made }: PaperDocument): string {
  if (made === undefined) return "";
  return `Made by ${describeMade(made)}, ${made.at}, in ${duration(made.wall_s)}.`;
}

/** Tells what was measured and what was asked for, one line for each quantity; then why it was not judged. */
export function findingLines({ findings, why }: Omit<Verdict, "clock" | "ruling"> & Partial<Verdict>): string[] {
  const lines = findings.map(({ measured, required, within }) =>
    required === "" ? measured : `${measured} (${within ? "" : "not "}${required})`,
  );
  return why === undefined ? lines : [...lines, why];
}

/** Shows what was measured, and how far curves are apart, if there are any. */
export function grids(paper: PaperDocument): Grid[] {
  return [measuredGrid(paper), differenceGrid(paper)].filter(({ rows }) => rows.length > 0);
}

/** One row for each quantity, one column for each clock, and one for each under the alternative. */
function measuredGrid({ clocks, quantities, alternative }: PaperDocument): Grid {
  const others = clocks.filter((clock) => quantities.some((one) => one.alternative?.[clock] !== undefined));
  return {
    title: "Measured",
    head: ["quantity", ...clocks, ...others.map((clock) => `${clock}, ${alternative?.name}`)],
    names: 1,
    rows: quantities
      .map(({ label, unit, values, seeds, alternative: other }) => [
        label,
        ...clocks.map((clock) => measured(values[clock], unit, seeds?.[clock])),
        ...others.map((clock) => measured(other?.[clock], unit)),
      ])
      .filter((row) => row.slice(1).some((text) => text !== "-")),
  };
}

/** null: did not happen. */
function measured(value: number | null | undefined, unit: string, seeds: readonly (number | null)[] = []): string {
  const known = (one: number | null) => one ?? Number.POSITIVE_INFINITY;
  return showSeeds(value === undefined ? undefined : known(value), seeds.map(known), unit);
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
