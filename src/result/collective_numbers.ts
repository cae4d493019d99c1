/** Figures of collectives as nccl-tests have them (doc/PERFORMANCE.md there). */
import type { CollectiveOperation } from "../scenario/graphs/collectives/add.js";

/** Bus bandwidth is algorithm bandwidth times this, of n ranks: what makes it comparable to the rate of a link, however many ranks there are. */
export const kBusFactors: Readonly<Record<CollectiveOperation, (ranks: number) => number>> = {
  allreduce: (n) => (2 * (n - 1)) / n,
  allgather: (n) => (n - 1) / n,
  reducescatter: (n) => (n - 1) / n,
  alltoall: (n) => (n - 1) / n,
  broadcast: () => 1,
  barrier: () => 0,
};

/** @param seconds undefined: it has not ended. @returns us, and 1e9 bytes per second. */
export function collectiveNumbers(
  operation: CollectiveOperation,
  bytes: number,
  ranks: number,
  seconds: number | undefined,
) {
  if (seconds === undefined) return { time_us: undefined, algbw_GBps: undefined, busbw_GBps: undefined };
  const algorithm = seconds > 0 ? bytes / seconds / 1e9 : 0;
  return { time_us: seconds * 1e6, algbw_GBps: algorithm, busbw_GBps: algorithm * kBusFactors[operation](ranks) };
}
