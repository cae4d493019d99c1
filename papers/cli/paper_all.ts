/** `weir paper all`: every experiment, side by side on worker processes, and one report of them. */
import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { makeFolder } from "../../src/base/folder.js";
import { beside } from "../../src/cli/beside.js";
import { type AddVerb, asUsage, type CliContext, kExit, print, UsageError, warn } from "../../src/cli/context.js";
import { integer } from "../../src/cli/device_options.js";
import { StopSignals } from "../../src/cli/stop_signals.js";
import { codeVersion } from "../../src/result/code_version.js";
import { madeNow } from "../../src/result/made.js";
import { duration } from "../../src/result/report/format.js";
import { writeAll } from "../engine/all/files.js";
import { runTasks, savedPaper, type TaskOutcome } from "../engine/all/run.js";
import { type Finished, type Summary, summarize } from "../engine/all/summary.js";
import { planTasks, selectExperiments, type Task } from "../engine/all/task.js";
import { renderAllText } from "../engine/all/text.js";
import { CLOCKS, type Clock } from "../engine/experiment.js";
import { readReferences } from "../engine/reference.js";
import { since } from "../engine/run.js";
import { EXPERIMENTS, secondsOn } from "../registry.js";
import { AllProgress } from "./paper_all_progress.js";
import { addPaperOptions, type PaperChoice } from "./paper_options.js";

interface AllChoice extends PaperChoice {
  only?: string[];
  jobs?: number;
  fresh?: boolean;
}

const kDefault: readonly Clock[] = ["sim", "model"];
const kFolder = join("weir-results", "paper-all");
const kMostJobs = 1024;

const kHelp = `
Each experiment leaves its own folder, DIR/<id>/, as weir paper <id> does; beside them are report.html and report.md, with every figure
and every statement, and summary.json. Experiments without the wire run side by side, those with it one at a time and alone. A clock
that an experiment does not have is left out for it.

The same call again goes on where the last one ended: what DIR has complete, by the same build of Weir with the same clocks, seed,
scale and references, is not run again. What was made with others is replaced: use another --out to keep both.

Examples:
  weir paper all                                       all of it in virtual time and by equations
  weir paper all --on all --out everything             on the wire as well
  weir paper all --only 'dcqcn-fig1*,qcn-vs-dcqcn'     * stands for any text
  weir paper all --only 'dcqcn-*' --reference ns3      ns3/dcqcn-fig10/<trace>/<label>.csv in the same plots

Ctrl-C ends what is under way; what is complete is kept, and the report says what is missing.

Exit status: 0 all was run, also where a statement falls short; 2 bad usage; 3 a run is invalid, or was not made to its end;
130 and 143 after SIGINT and SIGTERM.
`;

export function addPaperAll(paper: Command, context: CliContext, done: Parameters<AddVerb>[2]): void {
  const all = paper.command("all").description("run all experiments, and write one report of them");
  addPaperOptions(all, kFolder)
    .option("--only <id,...>", "experiments, * stands for any text, repeatable", patterns)
    .option("--jobs <n>", "experiments at a time (default: the CPUs)", integer("--jobs", 1, kMostJobs))
    .option("--fresh", "run again what is complete, too")
    .addHelpText("after", kHelp)
    .action(async (choice: AllChoice) => done(await run(context, choice)));
}

function patterns(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(",").map((part) => part.trim())];
}

