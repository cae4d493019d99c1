/** Points of a sweep on worker processes: whoever is free takes the next one. */
import type { ChildProcess } from "node:child_process";
import { setImmediate as turn } from "node:timers/promises";
import { WeirError } from "../../config/error.js";
import { type SweepOutcome, type SweepPoint, solvePoint } from "./sweep.js";

export interface SweepOptions {
  /** Processes; 1: this one. */
  jobs: number;
  /** Starts a worker: a process with an IPC channel that runs sweep_worker.ts. */
  startWorker: () => ChildProcess;
  /** Ends all workers. */
  signal: AbortSignal;
  onStart?: (index: number) => void;
  onDone?: (index: number) => void;
}

/**
 * Outcomes in the order of the points; without those that were not done when the signal came. When it returns no worker is left.
 * Throws WeirError when a worker ends by itself.
 */
export async function sweepOn(points: readonly SweepPoint[], options: SweepOptions): Promise<SweepOutcome[]> {
  const outcomes: (SweepOutcome | undefined)[] = points.map(() => undefined);
  const queue = points.map((point, index) => ({ point, index }));
  const work = async (solve: (point: SweepPoint) => SweepOutcome | Promise<SweepOutcome>) => {
    for (let next = queue.shift(); next !== undefined && !options.signal.aborted; next = queue.shift()) {
      options.onStart?.(next.index);
      outcomes[next.index] = await solve(next.point);
      options.onDone?.(next.index);
      await turn();
    }
  };
  const jobs = Math.min(options.jobs, points.length);
  if (jobs <= 1) await work(solvePoint);
  else await Promise.all(Array.from({ length: jobs }, () => withWorker(options, work)));
  return outcomes.filter((outcome) => outcome !== undefined);
}

async function withWorker(
  { startWorker, signal }: SweepOptions,
  work: (solve: (point: SweepPoint) => Promise<SweepOutcome>) => Promise<void>,
): Promise<void> {
  const child = startWorker();
  const ended = new Promise<never>((_, reject) => {
    child.on("error", (error) => reject(new WeirError(`a worker does not start: ${error.message}`, { cause: error })));
    child.on("exit", (status, by) => reject(new WeirError(`a worker ended: ${by ?? `status ${status}`}`)));
  });
  // What comes after the work is done is its own end.
  ended.catch(() => {});
  const kill = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  const solve = (point: SweepPoint): Promise<SweepOutcome> => {
    const answered = new Promise<SweepOutcome>((resolve) => void child.once("message", resolve));
    child.send(point);
    return Promise.race([answered, ended]);
  };
  try {
    await work(solve);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener("abort", kill);
    kill();
  }
}
