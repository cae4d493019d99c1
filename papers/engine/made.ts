/** Origin of a paper.json: what made it, and from what. With the same key there is no reason to make it again. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { readScenarioText } from "../../src/base/yaml.js";
import { madeNow } from "../../src/result/made.js";
import type { Made } from "../../src/result/made_schema.js";
import { fileReferences, sha256 } from "../../src/scenario/file_references.js";
import { type Experiment, seedsOn, type Trial, trialsOn } from "./experiment.js";
import { overridesOn, type PaperOptions, since, trialInput } from "./run.js";

export interface PaperMade extends Made {
  /** Hash of all that the outcome depends on, but for this host. */
  key: string;
  wall_s: number;
}

/** `weir`: see codeVersion(). Scenarios are not checked here, but where they run. */
export function keyOf(
  experiment: Experiment,
  options: Pick<PaperOptions, "clocks" | "seed" | "scale" | "references">,
  weir: string,
): string {
  const { clocks, references = {} } = options;
  const trials = clocks.flatMap((clock) => {
    // Models may solve the scenarios of any trial.
    const own = clock === "model" ? (experiment.network?.trials ?? []) : trialsOn(experiment, clock);
    const overrides = clock === "model" ? {} : overridesOn(clock, options);
    const seeds = clock === "model" ? 1 : seedsOn(experiment, clock);
    return own.map((trial) => ({ clock, seeds, name: trial.name, ...inputOf(trial, overrides) }));
  });
  return sha256(JSON.stringify({ weir, experiment: experiment.id, clocks, trials, references })).slice(0, 32);
}

/** All that a trial's scenario depends on, as text: much faster than the scenario itself. */
function inputOf(trial: Trial, overrides: Parameters<typeof trialInput>[1]) {
  const { path, text, set } = trialInput(trial, overrides);
  const files = fileReferences(readScenarioText(text, path, set).data).map(({ file }) => {
    return [file, readFileSync(resolve(dirname(path), file), "utf8")];
  });
  return { file: trial.file, text, set, files };
}

/** Describes an outcome that is done now. `began`: on the clock of performance.now(). */
export function paperMade({ key, weir }: Pick<PaperMade, "key" | "weir">, began: number): PaperMade {
  return { key, ...madeNow(), weir, wall_s: since(began) };
}
