/**
 * Runs experiments on worker processes. All that runs in virtual time runs side by side, whichever experiment it is of, and an experiment is
 * judged as soon as its runs are there; those with the wire come last, one at a time and alone, as frames need the whole machine. What a
 * folder holds already is not made again.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runJobs } from "../../../src/base/processes/jobs.js";
import type { Crash, StartWorker } from "../../../src/base/processes/worker.js";
import { filesByContent } from "../../../src/study/plan.js";
import { ResultStore } from "../../../src/study/store.js";
import type { PaperDocument } from "../document.js";
import { clearPaper } from "../files.js";
import type { RunsPlan } from "../runs.js";
import type { AllSetup, Work, WorkOutcome } from "./serve.js";
import type { Task } from "./task.js";

export type TaskOutcome = WorkOutcome | Crash;

export interface AllOptions {
  setup: Omit<AllSetup, "study">;
  /** Worker processes at most. */
  jobs: number;
  /** Its process runs serveExperiments(). */
  startWorker: StartWorker;
  /** Ends all that is under way; runs that are whole stay. */
  signal: AbortSignal;
  onBegin: (task: Task) => void;
  /** How much of the experiment is done, 0 to 1. */
  onProgress: (task: Task, done: number) => void;
  onEnd: (task: Task, outcome: TaskOutcome) => void;
}

/** An experiment that is under way. */
interface Running {
  /** Pieces of work, and those that have ended. */
  pieces: number;
  ended: number;
  begun: boolean;
}

/**
 * Returns what each of `tasks` came to, by id; without those that were not begun. `plan` has the runs of these, and may have others.
 * @throws WeirError if workers do not start.
 */
export async function runTasks(
  tasks: readonly Task[],
  plan: RunsPlan,
  options: AllOptions,
): Promise<Map<string, TaskOutcome>> {
  const { setup, startWorker, signal, jobs } = options;
  const store = ResultStore.create(setup.directory);
  store.removeUnfinished();
  store.saveFiles(filesByContent(plan.study));
  const outcomes = new Map<string, TaskOutcome>();
  const byId = new Map(tasks.map((task) => [task.experiment.id, task]));
  const taskOf = ({ experiment }: Work) => byId.get(experiment) as Task;
  const points = longestFirst(tasks).flatMap(({ experiment: { id } }) =>
    plan.runs.flatMap(({ experiment, point }): (Work & { point: RunsPlan["points"][number] })[] => {
      return experiment === id && point.clock === "sim" && !store.isDone(point) ? [{ experiment, point }] : [];
    }),
  );
  const running = new Map(
    tasks.map(({ experiment: { id } }): [string, Running] => {
      const own = points.filter(({ experiment }) => experiment === id);
      return [id, { pieces: own.length + 1, ended: 0, begun: false }];
    }),
  );
  const stateOf = ({ experiment }: Work) => running.get(experiment) as Running;
  const clear = ({ experiment: { id } }: Task) => {
    clearPaper(
      store,
      id,
      plan.runs.filter(({ experiment }) => experiment === id).map(({ point }) => point),
    );
  };
  const run = (work: readonly Work[], most: number, asks: boolean) =>
    runJobs<AllSetup, Work, number, WorkOutcome>(work, {
      setup: { ...setup, study: plan.study },
      startWorker,
      jobs: most,
      signal,
      asks,
      onBegin: (one) => {
        const state = stateOf(one);
        if (state.begun) return;
        state.begun = true;
        clear(taskOf(one));
        options.onBegin(taskOf(one));
      },
      onProgress: (one, done) => {
        const { pieces, ended } = stateOf(one);
        options.onProgress(taskOf(one), Math.min(1, (ended + done) / pieces));
      },
      onEnd: (one, outcome) => {
        stateOf(one).ended++;
        // Whoever judges says what became of a run.
        if ("point" in one || outcome.status === "stopped") return;
        outcomes.set(one.experiment, outcome);
        options.onEnd(taskOf(one), outcome);
      },
      next: (one) => {
        const { pieces, ended } = stateOf(one);
        const task = taskOf(one);
        return ended === pieces - 1 && !needsWire(task) ? [judging(task)] : [];
      },
    });
  const ready = tasks.filter((task) => !needsWire(task) && running.get(task.experiment.id)?.pieces === 1);
  await run([...longestFirst(ready).map(judging), ...points], jobs, false);
  // What a lab has built is taken down by whoever built it.
  await run(tasks.filter(needsWire).map(judging), 1, true);
  for (const task of tasks) {
    const { id } = task.experiment;
    if (running.get(id)?.begun !== true || outcomes.has(id)) continue;
    // It may have finished just then: its folder tells.
    const done = savedPaper(setup.directory, task) !== undefined;
    if (!done) clear(task);
    const outcome = { status: done ? ("done" as const) : ("stopped" as const) };
    outcomes.set(id, outcome);
    options.onEnd(task, outcome);
  }
  return outcomes;
}

const judging = ({ experiment: { id }, clocks, references, key }: Task): Work => ({
  experiment: id,
  ...{ clocks, references, key },
});

const longestFirst = (tasks: readonly Task[]) => [...tasks].sort((a, b) => b.seconds - a.seconds);

function needsWire({ clocks }: Pick<Task, "clocks">): boolean {
  return clocks.includes("wire");
}

/** Returns the document in a task's folder; undefined unless it was made by the same code with the same options. */
export function savedPaper(directory: string, { experiment, key }: Task): PaperDocument | undefined {
  try {
    const folder = join(directory, experiment.id);
    const document = JSON.parse(readFileSync(join(folder, "paper.json"), "utf8")) as Partial<PaperDocument>;
    return document.made?.key === key && existsSync(join(folder, "figure.svg"))
      ? (document as PaperDocument)
      : undefined;
  } catch {
    // Not there, or cut off: it was not made.
    return undefined;
  }
}
