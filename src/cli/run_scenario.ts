/** One run of a scenario for a verb of any clock: files in a folder, tables or JSON on stdout, and an exit status. */
import { makeFolder } from "../base/folder.js";
import type { Clock, Outcome, RunOptions } from "../clocks/clock.js";
import { writeOutcome } from "../clocks/files.js";
import { withMade } from "../result/made.js";
import type { Result } from "../result/result.js";
import type { RunSource } from "../result/saved_run.js";
import { type CliContext, warn } from "./context.js";
import { meetExpectations } from "./expectations.js";
import { type RunChoice, removeEmpty, tellResult } from "./run_options.js";
import { StopSignals } from "./stop_signals.js";

export interface ScenarioRun<Options extends RunOptions<never>, Ran extends Outcome> {
  clock: Clock<Options, Ran>;
  source: RunSource;
  /** Folder of the results. */
  directory: string;
  /** Options for the clock, besides the folder. */
  options: Omit<Options, "folder">;
  /** Shows how far the run is. */
  progress?: { finish(): void } | undefined;
  /** Warnings that the outcome gives reason for. */
  warnings?: (result: Result) => string[];
  /** Returns the text behind the tables. */
  more?: (outcome: Ran) => string;
}

/** Runs to the end, or until it is aborted. Rejects when aborted before there is anything to tell. */
export async function runScenario<Options extends RunOptions<never>, Ran extends Outcome>(
  context: CliContext,
  choice: RunChoice,
  { clock, source, directory, options, progress, warnings = () => [], more = () => "" }: ScenarioRun<Options, Ran>,
): Promise<{ result: Result; complete: boolean; status: number }> {
  const { scenario } = source;
  makeFolder(directory);
  const begun = performance.now();
  try {
    let outcome: Ran;
    try {
      outcome = await clock.run(scenario, { ...options, folder: directory } as Options);
    } finally {
      progress?.finish();
    }
    const { series, complete } = outcome;
    const result = withMade(choice.series ? { ...outcome.result, series } : outcome.result);
    const report = writeOutcome(directory, { ...outcome, result }, source, choice.seriesFormat);
    for (const text of warnings(result)) warn(context, text);
    tellResult(context, choice, result, report, more(outcome));
    // Expectations of all parts together are judged when they are merged.
    const expected = scenario.part === undefined ? scenario : { ...scenario, expect: [] };
    return { result, complete, status: meetExpectations(context, choice, expected, result, begun) };
  } finally {
    removeEmpty(directory);
  }
}

/** Returns the exit status of a run that SIGINT and SIGTERM stop: its own if it was complete before, else the signal's. */
export async function untilStopped(
  context: CliContext,
  { quiet = false }: RunChoice,
  run: (signal: AbortSignal) => Promise<{ complete: boolean; status: number }>,
): Promise<number> {
  const stop = new StopSignals(context, quiet);
  try {
    const { complete, status } = await run(stop.signal);
    return complete ? status : (stop.status ?? status);
  } catch (error) {
    if (stop.status !== undefined) return stop.status;
    throw error;
  } finally {
    stop.release();
  }
}
