/** The worker process of `weir model sweep`. */
import { serveTasks } from "../../processes/serve.js";
import { type SweepPoint, solvePoint } from "./sweep.js";
import type { Solved } from "./sweep_pool.js";

serveTasks<null, SweepPoint, never, Solved>(() => async (point) => {
  try {
    return { status: "solved", outcome: solvePoint(point) };
  } catch (error) {
    return { status: "failed", error: error instanceof Error ? error.message : String(error) };
  }
});
