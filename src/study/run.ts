/**
 * Runs points of a plan, in this process or on workers: points that are done already are left out, and everything is told as it happens.
 */

import { runJobs } from "../base/processes/jobs.js";
import type { Crash, StartWorker } from "../base/processes/worker.js";
import { filesByContent, type Plan, type Point, planText } from "./plan.js";
import { type PointOutcome, type Runners, runPoint } from "./point.js";
import type { StudySetup } from "./serve.js";
import { ResultStore } from "./store.js";

/** A point whose worker died is tried so many times in all. */
const kMostTries = 3;

export type StudyOutcome = PointOutcome | Crash;

export interface RunOptions {
  directory: string;
  /** Workers for points in virtual time; undefined: all run in this process, one after another. */
  jobs: number | undefined;
  /** Run the points of this process. */
  runners: Runners;
  startWorker: StartWorker;
  /** Ends the run when aborted; points that are not done leave nothing behind. */
  signal: AbortSignal;
  /** Called once, before the first point, with the points that there are to run. */
  onStart: (points: readonly Point[]) => void;
  onProgress: (point: Point, fraction: number) => void;
  onOutcome: (point: Point, outcome: StudyOutcome) => void;
}

export interface RunSummary {
  done: number;
  /** Points that were done already before. */
  skipped: number;
  /** Points that failed for good, now or before. */
  failed: { point: Point; error: string }[];
  /** Points whose workers died. */
  crashed: { point: Point; error: string }[];
}

/** Runs the `points` that have no result yet. */
export async function runPlan(plan: Plan, points: readonly Point[], options: RunOptions): Promise<RunSummary> {
  const store = ResultStore.create(options.directory);
  store.removeUnfinished();
  store.savePlan(planText(plan));
  store.saveFiles(filesByContent(plan.study));
  const summary: RunSummary = { done: 0, skipped: 0, failed: [], crashed: [] };
  const todo = pending(store, points, summary);
  options.onStart(todo);
  const onOutcome = (point: Point, outcome: StudyOutcome) => {
    if (outcome.status === "done") summary.done++;
    else if (outcome.status !== "stopped") summary[outcome.status].push({ point, error: outcome.error });
    options.onOutcome(point, outcome);
  };
  try {
    const { jobs, startWorker, signal, onProgress, directory, runners } = options;
    // Two labs at once would be in each other's way, and equations are soon solved.
    const goesBeside = ({ clock }: Point) => jobs !== undefined && clock === "sim";
    const beside = todo.filter(goesBeside);
    if (jobs !== undefined && beside.length > 0) {
      const setup: StudySetup = { study: plan.study, directory };
      const shared = { setup, startWorker, jobs, tries: kMostTries, signal, onProgress, onEnd: onOutcome };
      await runJobs<StudySetup, Point, number, PointOutcome>(beside, shared);
    }
    for (const point of todo.filter((one) => !goesBeside(one))) {
      if (signal.aborted) break;
      const context = { signal, onProgress: (fraction: number) => onProgress(point, fraction) };
      onOutcome(point, await runPoint(runners, plan.study, point, store, context));
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
    // Real frames may fail for something that this machine lacks, and that may be there the next time.
    const error = point.clock === "wire" ? undefined : store.failure(point);
    const place = `${point.id} ${point.folder ?? ""}`;
    if (store.isDone(point) || seen.has(place)) summary.skipped++;
    else if (error !== undefined) summary.failed.push({ point, error });
    else return seen.add(place);
    return false;
  });
}
