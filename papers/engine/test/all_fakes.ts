/** Experiments of one trial for `weir paper all`; the scenario's description tells fake_worker.ts what it does. */
import type { Experiment, NetworkClock } from "../experiment.js";
import { fakeExperiment } from "./fakes.js";

export function allFake(name: string, clocks: readonly NetworkClock[] = ["sim"], sim_seconds = 1): Experiment {
  const { network, model, ...rest } = fakeExperiment;
  if (network === undefined || model === undefined) throw new Error("the fake has both");
  const trials = [{ name: "one", file: "qcn/netfpga-1-source.yaml", set: [`description=${name}`] }];
  return {
    ...rest,
    id: `fake-${name}`,
    network: { ...network, clocks, trials, sim_seconds, observe: () => ({ values: { fast: 18 }, plots: [] }) },
    ...(name === "modelled" && { model }),
  };
}

export const kAllFakes: readonly Experiment[] = [
  allFake("short"),
  allFake("long", ["sim"], 100),
  allFake("modelled"),
  allFake("framed", ["wire", "sim"]),
  allFake("framed-too", ["wire"]),
  allFake("late"),
  allFake("crash"),
  allFake("bug"),
  allFake("endless"),
];
