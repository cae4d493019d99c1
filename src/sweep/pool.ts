/** Points on worker processes of this machine: whoever is free takes the next one. */
import type { ChildProcess } from "node:child_process";
import { WeirError } from "../config/error.js";
import type { Plan, Point } from "./plan.js";
import type { PointOutcome } from "./point.js";
import type { FromWorker, ToWorker } from "./serve.js";

/** A point whose worker died is tried so many times in all. */
const kMostTries = 3;
/** Of what a worker said before it died, characters. */
const kLastWords = 2000;

/** Starts a worker: a process with an IPC channel that runs serve(), its stderr a pipe. */
export type StartWorker = () => ChildProcess;

export type PoolOutcome = PointOutcome | { status: "crashed"; error: string };

export interface PoolOptions {
  /** Workers at most. */
  jobs: number;
  directory: string;
  startWorker: StartWorker;
  /** Ends all workers, and with them the points that they are at. */
  signal: AbortSignal;
  onProgress: (point: Point, fraction: number) => void;
  onOutcome: (point: Point, outcome: PoolOutcome) => void;
}

/** Runs `points`; when it returns no worker is left. Throws WeirError if workers do not start. */
export async function runPool({ sweep }: Plan, points: readonly Point[], options: PoolOptions): Promise<void> {
  const queue = points.map((point) => ({ point, tries: 0 }));
  const abort = new AbortController();
  const signal = AbortSignal.any([options.signal, abort.signal]);
  const workOff = async (): Promise<void> => {
    let worker: Worker | undefined;
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
      const { point } = next;
      worker ??= await Worker.start(options.startWorker, { sweep, directory: options.directory }, signal);
      const outcome = await worker.run(point, (fraction) => options.onProgress(point, fraction));
      if (signal.aborted && outcome.status !== "done") break;
      if (outcome.status === "crashed") {
        worker = undefined;
        next.tries++;
        if (next.tries < kMostTries) {
          queue.push(next);
          continue;
        }
      }
      options.onOutcome(point, outcome);
    }
    await worker?.end();
  };
  const slots = Array.from({ length: Math.min(options.jobs, points.length) }, () =>
    workOff().catch((error: unknown) => {
      abort.abort();
      throw error;
    }),
  );
  const ended = await Promise.allSettled(slots);
  const failed = ended.find((slot) => slot.status === "rejected");
  if (failed !== undefined && !options.signal.aborted) throw failed.reason;
}

class Worker {
  private lastWords = "";
  private readonly exited: Promise<string>;
  private onMessage: (message: FromWorker) => void = () => {};

  private constructor(
    private readonly child: ChildProcess,
    signal: AbortSignal,
  ) {
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.lastWords = (this.lastWords + text).slice(-kLastWords);
    });
    child.on("message", (message: FromWorker) => this.onMessage(message));
    // Sending to a worker that has just died; its exit tells.
    child.on("error", () => {});
    const kill = () => void child.kill("SIGKILL");
    if (signal.aborted) kill();
    signal.addEventListener("abort", kill);
    this.exited = new Promise((resolve) => {
      child.on("close", (status, by) => {
        signal.removeEventListener("abort", kill);
        const how = by === null ? `ended with status ${status}` : `was ended by ${by}`;
        const words = this.lastWords.trim();
        resolve(`its process ${how}${words === "" ? "" : `: ${words}`}`);
      });
    });
  }

  static async start(start: StartWorker, setup: ToWorker, signal: AbortSignal): Promise<Worker> {
    const worker = new Worker(start(), signal);
    const dead = await Promise.race([
      worker.exited,
      new Promise<undefined>((resolve) => {
        worker.onMessage = (message) => void ("ready" in message && resolve(undefined));
      }),
    ]);
    if (dead !== undefined) throw new WeirError(`a worker does not start: ${dead}`);
    worker.child.send(setup);
    return worker;
  }

  async run(point: Point, onProgress: (fraction: number) => void): Promise<PoolOutcome> {
    const answered = new Promise<PoolOutcome>((resolve) => {
      this.onMessage = (message) => {
        if ("outcome" in message) resolve(message.outcome);
        else if ("progress" in message) onProgress(message.progress);
      };
    });
    this.child.send({ point } satisfies ToWorker);
    return Promise.race([answered, this.exited.then((error): PoolOutcome => ({ status: "crashed", error }))]);
  }

  /** It waits for a point and has nothing to lose. */
  async end(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.exited;
  }
}
