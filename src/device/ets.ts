/**
 * Conversion of a device's scheduler to IEEE 802.1Q's enhanced transmission selection, and back. Each priority is a traffic class of its
 * own.
 */

import type { TrafficClasses } from "../scenario/types.js";
import type { Ets } from "../wire/lldp/dcb_tlv.js";

type Scheduler = TrafficClasses["scheduler"];

/** Weights as whole percentages that add up to 100; strict classes have none. */
export function bandwidths({ strict, weights }: Scheduler): number[] {
  const shares = weights.map((weight, p) => (strict.includes(p) ? 0 : weight));
  const total = shares.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return shares;
  const exact = shares.map((weight) => (100 * weight) / total);
  const whole = exact.map(Math.floor);
  const byRemainder = exact.map((_, p) => p).sort((a, b) => ((exact[b] ?? 0) % 1) - ((exact[a] ?? 0) % 1));
  const left = 100 - whole.reduce((sum, share) => sum + share, 0);
  for (const p of byRemainder.slice(0, left)) whole[p] = (whole[p] ?? 0) + 1;
  return whole;
}

export function etsOf(scheduler: Scheduler): Ets {
  return {
    prio_tc: scheduler.weights.map((_, priority) => priority),
    bandwidth: bandwidths(scheduler),
    tsa: scheduler.weights.map((_, priority) => (scheduler.strict.includes(priority) ? "strict" : "ets")),
  };
}

/** Scheduler for ETS: priorities of one class have equal shares of the class's. Whatever is not ETS is strict. */
export function schedulerOf({ prio_tc, bandwidth, tsa }: Ets): Scheduler {
  const shared = (priority: number) => tsa[prio_tc[priority] ?? 0] === "ets";
  return {
    strict: prio_tc.flatMap((_, priority) => (shared(priority) ? [] : [priority])),
    weights: prio_tc.map((tc, priority) => {
      if (!shared(priority)) return 1;
      const together = prio_tc.filter((other) => other === tc).length;
      return Math.max(1, Math.round((bandwidth[tc] ?? 0) / together));
    }),
  };
}
