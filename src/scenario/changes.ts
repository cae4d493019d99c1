// Service rates of egress queues over time.
import type { Scenario } from "./types.js";

/** Times at which rates change after the start of traffic, ascending, ns. */
export function changeTimes({ changes, duration }: Pick<Scenario, "changes" | "duration">): number[] {
  return [...new Set(changes.map(({ at }) => at))].filter((at) => at > 0 && at < duration).sort((a, b) => a - b);
}

/** Switches with a change at `time`, by name. */
export function changedAt({ changes }: Pick<Scenario, "changes">, time: number): Set<string> {
  return new Set(changes.filter(({ at }) => at === time).map((change) => change.switch));
}

/** Most that each queue of a port may send at `time`, bit/s, 0: no limit; undefined where nothing ever changes. */
export function priorityRates(
  { changes }: Pick<Scenario, "changes">,
  { switch: name, port, time }: { switch: string; port: string; time: number },
): number[] | undefined {
  const own = changes.filter((change) => change.switch === name && change.port === port);
  if (own.length === 0) return undefined;
  const rates = Array<number>(8).fill(0);
  for (const { at, priority, rate } of own) if (at <= time) rates[priority] = rate;
  return rates;
}
