/** The worker process of `weir paper all`. */

import { serveExperiments } from "../engine/all/serve.js";
import { findExperiment } from "../registry.js";

// Loaded when needed: models run where the native core does not.
serveExperiments(findExperiment, {
  runLab: async (scenario, options) => (await import("../../src/lab/run.js")).runLab(scenario, options),
  runSimulation: async (scenario, options) => (await import("../../src/sim/run.js")).runSimulation(scenario, options),
});
