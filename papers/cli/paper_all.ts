/** `weir paper all`: every experiment, side by side on worker processes, and one report of them. */
import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { makeFolder } from "../../src/base/folder.js";
import { beside } from "../../src/cli/beside.js";
import { type AddVerb, asUsage, type CliContext, kExit, print, UsageError, warn } from "../../src/cli/context.js";
import { StopSignals } from "../../src/cli/stop_signals.js";
import { codeVersion } from "../../src/result/code_version.js";
import { madeNow } from "../../src/result/made.js";
import { duration } from "../../src/result/report/format.js";
import { planText } from "../../src/study/plan.js";
import { ResultStore } from "../../src/study/store.js";
import { writeAll } from "../engine/all/files.js";
import { runTasks, savedPaper, type TaskOutcome } from "../engine/all/run.js";
import { type Finished, type Summary, summarize } from "../engine/all/summary.js";
import { planTasks, selectExperiments, type Task, type TaskPlan } from "../engine/all/task.js";
import { renderAllText } from "../engine/all/text.js";
import { CLOCKS, type Clock } from "../engine/experiment.js";
import { readReferences } from "../engine/reference.js";
import { since } from "../engine/run.js";
import type { RunsPlan } from "../engine/runs.js";
import { EXPERIMENTS, secondsOn } from "../registry.js";
import { AllProgress } from "./paper_all_progress.js";
import { addPaperOptions, type PaperChoice } from "./paper_options.js";

interface AllChoice extends PaperChoice {
  only?: string[];
  plan?: boolean;
}

const kDefault: readonly Clock[] = ["sim", "model"];
const kFolder = join("weir-results", "paper-all");

const kHelp = `
Each experiment leaves its own folder, DIR/<id>/, as weir paper <id> does; beside them are report.html and report.md, with every figure
and every statement, and summary.json. Runs in virtual time go side by side, those on the wire one at a time and alone. A clock
that an experiment does not have is left out for it.

The same call again goes on where the last one ended: a run that DIR has, of the same scenario and seed by the same build of Weir, is not
made again, and statements that have changed since are judged by it. What was made otherwise is replaced: use another --out to keep both.

Examples:
  weir paper all                                       all of it in virtual time and by equations
  weir paper all --on all --out everything             on the wire as well
  weir paper all --only 'dcqcn-fig1*,qcn-vs-dcqcn'     * stands for any text
  weir paper all --plan > points.jsonl                 many machines make the runs:
  weir sweep run --points points.jsonl --out everything --index 0 --chunk 10
  weir paper all --only 'dcqcn-*' --reference ns3      ns3/dcqcn-fig10/<trace>/<label>.csv in the same plots

Ctrl-C ends what is under way; what is complete is kept, and the report says what is missing.

Exit status: 0 all was run, also where a statement falls short; 2 bad usage; 3 a run is invalid, or was not made to its end;
130 and 143 after SIGINT and SIGTERM.
`;

export function addPaperAll(paper: Command, context: CliContext, done: Parameters<AddVerb>[2]): void {
  const all = paper.command("all").description("run all experiments, and write one report of them");
  addPaperOptions(all, kFolder)
    .option("--only <id,...>", "experiments, * stands for any text, repeatable", patterns)
    .option(
      "--plan",
      "write the plan of all runs in virtual time to stdout, for weir sweep run and submit, and run nothing",
    )
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
  const { tasks, plan, left_out } = planAll(context, choice, weir);
  if (choice.plan) return tellPlan(context, plan);
  const elevated = tasks.some(({ clocks }) => clocks.includes("wire")) ? await context.elevate() : undefined;
  if (elevated !== undefined) return elevated;
  makeFolder(directory);
  const todo = choice.fresh ? tasks : tasks.filter((task) => savedPaper(directory, task)?.complete !== true);
  if (!quiet) for (const line of startLines(directory, tasks, todo, jobs)) stderr.write(`${line}\n`);
  if (choice.fresh) forget(directory, plan);
  const began = performance.now();
  const stop = new StopSignals(context, quiet);
  const progress = quiet ? undefined : new AllProgress(stderr, todo, jobs);
  let outcomes: Map<string, TaskOutcome>;
  try {
    outcomes = await runTasks(todo, plan, {
      setup: { directory, seed, scale },
      jobs,
      startWorker: () => fork(beside(import.meta.url, "worker"), { stdio: ["ignore", "ignore", "pipe", "ipc"] }),
      signal: stop.signal,
      onBegin: (task) => progress?.begin(task),
      onProgress: (task, part) => progress?.update(task, part),
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

interface All extends TaskPlan {
  /** Experiments that have none of the clocks. */
  left_out: string[];
}

/** @throws UsageError, ScenarioError */
function planAll({ stderr }: CliContext, { on, only = [], seed, scale, reference }: AllChoice, weir: string): All {
  const chosen = asUsage(() => selectExperiments(EXPERIMENTS, only));
  const references =
    reference === undefined ? new Map() : asUsage(() => readReferences(reference, EXPERIMENTS, chosen));
  if (reference !== undefined && references.size === 0) {
    warn({ stderr }, `${reference} has nothing for these experiments`);
  }
  const { tasks, plan } = asUsage(() =>
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
  return { tasks, plan, left_out: chosen.map(({ id }) => id).filter((id) => !ids.has(id)) };
}

/** Points in virtual time as a plan of their own. */
function tellPlan({ stdout }: CliContext, { study, points }: RunsPlan): number {
  const sim = points.filter(({ clock }) => clock === "sim").map((point, index) => ({ ...point, index }));
  if (sim.length === 0) throw new UsageError("these experiments have no runs in virtual time");
  stdout.write(planText({ study: { ...study, points: sim.length }, points: sim }));
  return kExit.ok;
}

function forget(directory: string, { points }: RunsPlan): void {
  const store = ResultStore.open(directory);
  for (const point of points) store.removeResult(point);
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
  const wall = alone + side / jobs;
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
