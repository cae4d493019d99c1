/** One point: from the plan to a result, or to why there can be none. */
import { WeirError } from "../base/error.js";
import type { Clock, ClockName } from "../clocks/clock.js";
import type { Result } from "../result/result.js";
import type { RunSource } from "../result/saved_run.js";
import { assignments, type Identity, identityOf, type Point, type Study, scenarioOf, scenarioTextOf } from "./plan.js";
import type { Place, ResultStore } from "./store.js";
import { type Cell, collectFields } from "./sweep/table.js";

/** What points run on. */
export type Runners = Readonly<Record<ClockName, Pick<Clock, "run">>>;

export interface PointOptions {
  signal: AbortSignal;
  /** How much of the point is done, 0 to 1. */
  onProgress: (fraction: number) => void;
}

export type PointOutcome<Done = { fields: Cell[] }> =
  | ({ status: "done" } & Done)
  /** For reasons of its own: it would fail again. */
  | { status: "failed"; error: string }
  /** `signal` ended it; nothing was written. */
  | { status: "stopped" };

/** Runs one point of a plan into the store. A failure that is not the point's own fault is thrown. */
export async function runPoint(
  runners: Runners,
  study: Study,
  point: Point,
  store: ResultStore,
  options: PointOptions,
): Promise<PointOutcome> {
  const identity = identityOf(study, point);
  const { text, set } = scenarioTextOf(study, point);
  const source = () => ({
    text,
    set: [...assignments(set, point.set), `seed=${point.seed}`],
    scenario: scenarioOf(identity, store.filesDirectory).scenario,
  });
  const outcome = await runInto(store, point, { ...{ runners, identity, source }, series: study.series }, options);
  if (outcome.status !== "done") return outcome;
  return { status: "done", fields: collectFields(outcome.result, study.collect) };
}

/** A run, and what it is of. */
export interface RunInput {
  runners: Runners;
  identity: Identity;
  source: () => RunSource;
  series?: boolean | undefined;
}

/** Runs a scenario and keeps what it comes to as that of `place`. */
export async function runInto(
  store: ResultStore,
  place: Place,
  { runners, identity, source, series }: RunInput,
  { signal, onProgress }: PointOptions,
): Promise<PointOutcome<{ result: Result }>> {
  const stopped = (): PointOutcome<{ result: Result }> => {
    store.abandon(place);
    return { status: "stopped" };
  };
  try {
    const made = source();
    const outcome = await runners[identity.clock].run(made.scenario, {
      signal,
      folder: store.begin(place),
      onProgress: ({ done }) => onProgress(done),
    });
    if (!outcome.complete) return stopped();
    store.saveResult(place, identity, outcome, made, series);
    return { status: "done", result: outcome.result };
  } catch (error) {
    // A lab that is stopped before there is traffic has nothing to give.
    if (signal.aborted) return stopped();
    if (!(error instanceof WeirError)) throw error;
    store.saveFailure(place, identity, error.message);
    return { status: "failed", error: error.message };
  }
}
