/**
 * A clock runs a scenario: with real frames, by discrete events, or by equations. Verbs and studies know no other way to run one, so a
 * further clock is one more object of this shape.
 */
import type { FlowCompletion } from "../result/completions.js";
import type { Result, Series } from "../result/result.js";
import type { Scenario } from "../scenario/types.js";

/** Clocks in the order in which the documentation and messages name them. */
export const kClockNames = ["wire", "sim", "model"] as const satisfies readonly Result["clock"][];
export type ClockName = (typeof kClockNames)[number];

export interface RunProgress {
  /** Part of the traffic's time that is over, 0 to 1. */
  done: number;
}

/** `Progress`: what the clock says of how far it is. */
export interface RunOptions<Progress = RunProgress> {
  /** Once aborted, the run ends at the time that it has reached, and its outcome covers what came until then. */
  signal: AbortSignal;
  /** Called now and then. */
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Folder of the files that the run itself writes, unless their paths are absolute; it exists when the run starts. Default: here. */
  folder?: string | undefined;
  /** Virtual time alone: skips time in which a network of long flows does the same, or phases of message graphs that are known, within this part of what it does. Default: skips nothing. */
  fastForward?: number | undefined;
}

export interface Outcome {
  result: Result;
  series: Series;
  /** Flows in the order of their completion. */
  flowTable: readonly FlowCompletion[];
  /** Time line of message graphs, as trace events for Perfetto and Chrome. */
  timeline?: string | undefined;
  /** Cost of the run on this machine. It differs from run to run, so it is kept apart from the result. */
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
