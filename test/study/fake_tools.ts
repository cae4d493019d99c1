/** Tools of `weir sweep` in tests. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { StartWorker } from "../../src/base/processes/worker.js";
import type { Clock } from "../../src/clocks/clock.js";
import { type Clocks, kClocks } from "../../src/clocks/clocks.js";

/** The clocks, with a simulation of the caller's. */
export const clocksWith = (run: Clock["run"]) => ({ ...kClocks, sim: { ...kClocks.sim, run } }) as Clocks;

export const kCode = "0.0.0+test";

export const startFakeWorker: StartWorker = () =>
  fork(fileURLToPath(new URL("fake_worker.ts", import.meta.url)), {
    execArgv: ["--import", "tsx"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
