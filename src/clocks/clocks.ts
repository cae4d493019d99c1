/** All clocks. The modules that carry a run out are loaded only when a run begins. */

import { modelScenario } from "../models/dcqcn/index.js";
import type { Clock } from "./clock.js";
import { checkForLab } from "./lab/check.js";
import type { LabOptions } from "./lab/types.js";
import type { ModelOptions } from "./model.js";
import { checkForSimulation } from "./sim/check.js";
import type { SimOptions, SimOutcome } from "./sim/types.js";

export interface Clocks {
  wire: Clock<LabOptions>;
  sim: Clock<SimOptions, SimOutcome>;
  model: Clock<ModelOptions>;
}

export const kClocks: Clocks = {
  wire: {
    name: "wire",
    check: checkForLab,
    run: async (scenario, options) => (await import("./workload/run.js")).runWorkload(scenario, options),
  },
  sim: {
    name: "sim",
    check: checkForSimulation,
    run: async (scenario, options) => (await import("./sim/run.js")).runSimulation(scenario, options),
  },
  model: {
    name: "model",
    check: (scenario) => void modelScenario(scenario),
    run: async (scenario, options) => (await import("./model.js")).runModel(scenario, options),
  },
};
