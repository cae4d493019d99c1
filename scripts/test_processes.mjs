// Finds processes by a variable of their environment: all that a run of the tests has started have one.
import { readdirSync, readFileSync } from "node:fs";

/** Names the run that a process belongs to. */
export const kTestRun = "WEIR_TEST_RUN";

/** Processes that were started with this value, as { pid, command }, without this one. Only root sees those of others. */
export function processesWith(variable, value) {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    if (!read(`/proc/${name}/environ`).split("\0").includes(`${variable}=${value}`)) return [];
    return [{ pid: Number(name), command: read(`/proc/${name}/cmdline`).replaceAll("\0", " ").trim() }];
  });
}

/** Returns nothing if the process has ended, or is somebody else's. */
function read(file) {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
