/** The scenario of a trial: a file of a paper, with what differs from it. */
import { readFileSync } from "node:fs";
import { packageFile } from "../../src/base/package_file.js";
import type { RunSource } from "../../src/result/saved_run.js";
import { loadScenario } from "../../src/scenario/scenario.js";
import type { NetworkClock, Trial } from "./experiment.js";

export interface Overrides {
  seed?: number | undefined;
  /** Time scale of wire runs; default: the scenario's. */
  scale?: number | undefined;
}

/** The file of a trial, and all overrides. */
export function trialInput({ file, set }: Trial, { seed, scale }: Overrides = {}) {
  const path = scenarioPath(file);
  const all = [
    ...set,
    ...(seed === undefined ? [] : [`seed=${seed + repeatOf(set)}`]),
    ...(scale === undefined ? [] : [`scale=${scale}`]),
  ];
  return { path, text: readFileSync(path, "utf8"), set: all };
}

/** The scenario of a trial with the options' overrides, and where it is from. @throws ScenarioError */
export function loadTrial(trial: Trial, overrides: Overrides = {}): RunSource {
  const { path, text, set } = trialInput(trial, overrides);
  return { text, set, scenario: loadScenario(path, { set }).scenario };
}

/** What of the options concerns a clock: time is scaled on the wire only. */
export function overridesOn(clock: NetworkClock, { seed, scale }: Overrides): Overrides {
  return clock === "wire" ? { seed, scale } : { seed };
}

/** Scenarios of papers come with the package, as they are in the checkout. */
export function scenarioPath(file: string): string {
  return packageFile(`papers/${file}`);
}

/** Position of a trial among those that repeat one scenario with other seeds, from 0: they stay different, whatever the seed. */
function repeatOf(set: readonly string[]): number {
  const own = set.findLast((one) => one.startsWith("seed="));
  return own === undefined ? 0 : Number(own.slice("seed=".length)) - 1;
}
