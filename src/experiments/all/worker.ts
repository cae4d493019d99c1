/** The worker process of `weir paper all`. */
import { findExperiment } from "../registry.js";
import { serveExperiments } from "./serve.js";

// Loaded when needed: models run where the native core does not.
serveExperiments(findExperiment, {
  runLab: async (scenario, options) => (await import("../../lab/run.js")).runLab(scenario, options),
  runSimulation: async (scenario, options) => (await import("../../sim/run.js")).runSimulation(scenario, options),
});
