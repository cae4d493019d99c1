/** The fluid model as the third clock of an experiment: trials solved by the equations, measured like runs of packets. */
import { runModel } from "../../src/clocks/model.js";
import { before } from "../../src/result/measure.js";
import type { Alternative, Evidence, Trial } from "../engine/experiment.js";
import { loadTrial } from "../engine/trial.js";

/** Every trial by name, whatever clocks it is for; it must be one that the equations can take (models/dcqcn/scenario.ts). */
export async function fluidRuns(
  trials: readonly Trial[],
  alternative?: Alternative,
): Promise<Record<string, Evidence>> {
  const { signal } = new AbortController();
  const runs: Record<string, Evidence> = {};
  for (const trial of trials) {
    const { scenario } = loadTrial({ ...trial, set: [...trial.set, ...(alternative?.set ?? [])] });
    const { result, series } = await runModel(scenario, { signal });
    runs[trial.name] = { scenario, result, series: before(series, scenario.duration / 1e9) };
  }
  return runs;
}
