/** `weir sweep`: many runs of one scenario, on this machine or as tasks of a scheduler. */

import { availableParallelism } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { csvLine } from "../base/csv_line.js";
import { WeirError } from "../base/error.js";
import { THIS_COMMAND } from "../base/this_command.js";
import { formatSize, parseSize } from "../base/units.js";
import { writeWhole } from "../base/write_file.js";
import { type ClockName, kClockNames } from "../clocks/clock.js";
import type { Scenario } from "../scenario/types.js";
import { filesByContent, identityOf, type Plan, type Point, planText, readPlan, scenarioOf } from "../study/plan.js";
import { ResultStore } from "../study/store.js";
import { planSweep } from "../study/sweep/plan_sweep.js";
import { loadSweep } from "../study/sweep/spec.js";
import { kubernetesManifest, slurmScript, taskCount } from "../study/sweep/submit.js";
import {
  type Axes,
  axesOf,
  type Cell,
  groupTable,
  type Merged,
  merge,
  pointColumns,
  pointRow,
  type Table,
} from "../study/sweep/table.js";
import { clockList } from "./clock_option.js";
import {
  type AddVerb,
  asUsage,
  asUsageError,
  type CliContext,
  describeError,
  kExit,
  UsageError,
  warn,
} from "./context.js";
import { integer } from "./device_options.js";
import { kMostTold, kPointTools, type PointTools, runPoints, tellPoints, tellSummary } from "./points.js";
import { parsed } from "./quantity.js";
import { addTrustOption, readyToRun, type TrustOptions } from "./trust.js";

interface RunChoice extends TrustOptions {
  points: string;
  out: string;
  index?: number;
  chunk: number;
  jobs?: number;
  json?: boolean;
  quiet?: boolean;
}

interface MergeChoice {
  points?: string;
  out?: string;
  collect?: string[];
  group?: boolean;
  partial?: boolean;
  json?: boolean;
}

interface SubmitChoice {
  slurm?: boolean;
  k8s?: boolean;
  points: string;
  results?: string;
  chunk?: number;
  parallel: number;
  timeLimit?: number;
  memory?: number;
  image?: string;
  claim?: string;
  configMap?: string;
  out?: string;
}

const kMostPoints = 100_000;
/** Most tasks that a job gets by default: Slurm's MaxArraySize is 1001 unless somebody has set it. */
const kUsualTasks = 1000;
const kPlanHelp = `
Every combination of values is checked before anything runs. The plan holds all that the points need; to change a file later does
not change it. docs/guides/sweep.md has the fields of a sweep file.

Examples:
  weir sweep plan sweep.yaml > points.jsonl
  weir sweep plan sweep.yaml --on sim,model > points.jsonl     each combination simulated, and by equations
`;
const kRunHelp = `
Points that have a result in the folder are left out: to go on after a stop or a crash, run the same command again.
Without an index all points run here. The index is that of --index, else SLURM_ARRAY_TASK_ID, else JOB_COMPLETION_INDEX; with it
only the points from index x chunk on run, as many as a chunk has, and in this process unless --jobs is given.
A line of CSV for each point goes to stdout as soon as the point is done. Points on real frames run one after another in this process,
after the others; one that was not valid runs again the next time.

Examples:
  weir sweep run --points points.jsonl --out results
  weir sweep run --points points.jsonl --out results --index 3 --chunk 10

Exit status: 0 all points are done, 42 to try again would not help (a point or the plan is at fault), 2 bad usage, 130 and 143
after SIGINT and SIGTERM; anything else: try again.
`;
const kMergeHelp = `
Examples:
  weir sweep merge results > table.csv
  weir sweep merge results --group --collect totals.goodput_bps,fct.slowdown.p99

Exit status: 0 ok, 1 points are missing (with --partial: all of them), 2 bad usage, 3 a result is not valid.
`;
const kSubmitHelp = `
Nothing is submitted: the script or manifest goes to stdout.

Examples:
  weir sweep submit --slurm --points points.jsonl --results /shared/results --chunk 10 > sweep.sbatch && sbatch sweep.sbatch
  weir sweep submit --k8s --points points.jsonl --image registry/weir:0.1 --claim sweep | kubectl apply -f -
`;

