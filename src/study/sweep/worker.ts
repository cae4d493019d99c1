/** The worker process of `weir sweep run`. */
import { kClocks } from "../../clocks/clocks.js";
import { serve } from "./serve.js";

serve(kClocks.sim);
