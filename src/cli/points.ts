/** Runs points of a plan for a verb: on worker processes, with progress, until a signal comes. */
import { fork } from "node:child_process";
import { availableParallelism } from "node:os";
import type { Command } from "commander";
import type { StartWorker } from "../base/processes/worker.js";
import { loadAddon } from "../native/addon.js";
import { codeVersion } from "../result/code_version.js";
import { harmless } from "../result/report/terminal.js";
import type { Plan, Point } from "../study/plan.js";
import { PointsProgress } from "../study/progress.js";
import { type RunSummary, runPlan } from "../study/run.js";
import type { Cell } from "../study/sweep/table.js";
import { beside } from "./beside.js";
import { type CliContext, collect, kExit } from "./context.js";
import { integer } from "./device_options.js";
import { StopSignals } from "./stop_signals.js";

/** Tools of verbs that run points; tests give their own. */
export interface PointTools {
  codeVersion: () => string;
  /** Throws if the native core does not load: that is this machine's failure, not a point's. */
  loadCore: () => void;
  startWorker: StartWorker;
  environment: Readonly<Record<string, string | undefined>>;
}

export const kPointTools: PointTools = {
  codeVersion,
  loadCore: () => void loadAddon(),
  startWorker: () => fork(beside(import.meta.url, "../study/worker"), { stdio: ["ignore", "ignore", "pipe", "ipc"] }),
  environment: process.env,
};

export interface PointsChoice {
  /** Folder of the results. */
  out: string;
  /** Worker processes; undefined: the points run in this one. */
  jobs: number | undefined;
  quiet: boolean;
  /** Estimates the time of a point, in any unit; default: all take as long. */
  weightOf?: (point: Point) => number;
  /** Called before the first point; `write` goes to stdout. */
  onStart?: (write: (text: string) => void) => void;
  onDone?: (point: Point, fields: readonly Cell[], write: (text: string) => void) => void;
}

/** Most lines about single points. */
export const kMostTold = 10;

/** Runs those of `points` that have no result yet. `stopped`: a signal ended it before it was done. */
export async function runPoints(
  tools: Pick<PointTools, "loadCore" | "startWorker">,
  context: CliContext,
  plan: Plan,
  points: readonly Point[],
  { out, jobs, quiet, weightOf = () => 1, onStart, onDone }: PointsChoice,
): Promise<{ status: number; summary: RunSummary; stopped: boolean }> {
  const { stdout, stderr } = context;
  if (points.some(({ clock }) => clock !== "model")) tools.loadCore();
  let progress: PointsProgress | undefined;
  const write = (text: string) => {
    progress?.clear();
    stdout.write(text);
  };
  const signals = new StopSignals(context, quiet);
  let summary: RunSummary;
  try {
    summary = await runPlan(plan, points, {
      directory: out,
      jobs,
      runners: await context.clocks(),
      startWorker: tools.startWorker,
      signal: signals.signal,
      onStart: (todo) => {
        const weights = new Map(todo.map((point) => [point.index, weightOf(point)]));
        if (!quiet) progress = new PointsProgress(stderr, weights);
        onStart?.(write);
      },
      onProgress: (point, fraction) => progress?.update(point.index, fraction),
      onOutcome: (point, outcome) => {
        if (outcome.status === "done") onDone?.(point, outcome.fields, write);
        if (outcome.status !== "stopped") progress?.end(point.index, outcome.status !== "done");
      },
    });
  } finally {
    progress?.close();
    signals.release();
  }
  return { status: signals.status ?? statusOf(summary), summary, stopped: signals.status !== undefined };
}

function statusOf({ failed, crashed }: RunSummary): number {
  if (crashed.length > 0) return kExit.failure;
  return failed.length > 0 ? kExit.permanent : kExit.ok;
}

/** Says which points failed, and how many are done. */
export function tellSummary(
  { stderr }: Pick<CliContext, "stderr">,
  { done, skipped, failed, crashed }: RunSummary,
  points: readonly Point[],
  { out, quiet }: { out: string; quiet?: boolean | undefined },
): void {
  tellPoints(
    stderr,
    failed.map(({ point, error }) => `error: point ${point.index} fails: ${error}`),
  );
  tellPoints(
    stderr,
    crashed.map(({ point, error }) => `error: point ${point.index} has no result: ${error}`),
  );
  const bad = failed.length + crashed.length;
  const left = points.length - done - skipped - bad;
  const parts = [
    `${done} done`,
    ...(skipped > 0 ? [`${skipped} done before`] : []),
    ...(bad > 0 ? [`${bad} failed`] : []),
    ...(left > 0 ? [`${left} left`] : []),
  ];
  if (!quiet) stderr.write(`${points.length} points: ${parts.join(", ")}; results in ${out}\n`);
}

export function tellPoints(stderr: CliContext["stderr"], lines: readonly string[]): void {
  for (const line of lines.slice(0, kMostTold)) stderr.write(harmless(`${line}\n`));
  if (lines.length > kMostTold) stderr.write(`and ${lines.length - kMostTold} more\n`);
}

/** Options of verbs that run a scenario many times. */
export function addPointOptions(command: Command): Command {
  return command
    .argument("<file>", "scenario file (YAML)")
    .option("--set <path=value>", "override a field of the scenario, repeatable", collect)
    .option("--out <dir>", "folder for results (default: weir-results/<scenario>-<time>)")
    .option("--jobs <n>", "runs at a time (default: as many as CPUs)", integer("--jobs", 1, 1024))
    .option("--json", "one JSON document on stdout instead of tables")
    .option("--quiet", "no progress");
}

/** Number of processes for `jobs` at a time; undefined: a single job runs in this process. */
export function workers(jobs = availableParallelism()): number | undefined {
  return jobs === 1 ? undefined : jobs;
}
