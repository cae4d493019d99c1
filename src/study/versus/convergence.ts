/** Measures how long flows take to share evenly. */
import { lastingFrom, movingMean, type Signal } from "../../result/measure.js";
import type { Series } from "../../result/result.js";
import type { Scenario } from "../../scenario/types.js";

/**
 * Flows without an end, at most at the rate of their links, that have one receiver and one priority, are due equal shares: the mean of
 * their goodputs. They have converged once each goodput, as its mean over `smoothed`, stays within `within` of the share up to the end;
 * the time counts from when the last of them began. In the last part of the time, `proof`, it is not known whether it lasts.
 */
export const kConvergence = {
  within: 0.25,
  /** Width of the mean, as a part of the duration. */
  smoothed: 0.02,
  /** Part of the time from the last start on. */
  proof: 0.1,
} as const;

/** Returns the time in s; "never" within this run; undefined: no two flows with samples are due equal shares. */
export function convergenceTime(
  { flows, duration }: Pick<Scenario, "flows" | "duration">,
  series: Series,
): number | "never" | undefined {
  const greedy = flows.filter(
    ({ id, bytes, sizes, rate }) =>
      bytes === undefined && sizes === undefined && rate === undefined && series.flows[id]?.goodput_bps !== undefined,
  );
  const byReceiver = new Map<string, (typeof greedy)[number][]>();
  for (const flow of greedy) {
    const key = `${flow.to} ${flow.priority}`;
    byReceiver.set(key, [...(byReceiver.get(key) ?? []), flow]);
  }
  const groups = [...byReceiver.values()].filter((group) => group.length > 1);
  if (groups.length === 0) return undefined;
  const all = groups.flat();
  const begin = Math.max(...all.map(({ start }) => start)) / 1e9;
  const end = Math.min(...all.map(({ stop }) => stop), duration) / 1e9;
  const since = groups.map((group) => {
    const signals = group.map(({ id }) => ({ time: series.time_s, values: series.flows[id]?.goodput_bps ?? [] }));
    const farthest = distance(signals.map((signal) => movingMean(signal, (kConvergence.smoothed * duration) / 1e9)));
    return lastingFrom(farthest, (off) => off <= kConvergence.within, begin, end);
  });
  const last = Math.max(...since);
  return last <= end - kConvergence.proof * (end - begin) ? last - begin : "never";
}

/** Distance from the mean of the signal that is farthest from it, as a part of the mean. */
function distance(signals: readonly Signal[]): Signal {
  const time = signals[0]?.time ?? [];
  const values = time.map((_, i) => {
    const here = signals.map(({ values }) => values[i] ?? 0);
    const share = here.reduce((sum, value) => sum + value, 0) / here.length;
    return share > 0 ? Math.max(...here.map((value) => Math.abs(value - share))) / share : Number.POSITIVE_INFINITY;
  });
  return { time, values };
}
