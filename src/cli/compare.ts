/** `weir compare`: results of several runs side by side. */
import { statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { parseFraction } from "../base/units.js";
import { writeWhole } from "../base/write_file.js";
import { compareRuns, type NamedRun } from "../result/report/overlay.js";
import { exactLines, judgeExactly } from "../result/report/overlay_exact.js";
import { renderOverlay } from "../result/report/overlay_html.js";
import { judge, kLimited, type Limited, type Limits } from "../result/report/overlay_limits.js";
import { renderComparison } from "../result/report/overlay_table.js";
import { wantsColor } from "../result/report/terminal.js";
import { readRun } from "../result/run_files.js";
import type { SavedRun } from "../result/saved_run.js";
import { type AddVerb, asUsage, type CliContext, kExit, UsageError } from "./context.js";
import { parsed } from "./quantity.js";

interface CompareOptions {
  json?: boolean;
  out?: string;
  labels?: string[];
  maxDifference?: Limits;
  exact?: boolean;
}

const kHelp = `
Differences are to the first run. Flows and queues are matched by name; what only some runs have is listed, not compared.
--max-difference takes ${kLimited.join(", ")}: goodput of each flow; total, jain, marks, cnps, pfc of all together;
mean, p50, p95 of the length of each probed queue; fct, slowdown: median completion time and mean slowdown of each size of message.

Examples:
  weir compare weir-results/wire weir-results/sim
  weir compare wire/ sim/ --out overlay.html --labels wire,sim
  weir compare a/result.json b/result.json c/result.json --json | jq .totals
  weir compare wire/ sim/ --max-difference goodput=5%,p50=20%,p95=20%
  weir compare before/ after/ --exact                     is a simulation still the same, to the last digit?

Exit status: 0 ok, 1 a difference is too large (with --exact: there is one), or an error, 2 bad usage or not a result; 3 with --max-difference: a run is not
valid, its figures mean nothing.
`;

export const addCompare: AddVerb = (parent, context, done) => {
  parent
    .command("compare")
    .description("compare results of several runs")
    .argument("<run...>", "two or more folders that runs left, or their result.json")
    .option("--json", "one JSON document on stdout instead of tables")
    .option("--out <file.html>", "write a page with the runs' plots over each other")
    .option(
      "--labels <a,b,...>",
      "names of the runs (default: their clocks, or their folders where clocks are the same)",
      labels,
    )
    .option("--max-difference <figure=percent,...>", "exit with 1 when a run differs more from the first", limits)
    .option("--exact", "exit with 1 unless all of result and series is the same, but for `made`")
    .addHelpText("after", kHelp)
    .action((paths: string[], options: CompareOptions) => done(compare(context, paths, options)));
};

function compare({ stdout }: CliContext, paths: readonly string[], options: CompareOptions): number {
  const runs = named(paths, options.labels);
  const comparison = compareRuns(runs);
  const verdicts = judge(comparison, options.maxDifference ?? {});
  const exact = options.exact ? judgeExactly(runs) : [];
  if (options.out !== undefined) writeWhole(options.out, renderOverlay(runs, comparison, verdicts));
  if (options.json) {
    const limited = options.maxDifference === undefined ? {} : { limits: verdicts };
    const compared = { ...comparison, ...limited, ...(options.exact && { exact }) };
    stdout.write(`${JSON.stringify(compared, undefined, 2)}\n`);
  } else {
    stdout.write(renderComparison(comparison, verdicts, { color: wantsColor(stdout) }));
    const [{ label = "" } = {}] = runs;
    for (const verdict of exact) stdout.write(`\n${exactLines(verdict, label).join("\n")}\n`);
    if (options.out !== undefined) stdout.write(`\nreport: ${options.out}\n`);
  }
  if (!exact.every(({ same }) => same)) return kExit.failure;
  if (options.maxDifference === undefined) return kExit.ok;
  if (comparison.runs.some(({ valid }) => !valid)) return kExit.invalid;
  return verdicts.every(({ within }) => within) ? kExit.ok : kExit.failure;
}

function named(paths: readonly string[], given: readonly string[] | undefined): NamedRun[] {
  const files = paths.map(resultFile);
  if (paths.length < 2) {
    // A file that is not there is the nearer reason.
    for (const file of files) asUsage(() => readRun(file));
    throw new UsageError("one run: nothing to compare it to", { hint: "give two or more" });
  }
  if (given !== undefined && given.length !== paths.length) {
    throw new UsageError(`--labels: ${given.length} for ${paths.length} runs`, { hint: "give one for each run" });
  }
  const runs = files.map((file) => asUsage(() => readRun(file)));
  const names = given ?? defaultLabels(files, runs);
  return runs.map((run, i) => ({ ...run, label: names[i] as string }));
}

/** The first of these that tells all runs apart: their clocks, their folders' names, the paths themselves with a number. */
function defaultLabels(files: readonly string[], runs: readonly SavedRun[]): string[] {
  const choices = [
    runs.map(({ result }) => result.clock),
    files.map((file) => basename(dirname(resolve(file)))),
    files.map((file) => basename(file, ".json")),
  ];
  return choices.find(distinct) ?? files.map((file, i) => `${i + 1}: ${file}`);
}

function resultFile(path: string): string {
  const folder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  return folder ? join(path, "result.json") : path;
}

function labels(text: string): string[] {
  const found = text.split(",").map((label) => label.trim());
  if (found.includes("")) throw new UsageError(`--labels ${text}: one of them is empty`);
  if (!distinct(found)) throw new UsageError(`--labels ${text}: two are the same`);
  return found;
}

function limits(text: string): Limits {
  const found: Partial<Record<Limited, number>> = {};
  for (const part of text.split(",")) {
    const [name = "", value, ...rest] = part.trim().split("=");
    const figure = kLimited.find((known) => known === name);
    if (figure === undefined || value === undefined || rest.length > 0) {
      throw new UsageError(`--max-difference ${part}: not a limit`, {
        hint: `use FIGURE=PERCENT, such as goodput=5%; figures: ${kLimited.join(", ")}`,
      });
    }
    found[figure] = parsed(`--max-difference ${figure}:`, value, parseFraction);
  }
  return found;
}

function distinct(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}
