/**
 * A worker process's side: performs the tasks that it is handed over IPC, one at a time, until nobody is there to hand it any.
 * worker.ts is the other side.
 */

/** First what all tasks share, then a task; the next one after its outcome. `stop` ends the task under way early. */
export type ToWorker<Setup, Task> = { setup: Setup } | { task: Task } | { stop: true };
export type FromWorker<Progress, Outcome> = { ready: true } | { progress: Progress } | { outcome: Outcome };

export interface TaskContext<Progress> {
  signal: AbortSignal;
  onProgress: (progress: Progress) => void;
}

export type Perform<Task, Progress, Outcome> = (task: Task, context: TaskContext<Progress>) => Promise<Outcome>;

/** Answers until the other end of the channel is gone: then the process ends at once, whatever it is doing. */
export function serveTasks<Setup, Task, Progress, Outcome>(
  begin: (setup: Setup) => Perform<Task, Progress, Outcome>,
): void {
  const send = (message: FromWorker<Progress, Outcome>) => void process.send?.(message);
  const abort = new AbortController();
  let perform: Perform<Task, Progress, Outcome> | undefined;
  process.on("disconnect", () => process.exit());
  // A Ctrl-C reaches every process of the terminal; what to do about it is decided by the one that hands out the tasks.
  process.on("SIGINT", () => {});
  process.on("message", async (message: ToWorker<Setup, Task>) => {
    if ("setup" in message) perform = begin(message.setup);
    else if ("stop" in message) abort.abort();
    else if (perform !== undefined) {
      const onProgress = (progress: Progress) => send({ progress });
      send({ outcome: await perform(message.task, { signal: abort.signal, onProgress }) });
    }
  });
  send({ ready: true });
}