export const addSweep: AddVerb = (parent, context, done) => addSweepOn(kPointTools, parent, context, done);

/** Adds the verb with tools of the caller's. */
export function addSweepOn(tools: PointTools, ...[parent, context, done]: Parameters<AddVerb>): void {
  const sweep = parent.command("sweep").description("run a scenario many times: plan, run, merge, submit");
  const points = (command: Command) => command.requiredOption("--points <file>", "the plan, from `weir sweep plan`");
  sweep
    .command("plan")
    .description("check a sweep file and write its points, one JSON object per line")
    .argument("<file>", "sweep file (YAML)")
    .option(
      "--on <clock,...|all>",
      "clocks that each combination runs on: wire, sim, model (default: `on` of the sweep file, else sim)",
      clockList(kClockNames),
    )
    .option("--out <file>", "write there instead of stdout")
    .addHelpText("after", kPlanHelp)
    .action((file: string, { on, out }: { on?: ClockName[]; out?: string }) => {
      const { plan, warnings } = asUsage(() =>
        planSweep({ ...loadSweep(file), ...(on && { on }) }, file, tools.codeVersion()),
      );
      for (const warning of warnings) warn(context, warning);
      print(context, out, planText(plan));
    });
  addTrustOption(points(sweep.command("run")))
    .description("run the points of a plan that have no result yet")
    .requiredOption("--out <dir>", "folder of the results")
    .option("--index <n>", "number of the chunk to run, from 0", integer("--index", 0, kMostPoints))
    .option("--chunk <n>", "points of one chunk", integer("--chunk", 1, kMostPoints), 1)
    .option("--jobs <n>", "worker processes (default: as many as CPUs)", integer("--jobs", 1, 1024))
    .option("--json", "a JSON object per point on stdout instead of CSV")
    .option("--quiet", "no progress")
    .addHelpText("after", kRunHelp)
    .action(async (choice: RunChoice) => done(await run(tools, context, choice)));
  sweep
    .command("merge")
    .description("make one table of all results")
    .argument("<dir>", "folder of the results")
    .option("--points <file>", "the plan (default: that of the last run into the folder)")
    .option("--collect <paths>", "columns, separated by commas (default: those of the sweep file)", (text: string) =>
      text.split(","),
    )
    .option("--group", "mean, min, max and standard deviation over the seeds")
    .option("--partial", "missing points are no error")
    .option("--json", "a list of JSON objects instead of CSV")
    .option("--out <file>", "write there instead of stdout")
    .addHelpText("after", kMergeHelp)
    .action((dir: string, choice: MergeChoice) => done(mergeResults(context, dir, choice)));
  points(sweep.command("submit"))
    .description("write a Slurm batch script or a Kubernetes Job for a plan")
    .option("--slurm", "a batch script for sbatch: a job array")
    .option("--k8s", "a manifest for kubectl: an Indexed Job")
    .option("--chunk <n>", `points of one task (default: so many that there are at most ${kUsualTasks} tasks)`, chunk)
    .option("--parallel <n>", "tasks at a time, at most", integer("--parallel", 1, kMostPoints), 50)
    .option("--time-limit <minutes>", "of one task", integer("--time-limit", 1, 1e6))
    .option("--memory <size>", "of one task, such as 2GiB", memory)
    .option("--results <dir>", "Slurm: folder of the results, seen by all nodes (default: results, beside the plan)")
    .option("--image <image>", "Kubernetes: container image with weir on its path")
    .option("--claim <name>", "Kubernetes: PersistentVolumeClaim that results go to, and that has points.jsonl")
    .option("--config-map <name>", "Kubernetes: points.jsonl is in this ConfigMap instead")
    .option("--out <file>", "write there instead of stdout")
    .addHelpText("after", kSubmitHelp)
    .action((choice: SubmitChoice) => print(context, choice.out, submit(choice)));
}