async function run(context: CliContext, choice: AllChoice): Promise<number> {
  const { stderr } = context;
  const { out: directory = kFolder, jobs = availableParallelism(), quiet = false, seed, scale } = choice;
  const weir = codeVersion();
  const { tasks, left_out } = plan(context, choice, weir);
  const elevated = tasks.some(({ clocks }) => clocks.includes("wire")) ? await context.elevate() : undefined;
  if (elevated !== undefined) return elevated;
  makeFolder(directory);
  const todo = choice.fresh ? tasks : tasks.filter((task) => savedPaper(directory, task)?.complete !== true);
  if (!quiet) for (const line of startLines(directory, tasks, todo, jobs)) stderr.write(`${line}\n`);
  const began = performance.now();
  const stop = new StopSignals(context, quiet);
  const progress = quiet ? undefined : new AllProgress(stderr, todo, jobs);
  let outcomes: Map<string, TaskOutcome>;
  try {
    outcomes = await runTasks(todo, {
      setup: { directory, weir, seed, scale },
      jobs,
      startWorker: () => fork(beside(import.meta.url, "worker"), { stdio: ["ignore", "ignore", "pipe", "ipc"] }),
      signal: stop.signal,
      onBegin: (task) => progress?.begin(task),
      onProgress: (task, one) => progress?.update(task, one),
      onEnd: (task, outcome) => progress?.end(task, outcome),
    });
  } finally {
    progress?.finish();
    stop.release();
  }
  const finished = tasks.map((task): Finished => {
    return { task, document: savedPaper(directory, task), outcome: outcomes.get(task.experiment.id) };
  });
  const summary = summarize(finished, { ...factsOf(choice, weir, jobs), left_out, wall_s: since(began) });
  const report = writeAll(directory, summary, finished);
  print(context, choice.json, summary, (color) => `${renderAllText(summary, color)}\nreport: ${report}`);
  return stop.status ?? (summary.complete ? kExit.ok : kExit.invalid);
}

interface Plan {
  tasks: Task[];
  /** Experiments that have none of the clocks. */
  left_out: string[];
}

/** @throws UsageError, ScenarioError */
function plan({ stderr }: CliContext, { on, only = [], seed, scale, reference }: AllChoice, weir: string): Plan {
  const chosen = asUsage(() => selectExperiments(EXPERIMENTS, only));
  const references =
    reference === undefined ? new Map() : asUsage(() => readReferences(reference, EXPERIMENTS, chosen));
  if (reference !== undefined && references.size === 0) {
    warn({ stderr }, `${reference} has nothing for these experiments`);
  }
  const tasks = asUsage(() =>
    planTasks(chosen, {
      clocks: on ?? kDefault,
      // All clocks that there are mean all that each has.
      named: on !== undefined && on.length < CLOCKS.length,
      seed,
      scale,
      references,
      weir,
      seconds: (experiment, clock) => secondsOn(experiment, clock, scale),
    }),
  );
  if (tasks.length === 0) throw new UsageError("these experiments run on the wire only", { hint: "--on wire" });
  const ids = new Set(tasks.map(({ experiment }) => experiment.id));
  return { tasks, left_out: chosen.map(({ id }) => id).filter((id) => !ids.has(id)) };
}

function startLines(directory: string, tasks: readonly Task[], todo: readonly Task[], jobs: number): string[] {
  const before = tasks.length - todo.length;
  const replaced = todo.filter(({ experiment }) => existsSync(join(directory, experiment.id, "paper.json")));
  return [
    `${tasks.length} experiment${tasks.length === 1 ? "" : "s"}: ${todo.length} to run${before > 0 ? `, ${before} complete before` : ""}; results in ${directory}`,
    ...(todo.length > 0 ? [estimate(todo, jobs)] : []),
    ...replaced.map(
      ({ experiment }) => `${experiment.id}: what is there is not complete, or was made otherwise; runs again`,
    ),
  ];
}

/** Adds up the listed time of each; the wire is alone, whatever the jobs. */
function estimate(todo: readonly Task[], jobs: number): string {
  const seconds = (wire: boolean) =>
    todo.reduce((sum, task) => sum + (task.clocks.includes("wire") === wire ? task.seconds : 0), 0);
  const [side, alone] = [seconds(false), seconds(true)];
  const longest = Math.max(0, ...todo.filter(({ clocks }) => !clocks.includes("wire")).map((task) => task.seconds));
  const wall = alone + Math.max(longest, side / jobs);
  return `about ${duration(side + alone)} by one CPU, ${duration(wall)} with ${jobs} at a time, where nothing else runs`;
}

function factsOf(
  { on, seed, scale, only = [], reference }: AllChoice,
  weir: string,
  jobs: number,
): Omit<Summary, "complete" | "total" | "totals" | "experiments" | "left_out" | "wall_s"> {
  const options = {
    clocks: on ?? kDefault,
    seed: seed ?? null,
    scale: scale ?? null,
    only,
    reference: reference ?? null,
    jobs,
  };
  return { ...madeNow(), weir, options };
}
