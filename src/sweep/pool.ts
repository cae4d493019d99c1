/** Points on worker processes of this machine: whoever is free takes the next one. */
import { inSlots } from "../processes/slots.js";
import { type Crash, type StartWorker, Worker } from "../processes/worker.js";
import type { Plan, Point } from "./plan.js";
import type { PointOutcome } from "./point.js";
import type { SweepSetup } from "./serve.js";

/** A point whose worker died is tried so many times in all. */
const kMostTries = 3;

export type PoolOutcome = PointOutcome | Crash;

type SweepWorker = Worker<SweepSetup, Point, number, PointOutcome>;

export interface PoolOptions {
  /** Workers at most. */
  jobs: number;
  directory: string;
  /** Its process runs serve(). */
  startWorker: StartWorker;
  /** Ends all workers, and with them the points that they are at. */
  signal: AbortSignal;
  onProgress: (point: Point, fraction: number) => void;
  onOutcome: (point: Point, outcome: PoolOutcome) => void;
}

/** Runs `points`; when it returns no worker is left. Throws WeirError if workers do not start. */
export async function runPool({ sweep }: Plan, points: readonly Point[], options: PoolOptions): Promise<void> {
  const queue = points.map((point) => ({ point, tries: 0 }));
  const workOff = async (signal: AbortSignal): Promise<void> => {
    let worker: SweepWorker | undefined;
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
      const { point } = next;
      worker ??= await Worker.start({
        start: options.startWorker,
        setup: { sweep, directory: options.directory },
        signal,
      });
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
  await inSlots(Math.min(options.jobs, points.length), options.signal, workOff);
}
