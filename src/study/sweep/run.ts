/** A sweep's points, in this process or on workers: what is done already is left out, and everything is told as it happens. */

import { runJobs } from "../../base/processes/jobs.js";
import type { Crash, StartWorker } from "../../base/processes/worker.js";
import type { Clock } from "../../clocks/clock.js";
import { filesByContent, type Plan, type Point, planText } from "./plan.js";
import { type PointOutcome, runPoint } from "./point.js";
import type { SweepSetup } from "./serve.js";
import { ResultStore } from "./store.js";

/** A point whose worker died is tried so many times in all. */
const kMostTries = 3;

export type SweepOutcome = PointOutcome | Crash;

export interface RunOptions {
  directory: string;
  /** Workers; undefined: the points run in this process, one after another. */
  jobs: number | undefined;
  /** Runs the points of this process. */
  clock: Pick<Clock, "run">;
  startWorker: StartWorker;
  /** Ends the run; points that are not done leave nothing behind. */
  signal: AbortSignal;
  /** Called once, before the first point, with what there is to do. */
  onStart: (points: readonly Point[]) => void;
  onProgress: (point: Point, fraction: number) => void;
  onOutcome: (point: Point, outcome: SweepOutcome) => void;
}

export interface RunSummary {
  done: number;
  /** Done already before. */
  skipped: number;
  /** For good, now or before. */
  failed: { point: Point; error: string }[];
  /** Their workers died. */
  crashed: { point: Point; error: string }[];
}

/** Runs those of `points` that have no result yet. */
export async function runSweep(plan: Plan, points: readonly Point[], options: RunOptions): Promise<RunSummary> {
  const store = ResultStore.create(options.directory);
  store.removeUnfinished();
  store.savePlan(planText(plan));
  store.saveFiles(filesByContent(plan.sweep));
  const summary: RunSummary = { done: 0, skipped: 0, failed: [], crashed: [] };
  const todo = pending(store, points, summary);
  options.onStart(todo);
  const onOutcome = (point: Point, outcome: SweepOutcome) => {
    if (outcome.status === "done") summary.done++;
    else if (outcome.status !== "stopped") summary[outcome.status].push({ point, error: outcome.error });
    options.onOutcome(point, outcome);
  };
  try {
    const { jobs, startWorker, signal, onProgress, directory } = options;
    if (jobs !== undefined) {
      const setup: SweepSetup = { sweep: plan.sweep, directory };
      const shared = { setup, startWorker, jobs, tries: kMostTries, signal, onProgress, onEnd: onOutcome };
      await runJobs<SweepSetup, Point, number, PointOutcome>(todo, shared);
      return summary;
    }
    for (const point of todo) {
      if (signal.aborted) break;
      const context = { signal, onProgress: (fraction: number) => onProgress(point, fraction) };
      onOutcome(point, await runPoint(options.clock, plan.sweep, point, store, context));
    }
    return summary;
  } finally {
    store.removeUnfinished();
  }
}

/** The points to run, each result once; the others are counted. */
function pending(store: ResultStore, points: readonly Point[], summary: RunSummary): Point[] {
  const seen = new Set<string>();
  return points.filter((point) => {
    const error = store.failure(point.id);
    if (store.hasResult(point.id) || seen.has(point.id)) summary.skipped++;
    else if (error !== undefined) summary.failed.push({ point, error });
    else return seen.add(point.id);
    return false;
  });
}
