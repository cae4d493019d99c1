/** Runs one point of a plan: it comes to a result, or to the reason why there can be none. */
import { WeirError } from "../base/error.js";
import type { Clock, ClockName } from "../clocks/clock.js";
import { assignments, identityOf, type Point, type Study, scenarioOf, scenarioTextOf } from "./plan.js";
import type { ResultStore } from "./store.js";
import { type Cell, collectFields } from "./sweep/table.js";

/** Clocks that run points. */
export type Runners = Readonly<Record<ClockName, Pick<Clock, "run">>>;

export interface PointOptions {
  signal: AbortSignal;
  /** Called with the part of the point that is done, 0 to 1. */
  onProgress: (fraction: number) => void;
}

export type PointOutcome =
  | { status: "done"; fields: Cell[] }
  /** The reason is the point's own: it would fail again. */
  | { status: "failed"; error: string }
  /** `signal` ended it; nothing was written. */
  | { status: "stopped" };

/** Runs one point of a plan into the store. A failure that is not the point's own fault is thrown. */
export async function runPoint(
  runners: Runners,
  study: Study,
  point: Point,
  store: ResultStore,
  { signal, onProgress }: PointOptions,
): Promise<PointOutcome> {
  const identity = identityOf(study, point);
  const stopped = (): PointOutcome => {
    store.abandon(point);
    return { status: "stopped" };
  };
  const began = performance.now();
  try {
    const { scenario } = scenarioOf(identity, store.filesDirectory);
    const { text, set } = scenarioTextOf(study, point);
    const source = { text, set: [...assignments(set, point.set), `seed=${point.seed}`], scenario };
    const outcome = await runners[point.clock].run(scenario, {
      signal,
      folder: store.begin(point),
      onProgress: ({ done }) => onProgress(done),
      fastForward: identity.fast_forward,
    });
    if (!outcome.complete) return stopped();
    const wall_s = Math.round(performance.now() - began) / 1000;
    store.saveResult(point, identity, { outcome, source, wall_s, series: study.series });
    return { status: "done", fields: collectFields(outcome.result, study.collect) };
  } catch (error) {
    // A lab that is stopped before there is traffic has nothing to give.
    if (signal.aborted) return stopped();
    if (!(error instanceof WeirError)) throw error;
    store.saveFailure(point, identity, error.message);
    return { status: "failed", error: error.message };
  }
}
