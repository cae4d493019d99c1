/** What a paper.json was made by and from: with the same key there is no reason to make it again. */
import { type HostFacts, hostFacts } from "../report/host_facts.js";
import { sha256 } from "../sweep/files.js";
import { type Experiment, trialsOn } from "./experiment.js";
import { loadTrialOn, type PaperOptions, since } from "./run.js";

export interface Made {
  /** Hash of all that the outcome depends on, but for this host. */
  key: string;
  /** See codeVersion(). */
  weir: string;
  host: HostFacts;
  /** When it was done. */
  at: string;
  wall_s: number;
}

/** `weir`: see codeVersion(). @throws ScenarioError */
export function keyOf(
  experiment: Experiment,
  options: Pick<PaperOptions, "clocks" | "seed" | "scale" | "references">,
  weir: string,
): string {
  const { clocks, references = {} } = options;
  const trials = clocks.flatMap((clock) =>
    clock === "model"
      ? []
      : trialsOn(experiment, clock).map((trial) => ({ clock, trial, source: loadTrialOn(clock, trial, options) })),
  );
  return sha256(JSON.stringify({ weir, experiment: experiment.id, clocks, trials, references })).slice(0, 32);
}

/** Of an outcome that is done now. `began`: on the clock of performance.now(). */
export function madeNow({ key, weir }: Pick<Made, "key" | "weir">, began: number): Made {
  return { key, weir, host: hostFacts(), at: new Date().toISOString(), wall_s: since(began) };
}
