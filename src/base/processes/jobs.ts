/** Many tasks on a few worker processes: a worker that is free takes the next one. */
import { type Crash, type StartWorker, Worker } from "./worker.js";

/** Outcome of a task that `signal` ended before it was done. */
export interface Stopped {
  status: "stopped";
}

export interface JobOptions<Setup, Task, Progress, Outcome> {
  /** Sent to every worker before its first task. */
  setup: Setup;
  /** Its process runs serveTasks(). */
  startWorker: StartWorker;
  /** Workers at most. */
  jobs: number;
  /** A task whose worker died is tried so many times in all; default: once. */
  tries?: number;
  /** Ends all workers, and with them the tasks that they are at. */
  signal: AbortSignal;
  /** Tasks are asked to end when the signal comes, and can take down what they have built. Default: their processes are killed. */
  asks?: boolean;
  /** Called when a worker is there for the task. */
  onBegin?: (task: Task) => void;
  onProgress: (task: Task, progress: Progress) => void;
  /** Not called for tasks that were not begun. */
  onEnd: (task: Task, outcome: Outcome | Crash | Stopped) => void;
  /** Tasks that can begin once this one has ended; they come before those that wait. */
  next?: (ended: Task) => readonly Task[];
}

/** Runs `tasks` in their order; when it returns no worker is left. @throws WeirError if workers do not start. */
export async function runJobs<Setup, Task, Progress, Outcome extends { status: string }>(
  tasks: readonly Task[],
  options: JobOptions<Setup, Task, Progress, Outcome>,
): Promise<void> {
  const queue = tasks.map((task) => ({ task, tries: 0 }));
  // The first worker that fails ends the others, and its reason stays.
  const failure = new AbortController();
  const signal = AbortSignal.any([options.signal, failure.signal]);
  const slots = Array.from({ length: Math.min(options.jobs, tasks.length) }, () =>
    workOff(queue, { ...options, signal }).catch((error: unknown) => failure.abort(error)),
  );
  await Promise.all(slots);
  if (failure.signal.aborted && !options.signal.aborted) throw failure.signal.reason;
}

/** Takes from `queue` until it is empty; when it returns its worker is gone. */
async function workOff<Setup, Task, Progress, Outcome extends { status: string }>(
  queue: { task: Task; tries: number }[],
  options: JobOptions<Setup, Task, Progress, Outcome>,
): Promise<void> {
  const {
    setup,
    startWorker: start,
    signal,
    asks = false,
    tries = 1,
    onBegin,
    onProgress,
    onEnd,
    next = () => [],
  } = options;
  let worker: Worker<Setup, Task, Progress, Outcome> | undefined;
  try {
    for (let first = queue.shift(); first !== undefined && !signal.aborted; first = queue.shift()) {
      const { task } = first;
      worker ??= await Worker.start({ start, setup, signal, asks });
      // The signal may have come while it started.
      if (signal.aborted) break;
      onBegin?.(task);
      const outcome = await worker.run(task, (progress) => onProgress(task, progress));
      if (outcome.status === "crashed") worker = undefined;
      // A worker that was killed cannot have said what became of its task.
      if (signal.aborted && outcome.status !== "done") onEnd(task, { status: "stopped" });
      else if (outcome.status === "crashed" && ++first.tries < tries) queue.push(first);
      else {
        onEnd(task, outcome);
        queue.unshift(...next(task).map((one) => ({ task: one, tries: 0 })));
      }
    }
  } finally {
    await worker?.end();
  }
}
