/** A worker process with the simulation of the tests. */
import { serve } from "../../src/study/serve.js";
import { fakeSimulate } from "./fake_simulate.js";
import { clocksWith } from "./fake_tools.js";

serve(clocksWith(fakeSimulate));
