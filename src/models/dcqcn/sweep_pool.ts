/** Points of a sweep on worker processes: whoever is free takes the next one. */
import { setImmediate as turn } from "node:timers/promises";
import { WeirError } from "../../base/error.js";
import { inSlots } from "../../processes/slots.js";
import { type StartWorker, Worker } from "../../processes/worker.js";
import { type SweepOutcome, type SweepPoint, solvePoint } from "./sweep.js";

export interface SweepOptions {
  /** Processes; 1: this one. */
  jobs: number;
  /** Its process runs sweep_worker.ts. */
  startWorker: StartWorker;
  /** Ends all workers. */
  signal: AbortSignal;
  onStart?: (index: number) => void;
  onDone?: (index: number) => void;
}

/** What a worker answers. */
export type Solved = { status: "solved"; outcome: SweepOutcome } | { status: "failed"; error: string };

/**
 * Outcomes in the order of the points; without those that were not done when the signal came. When it returns no worker is left.
 * Throws WeirError when a point has no solution, or a worker ends by itself.
 */
export async function sweepOn(points: readonly SweepPoint[], options: SweepOptions): Promise<SweepOutcome[]> {
  const outcomes: (SweepOutcome | undefined)[] = points.map(() => undefined);
  const queue = points.map((point, index) => ({ point, index }));
  const work = async (signal: AbortSignal, solve: (point: SweepPoint) => Promise<SweepOutcome>) => {
    for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
      options.onStart?.(next.index);
      outcomes[next.index] = await solve(next.point);
      options.onDone?.(next.index);
      await turn();
    }
  };
  const jobs = Math.min(options.jobs, points.length);
  if (jobs <= 1) await work(options.signal, async (point) => solvePoint(point));
  else {
    await inSlots(jobs, options.signal, async (signal) => {
      if (signal.aborted) return;
      const { startWorker: start } = options;
      const worker = await Worker.start<null, SweepPoint, never, Solved>({ start, setup: null, signal });
      try {
        await work(signal, async (point) => {
          const solved = await worker.run(point, () => {});
          if (solved.status === "solved") return solved.outcome;
          throw new WeirError(solved.error);
        });
      } finally {
        await worker.end();
      }
    });
  }
  return outcomes.filter((outcome) => outcome !== undefined);
}
