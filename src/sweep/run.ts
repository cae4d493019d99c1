/** A sweep's points, in this process or on workers: what is done already is left out, and everything is told as it happens. */

import type { StartWorker } from "../processes/worker.js";
import { filesByContent, type Plan, type Point, planText } from "./plan.js";
import { runPoint, type Simulate } from "./point.js";
import { type PoolOutcome, runPool } from "./pool.js";
import { ResultStore } from "./store.js";

export interface RunOptions {
  directory: string;
  /** Workers; undefined: the points run in this process, one after another. */
  jobs: number | undefined;
  simulate: Simulate;
  startWorker: StartWorker;
  /** Ends the run; points that are not done leave nothing behind. */
  signal: AbortSignal;
  /** Called once, before the first point, with what there is to do. */
  onStart: (points: readonly Point[]) => void;
  onProgress: (point: Point, fraction: number) => void;
  onOutcome: (point: Point, outcome: PoolOutcome) => void;
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
  const onOutcome = (point: Point, outcome: PoolOutcome) => {
    if (outcome.status === "done") summary.done++;
    else if (outcome.status !== "stopped") summary[outcome.status].push({ point, error: outcome.error });
    options.onOutcome(point, outcome);
  };
  try {
    if (options.jobs !== undefined) {
      await runPool(plan, todo, { ...options, jobs: options.jobs, onOutcome });
      return summary;
    }
    for (const point of todo) {
      if (options.signal.aborted) break;
      const onProgress = (fraction: number) => options.onProgress(point, fraction);
      onOutcome(point, await runPoint(options.simulate, plan.sweep, point, store, { ...options, onProgress }));
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
