/** A worker process with the simulation of the tests. */
import { serve } from "../../../src/study/sweep/serve.js";
import { fakeSimulate } from "./fake_simulate.js";

serve({ run: fakeSimulate });
