/** Tools of `weir sweep` in tests. */
import { fork } from "node:child_process";
import type { StartWorker } from "../../src/base/processes/worker.js";
import type { Clock } from "../../src/clocks/clock.js";
import { type Clocks, kClocks } from "../../src/clocks/clocks.js";
import { programFile } from "../programs/files.js";

/** The clocks, with a simulation of the caller's. */
export const clocksWith = (run: Clock["run"]) => ({ ...kClocks, sim: { ...kClocks.sim, run } }) as Clocks;

export const kCode = "0.0.0+test";

export const startFakeWorker: StartWorker = () =>
  fork(programFile("sweep_worker"), { stdio: ["ignore", "ignore", "pipe", "ipc"] });
