/**
 * Runs experiments on worker processes: those without the wire side by side, the longest first; then those with the wire, one at a
 * time and alone, as frames need the whole machine. What a folder holds already is not made again.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inSlots } from "../../processes/slots.js";
import { type Crash, type StartWorker, Worker } from "../../processes/worker.js";
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

type PaperWorker = Worker<AllSetup, Order, PaperProgress, OrderOutcome>;

/** What each of `tasks` came to, by id; without those that were not begun. @throws WeirError if workers do not start. */
export async function runTasks(tasks: readonly Task[], options: AllOptions): Promise<Map<string, TaskOutcome>> {
  const outcomes = new Map<string, TaskOutcome>();
  const alone = tasks.filter(needsWire);
  const others = tasks.filter((task) => !needsWire(task)).sort((a, b) => b.seconds - a.seconds);
  await inSlots(Math.min(options.jobs, others.length), options.signal, (signal) =>
    workOff(others, outcomes, { ...options, signal }),
  );
  await workOff(alone, outcomes, options);
  return outcomes;
}

/** Takes from `queue` until it is empty; when it returns its worker is gone. */
async function workOff(queue: Task[], outcomes: Map<string, TaskOutcome>, options: AllOptions): Promise<void> {
  const { setup, startWorker, signal } = options;
  let worker: PaperWorker | undefined;
  try {
    for (let task = queue.shift(); task !== undefined && !signal.aborted; task = queue.shift()) {
      const { experiment, clocks, references, key } = task;
      const folder = join(setup.directory, experiment.id);
      // What a lab has built is taken down by whoever built it.
      worker ??= await Worker.start({ start: startWorker, setup, signal, asks: needsWire(task) });
      // Stopped while it started: what the folder has from before stays.
      if (signal.aborted) break;
      clearPaper(folder);
      options.onBegin(task);
      const order = { id: experiment.id, clocks, references, key };
      const outcome = await worker.run(order, (progress) => options.onProgress(task, progress));
      if (outcome.status === "crashed") worker = undefined;
      const ended = signal.aborted ? whenStopped(setup.directory, task) : outcome;
      outcomes.set(experiment.id, ended);
      options.onEnd(task, ended);
    }
  } finally {
    await worker?.end();
  }
}

/** A worker that was killed cannot have said that it had just finished: its folder tells. What is not whole goes. */
function whenStopped(directory: string, task: Task): OrderOutcome {
  if (savedPaper(directory, task) !== undefined) return { status: "done" };
  clearPaper(join(directory, task.experiment.id));
  return { status: "stopped" };
}

function needsWire({ clocks }: Pick<Task, "clocks">): boolean {
  return clocks.includes("wire");
}

/** What the folder of a task holds; undefined unless it was made by the same code with the same options. */
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
