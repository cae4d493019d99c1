/**
 * Runs experiments on worker processes: those without the wire side by side, the longest first; then those with the wire, one at
 * a time and alone, as frames need the whole machine. An experiment that a folder holds already is not made again.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runJobs } from "../../../src/base/processes/jobs.js";
import type { Crash, StartWorker } from "../../../src/base/processes/worker.js";
import type { PaperDocument } from "../document.js";
import { clearPaper } from "../files.js";
import type { PaperProgress } from "../run.js";
import type { AllSetup, Order, OrderOutcome } from "./serve.js";
import type { Task } from "./task.js";

export type TaskOutcome = OrderOutcome | Crash;

export interface AllOptions {
  setup: AllSetup;
  /** Experiments at a time, at most. */
  jobs: number;
  /** Its process runs serveExperiments(). */
  startWorker: StartWorker;
  /** Ends all that is under way, which then leaves nothing. */
  signal: AbortSignal;
  onBegin: (task: Task) => void;
  onProgress: (task: Task, progress: PaperProgress) => void;
  onEnd: (task: Task, outcome: TaskOutcome) => void;
}

/** Returns the outcome of each of `tasks`, by id; without those that were not begun. @throws WeirError if workers do not start. */
export async function runTasks(tasks: readonly Task[], options: AllOptions): Promise<Map<string, TaskOutcome>> {
  const { setup, startWorker, signal } = options;
  const outcomes = new Map<string, TaskOutcome>();
  const run = (some: readonly Task[], jobs: number, asks: boolean) => {
    const byId = new Map(some.map((task) => [task.experiment.id, task]));
    const taskOf = ({ id }: Order) => byId.get(id) as Task;
    const orders = some.map(
      ({ experiment: { id }, clocks, references, key }): Order => ({ id, clocks, references, key }),
    );
    return runJobs<AllSetup, Order, PaperProgress, OrderOutcome>(orders, {
      setup,
      startWorker,
      jobs,
      signal,
      asks,
      onBegin: (order) => {
        clearPaper(join(setup.directory, order.id));
        options.onBegin(taskOf(order));
      },
      onProgress: (order, progress) => options.onProgress(taskOf(order), progress),
      onEnd: (order, outcome) => {
        const ended = outcome.status === "stopped" ? whenStopped(setup.directory, taskOf(order)) : outcome;
        outcomes.set(order.id, ended);
        options.onEnd(taskOf(order), ended);
      },
    });
  };
  const others = tasks.filter((task) => !needsWire(task)).sort((a, b) => b.seconds - a.seconds);
  await run(others, options.jobs, false);
  // Their workers are asked to stop, not killed: a lab is taken down by the worker that has built it.
  await run(tasks.filter(needsWire), 1, true);
  return outcomes;
}

/** It may have finished just then: its folder tells. A folder that is not whole goes. */
function whenStopped(directory: string, task: Task): OrderOutcome {
  if (savedPaper(directory, task) !== undefined) return { status: "done" };
  clearPaper(join(directory, task.experiment.id));
  return { status: "stopped" };
}

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
