// Waits until the run of tests that started it has ended, however it ended, and ends and removes its leftovers. Arguments: the
// run's name, its folder for temporary files. Its standard input is a pipe that the run holds open.
import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { kTestRun, processesWith } from "./test_processes.mjs";

const [run, folder] = process.argv.slice(2);
const kLimitMs = 20_000;

// A signal to the whole group is meant for the run.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
for await (const _ of process.stdin);

const until = Date.now() + kLimitMs;
for (
  let left = processesWith(kTestRun, run);
  left.length > 0 && Date.now() < until;
  left = processesWith(kTestRun, run)
) {
  for (const { pid } of left) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if (error.code !== "ESRCH" && error.code !== "EPERM") throw error;
    }
  }
  await sleep(20);
}
rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
