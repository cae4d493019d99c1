/** A worker whose tasks say what it does with them: "ok", "die", "throw", or "wait" until it is told to stop. */
import { setTimeout as wait } from "node:timers/promises";
import { serveTasks } from "../../../src/base/processes/serve.js";

serveTasks<string, string, number, { status: string; by?: string }>((by) => async (task, { signal, onProgress }) => {
  onProgress(0.5);
  if (task.startsWith("die")) process.exit(7);
  if (task.startsWith("wait")) await wait(60_000, undefined, { signal }).catch(() => {});
  return signal.aborted ? { status: "asked" } : { status: "done", by };
});
