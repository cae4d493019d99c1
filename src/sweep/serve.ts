/** A worker's side: runs the points that it is handed over IPC, one at a time, until nobody is there to hand it any. */
import type { Point, Sweep } from "./plan.js";
import { type PointOutcome, runPoint, type Simulate } from "./point.js";
import { ResultStore } from "./store.js";

/** First what all points share, then a point; the next one after its outcome. */
export type ToWorker = { sweep: Sweep; directory: string } | { point: Point };
export type FromWorker = { ready: true } | { progress: number } | { outcome: PointOutcome };

/** Answers until the other end of the channel is gone: then the process ends at once, whatever it is doing. */
export function serve(simulate: Simulate): void {
  const send = (message: FromWorker) => void process.send?.(message);
  let task: { sweep: Sweep; store: ResultStore } | undefined;
  process.on("disconnect", () => process.exit());
  // A Ctrl-C reaches every process of the terminal; what to do about it is decided by the one that hands out the points.
  process.on("SIGINT", () => {});
  process.on("message", async (message: ToWorker) => {
    if ("sweep" in message) {
      task = { sweep: message.sweep, store: ResultStore.create(message.directory) };
    } else if (task !== undefined) {
      const options = {
        signal: new AbortController().signal,
        onProgress: (fraction: number) => send({ progress: fraction }),
      };
      send({ outcome: await runPoint(simulate, task.sweep, message.point, task.store, options) });
    }
  });
  send({ ready: true });
}
