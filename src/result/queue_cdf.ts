/** Distributions of the length of a queue over time. */
import { queuePlace } from "./queues.js";
import type { Result, Series } from "./result.js";

/** Points [KB, fraction of time at or below], ascending. */
export type QueueCdf = readonly (readonly [number, number])[];

/** The measured distribution of queue "sw:r:3" where there is one, otherwise that of its samples. */
export function queueCdf(
  { result, series }: { result: Pick<Result, "switches">; series: Series },
  queue: string,
): QueueCdf {
  const points = measuredCdf(result, queue) ?? empiricalCdf(series.queues[queue]?.bytes ?? []);
  return points.map(([bytes, fraction]) => [bytes / 1000, fraction]);
}

/** Returns undefined where there is none. */
export function measuredCdf({ switches }: Pick<Result, "switches">, queue: string): [number, number][] | undefined {
  const { device, port, priority } = queuePlace(queue);
  return switches[device]?.queue_cdf?.[port]?.[priority];
}

function empiricalCdf(samples: readonly number[]): [number, number][] {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted
    .map((bytes, i): [number, number] => [bytes, (i + 1) / sorted.length])
    .filter(([bytes], i) => bytes !== sorted[i + 1]);
}
