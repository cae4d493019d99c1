/** Frames of a lab that stand still: those that wait for a pause to end, as in a deadlock, are lost to nobody. */
import type { CounterTable } from "../../native/counters.js";
import type { NativeWorker } from "../../native/types.js";

/**
 * Frames in the queues of switches, if all of those queues are paused by their receivers; 0: some could leave, and the host has not
 * taken them.
 * @param count How many switches the worker has.
 */
export function pausedFrames(
  worker: Pick<NativeWorker, "switchState">,
  count: number,
  counters: Pick<CounterTable, "sum">,
): number {
  const ports = Array.from({ length: count }, (_, i) => worker.switchState(i).ports).flat();
  const paused = ports.every(({ queue_bytes, paused }) =>
    queue_bytes.every((bytes, priority) => bytes === 0 || ((paused >> priority) & 1) === 1),
  );
  return paused ? Math.max(0, counters.sum("pg_packets") - counters.sum("queue_packets")) : 0;
}