async function run(tools: PointTools, context: CliContext, choice: RunChoice): Promise<number> {
  const { stderr } = context;
  const index = choice.index ?? taskIndex(tools.environment);
  const code = tools.codeVersion();
  let plan: Plan;
  let points: readonly Point[];
  try {
    plan = readPlan(choice.points);
    checkCode(plan, code);
    points = index === undefined ? plan.points : chunkOf(plan, index, choice.chunk);
  } catch (error) {
    // A file that cannot be read just now may be there the next time.
    if (!(error instanceof WeirError)) throw error;
    if (error.cause !== undefined) throw index === undefined ? asUsageError(error) : error;
    stderr.write(describeError(error));
    return kExit.permanent;
  }
  const store = ResultStore.create(choice.out);
  const running = points.filter(({ clock }) => clock !== "model");
  const elevated = await readyToRun(
    context,
    choice.points,
    scenariosOf(plan, running, store),
    running.map(({ clock }) => clock),
    choice,
  );
  if (elevated !== undefined) return elevated;
  const jobs = choice.jobs ?? (index === undefined ? availableParallelism() : undefined);
  const by = axesOf(plan);
  const { status, summary } = await runPoints(tools, context, plan, points, {
    ...{ out: choice.out, jobs, quiet: choice.quiet === true },
    onStart: (write) => {
      if (!choice.json) write(csvLine(pointColumns(by, plan.study.collect)));
    },
    onDone: (point, fields, write) => write(rowText(plan, by, point, fields, choice.json === true)),
  });
  tellSummary(context, summary, points, choice);
  return status;
}

/** The scenarios of points, each once for all seeds. */
function scenariosOf({ study }: Plan, points: readonly Point[], store: ResultStore): Scenario[] {
  if (points.length === 0) return [];
  store.saveFiles(filesByContent(study));
  const each = new Map(points.map((point) => [JSON.stringify([point.scenario, point.set]), point])).values();
  return [...each].map((point) => asUsage(() => scenarioOf(identityOf(study, point), store.filesDirectory).scenario));
}

function rowText({ study }: Plan, by: Axes, point: Point, fields: readonly Cell[], json: boolean): string {
  const row = pointRow(by, point, fields);
  if (!json) return csvLine(row);
  return `${JSON.stringify(rowObject(pointColumns(by, study.collect), row))}\n`;
}

function rowObject(columns: readonly string[], row: readonly Cell[]): Record<string, Cell> {
  return Object.fromEntries(columns.map((column, i) => [column, row[i]]));
}

/** Refuses to give results of other code than this its name. */
function checkCode({ study }: Plan, code: string): void {
  if (study.code === code) return;
  throw new WeirError(`the plan was made by weir ${study.code}, and this is ${code}`, {
    hint: "make the plan with the installation that runs it: weir sweep plan",
  });
}

function taskIndex(environment: PointTools["environment"]): number | undefined {
  for (const name of ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"]) {
    const text = environment[name];
    if (text !== undefined) return integer(name, 0, kMostPoints)(text);
  }
  return undefined;
}

function chunkOf({ points }: Plan, index: number, size: number): readonly Point[] {
  const chunks = taskCount({ points: points.length, chunk: size });
  if (index < chunks) return points.slice(index * size, (index + 1) * size);
  throw new WeirError(`there is no chunk ${index}: ${points.length} points in chunks of ${size}`, {
    hint: `the index must be 0 to ${chunks - 1}`,
  });
}

/**
 * Warns that statistics leave out values that a result does not have, such as the PFC frames of a port that sent none: a mean is
 * that of the rest.
 */
function warnOfAbsent(context: CliContext, { rows }: Merged, collect: readonly string[]): void {
  collect.forEach((path, i) => {
    const absent = rows.filter(({ fields }) => fields[i] === undefined).length;
    if (absent === 0 || absent === rows.length) return;
    warn(context, `${path}: absent from ${absent} of ${rows.length} results, which its statistics leave out`);
  });
}

