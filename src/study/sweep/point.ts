/** One point: from the plan to a file of results, or of why there can be none. */
import { WeirError } from "../../base/error.js";
import type { Clock } from "../../clocks/clock.js";
import { identityOf, type Point, type Sweep, scenarioOf } from "./plan.js";
import type { ResultStore } from "./store.js";
import { type Cell, collectFields } from "./table.js";

export interface PointOptions {
  signal: AbortSignal;
  /** How much of the point is done, 0 to 1. */
  onProgress: (fraction: number) => void;
}

export type PointOutcome =
  | { status: "done"; fields: Cell[] }
  /** For reasons of its own: it would fail again. */
  | { status: "failed"; error: string }
  /** `signal` ended it; nothing was written. */
  | { status: "stopped" };

/** Runs one point into the store. What is not the point's own fault is thrown. */
export async function runPoint(
  clock: Pick<Clock, "run">,
  sweep: Sweep,
  point: Point,
  store: ResultStore,
  { signal, onProgress }: PointOptions,
): Promise<PointOutcome> {
  const identity = identityOf(sweep, point);
  try {
    const { scenario } = scenarioOf(identity, store.filesDirectory);
    const outcome = await clock.run(scenario, {
      signal,
      onProgress: ({ done }) => onProgress(done),
    });
    if (!outcome.complete) return { status: "stopped" };
    if (sweep.series) store.saveSeries(point.id, outcome.series);
    store.saveResult(point.id, identity, outcome.result, outcome.performance);
    return { status: "done", fields: collectFields(outcome.result, sweep.collect) };
  } catch (error) {
    // A lab that is stopped before there is traffic has nothing to give.
    if (signal.aborted) return { status: "stopped" };
    if (!(error instanceof WeirError)) throw error;
    store.saveFailure(point.id, identity, error.message);
    return { status: "failed", error: error.message };
  }
}
