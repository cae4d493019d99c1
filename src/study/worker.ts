/** The worker process of all verbs that run points. */
import { kClocks } from "../clocks/clocks.js";
import { serve } from "./serve.js";

serve(kClocks);
