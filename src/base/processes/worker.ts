/** A process of this machine that performs tasks, as seen by the one that hands them out. */
import type { ChildProcess } from "node:child_process";
import { WeirError } from "../error.js";
import type { FromWorker, ToWorker } from "./serve.js";

/** Characters that are kept of what a worker said before it died. */
const kLastWords = 2000;

/** Starts a worker: a process with an IPC channel that runs serveTasks(), its stderr a pipe. */
export type StartWorker = () => ChildProcess;

export interface Crash {
  status: "crashed";
  error: string;
}

export interface WorkerOptions<Setup> {
  start: StartWorker;
  setup: Setup;
  /** Ends the worker, and with it the task that it is at. */
  signal: AbortSignal;
  /** The signal asks it to end its task early, which then has an outcome. Default: it is killed. */
  asks?: boolean;
}

export class Worker<Setup, Task, Progress, Outcome> {
  private lastWords = "";
  private readonly exited: Promise<string>;
  private onMessage: (message: FromWorker<Progress, Outcome>) => void = () => {};

  private constructor(
    private readonly child: ChildProcess,
    { signal, asks = false }: WorkerOptions<Setup>,
  ) {
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.lastWords = (this.lastWords + text).slice(-kLastWords);
    });
    child.on("message", (message: FromWorker<Progress, Outcome>) => this.onMessage(message));
    // An error comes of sending to a worker that has just died; its exit tells about that.
    child.on("error", () => {});
    const end = () => void (asks ? this.send({ stop: true }) : child.kill("SIGKILL"));
    if (signal.aborted) end();
    signal.addEventListener("abort", end);
    this.exited = new Promise((resolve) => {
      child.on("close", (status, by) => {
        signal.removeEventListener("abort", end);
        const how = by === null ? `ended with status ${status}` : `was ended by ${by}`;
        const words = this.lastWords.trim();
        resolve(`its process ${how}${words === "" ? "" : `: ${words}`}`);
      });
    });
  }

  /** @throws WeirError when it does not start. */
  static async start<Setup, Task, Progress, Outcome>(
    options: WorkerOptions<Setup>,
  ): Promise<Worker<Setup, Task, Progress, Outcome>> {
    const worker = new Worker<Setup, Task, Progress, Outcome>(options.start(), options);
    const dead = await Promise.race([
      worker.exited,
      new Promise<undefined>((resolve) => {
        worker.onMessage = (message) => void ("ready" in message && resolve(undefined));
      }),
    ]);
    if (dead !== undefined) throw new WeirError(`a worker does not start: ${dead}`);
    worker.send({ setup: options.setup });
    return worker;
  }

  async run(task: Task, onProgress: (progress: Progress) => void): Promise<Outcome | Crash> {
    const answered = new Promise<Outcome>((resolve) => {
      this.onMessage = (message) => {
        if ("outcome" in message) resolve(message.outcome);
        else if ("progress" in message) onProgress(message.progress);
      };
    });
    this.send({ task });
    return Promise.race([answered, this.exited.then((error): Crash => ({ status: "crashed", error }))]);
  }

  /** Kills a worker that waits for a task: it has nothing to lose. */
  async end(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.exited;
  }

  private send(message: ToWorker<Setup, Task>): void {
    // A channel that is closed already throws unless someone takes the error.
    this.child.send(message, () => {});
  }
}
