/** The worker process of `weir sweep run`. */
import { runSimulation } from "../sim/run.js";
import { serve } from "./serve.js";

serve(runSimulation);
