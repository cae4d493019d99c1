/** The worker process of `weir paper all`. */
import { kClocks } from "../../src/clocks/clocks.js";
import { serveExperiments } from "../engine/all/serve.js";
import { findExperiment } from "../registry.js";

serveExperiments(findExperiment, kClocks);
