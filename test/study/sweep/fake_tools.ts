/** What `weir sweep` works with in tests. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { StartWorker } from "../../../src/base/processes/worker.js";

export const kCode = "0.0.0+test";

export const startFakeWorker: StartWorker = () =>
  fork(fileURLToPath(new URL("fake_worker.ts", import.meta.url)), {
    execArgv: ["--import", "tsx"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
