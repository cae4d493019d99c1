/** The worker process of `weir paper all`. */
import { kClocks } from "../../clocks/clocks.js";
import { findExperiment } from "../registry.js";
import { serveExperiments } from "./serve.js";

serveExperiments(findExperiment, kClocks);
