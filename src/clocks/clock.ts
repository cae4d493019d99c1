/**
 * What runs a scenario: real frames, discrete events, equations. Verbs and studies know no other way to run one, so a clock more is an
 * object of this shape.
 */
import type { FlowCompletion } from "../result/completions.js";
import type { Result, Series } from "../result/result.js";
import type { Scenario } from "../scenario/types.js";

/** In the order in which they are named. */
export const kClockNames = ["wire", "sim", "model"] as const satisfies readonly Result["clock"][];
export type ClockName = (typeof kClockNames)[number];

export interface RunProgress {
  /** Part of the traffic's time that is over, 0 to 1. */
  done: number;
}

/** `Progress`: what the clock says of how far it is. */
export interface RunOptions<Progress = RunProgress> {
  /** Once aborted, the run ends at the time that it has reached, and its outcome is of what came until then. */
  signal: AbortSignal;
  /** Called now and then. */
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Where files that the run itself writes go, unless their paths are absolute; exists when it starts. Default: here. */
  folder?: string | undefined;
}

export interface Outcome {
  result: Result;
  series: Series;
  /** In the order of completion. */
  flowTable: readonly FlowCompletion[];
  /** What the run cost this machine. Differs from run to run, so it is kept apart from the result. */
  performance?: object;
  /** False when the run was stopped before its end. */
  complete: boolean;
}

export interface Clock<Options extends RunOptions<never> = RunOptions, Ran extends Outcome = Outcome> {
  readonly name: ClockName;
  /** @throws WeirError for a scenario that this clock cannot run. */
  check(scenario: Scenario): void;
  /** @throws WeirError for what the user can mend; the signal's reason when aborted before there is anything to tell. */
  run(scenario: Scenario, options: Options): Promise<Ran>;
}