function mergeResults(context: CliContext, directory: string, choice: MergeChoice): number {
  const store = asUsage(() => ResultStore.open(directory));
  const plan = asUsage(() => readPlan(choice.points ?? store.planFile));
  const collect = choice.collect ?? plan.study.collect;
  const merged = merge(plan, store, collect);
  const by = axesOf(plan);
  const table: Table = choice.group
    ? groupTable(by, merged, collect)
    : {
        columns: pointColumns(by, collect),
        rows: merged.rows.map(({ point, fields }) => pointRow(by, point, fields)),
      };
  if (choice.group) warnOfAbsent(context, merged, collect);
  const { columns, rows } = table;
  print(
    context,
    choice.out,
    choice.json
      ? `${JSON.stringify(
          rows.map((row) => rowObject(columns, row)),
          undefined,
          2,
        )}\n`
      : [columns, ...rows].map(csvLine).join(""),
  );
  const { stderr } = context;
  collect.forEach((path, i) => {
    if (merged.rows.length === 0 || merged.rows.some(({ fields }) => fields[i] !== undefined)) return;
    warn(context, `no result has a value at ${path}`);
  });
  tellPoints(
    stderr,
    merged.failed.map(({ point, error }) => `point ${point.index} fails: ${error}`),
  );
  tellPoints(
    stderr,
    merged.invalid.map(({ point, reasons }) => `point ${point.index} is not valid: ${reasons.join("; ")}`),
  );
  const whole = merged.invalid.length > 0 ? kExit.invalid : kExit.ok;
  const absent = merged.missing.length + merged.failed.length;
  if (absent === 0) return whole;
  const indices = merged.missing.slice(0, kMostTold).map(({ index }) => index);
  const which = indices.length > 0 ? `: ${indices.join(", ")}${merged.missing.length > kMostTold ? ", ..." : ""}` : "";
  stderr.write(`${merged.missing.length} of ${plan.points.length} points are missing${which}\n`);
  if (merged.rows.length === 0) {
    stderr.write("no point has a result: there is nothing to make a table of\n");
    return kExit.failure;
  }
  return choice.partial ? whole : kExit.failure;
}

function submit(choice: SubmitChoice): string {
  const { slurm, k8s, image, claim, configMap } = choice;
  if ((slurm === true) === (k8s === true)) throw new UsageError("give either --slurm or --k8s");
  const { study } = asUsage(() => readPlan(choice.points));
  const tasks = {
    name: study.name,
    points: study.points,
    chunk: choice.chunk ?? Math.ceil(study.points / kUsualTasks),
    parallel: choice.parallel,
    timeLimit: choice.timeLimit,
    memory: choice.memory,
  };
  const refuse = (names: string, scheduler: string) => new UsageError(`${names}: not for ${scheduler}`);
  if (slurm) {
    if (image !== undefined || claim !== undefined || configMap !== undefined) {
      throw refuse("--image, --claim and --config-map", "Slurm");
    }
    const points_file = resolve(choice.points);
    const results = resolve(choice.results ?? join(dirname(points_file), "results"));
    return slurmScript({ ...tasks, command: THIS_COMMAND, points_file, results });
  }
  if (choice.results !== undefined) throw refuse("--results", "Kubernetes, where results go to the claim");
  if (image === undefined || claim === undefined) throw new UsageError("--k8s needs --image and --claim");
  return kubernetesManifest({ ...tasks, image, claim, configMap });
}

const chunk = (text: string) => integer("--chunk", 1, kMostPoints)(text);

function memory(text: string): number {
  const least = 2 ** 20;
  const bytes = parsed("--memory", text, parseSize);
  if (bytes >= least) return bytes;
  throw new UsageError(`--memory ${text}: not a size from ${formatSize(least)} on`);
}

function print({ stdout }: CliContext, file: string | undefined, text: string): void {
  if (file === undefined) stdout.write(text);
  else writeWhole(file, text);
}
