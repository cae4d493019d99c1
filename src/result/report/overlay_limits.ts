/** Finds differences between runs that are too large. */
import type { Compared, Comparison } from "./overlay.js";

/** Figures that may have a limit; the unit of the values does not matter. */
export const kLimited = [
  "goodput",
  "total",
  "jain",
  "mean",
  "p50",
  "p95",
  "fct",
  "slowdown",
  "marks",
  "cnps",
  "cnms",
  "pfc",
] as const;
export type Limited = (typeof kLimited)[number];

/** Largest difference allowed to the first run, a fraction of 0 to 1. */
export type Limits = Readonly<Partial<Record<Limited, number>>>;

export interface Verdict {
  figure: Limited;
  limit: number;
  /** The largest difference either way; null: from 0 to something. Absent when the runs have nothing of the kind in common. */
  worst?: { difference: number | null; where: string; run: string };
  within: boolean;
}

/**
 * Gives one verdict for each limit. Queues count where all runs have samples of them (the probed ones), or all queues when there is none
 * such. A limit on something that the runs do not have in common is not kept.
 */
export function judge(comparison: Comparison, limits: Limits): Verdict[] {
  return kLimited.flatMap((figure) => {
    const limit = limits[figure];
    return limit === undefined ? [] : [verdict(comparison, figure, limit)];
  });
}

function verdict(comparison: Comparison, figure: Limited, limit: number): Verdict {
  const found = figuresOf(comparison, figure)
    .filter(saysSomething(figure))
    .flatMap(([where, { difference }]) =>
      difference.slice(1).map((value, i) => ({
        difference: value,
        where,
        run: comparison.runs[i + 1]?.label ?? "",
      })),
    );
  const [worst] = found.sort((a, b) => size(b.difference) - size(a.difference));
  if (worst === undefined) return { figure, limit, within: false };
  return { figure, limit, worst, within: size(worst.difference) <= limit };
}

/** Figures of delivered data or completions are all 0 where no run has any, and agree about nothing. A count of zero does say something. */
const saysSomething =
  (figure: Limited) =>
  ([, { values }]: [string, Compared]) =>
    kCounts.has(figure) || values.some((value) => value !== 0);
const kCounts: ReadonlySet<Limited> = new Set(["mean", "p50", "p95", "marks", "cnps", "cnms", "pfc"]);

function size(difference: number | null): number {
  return difference === null ? Number.POSITIVE_INFINITY : Math.abs(difference);
}

function figuresOf({ flows, queues, totals, completions, counts }: Comparison, figure: Limited): [string, Compared][] {
  switch (figure) {
    case "goodput":
      return flows.map(({ id, goodput_bps }) => [id, goodput_bps]);
    case "total":
      return [["all flows", totals.goodput_bps]];
    case "jain":
      return [["all flows", totals.jain]];
    case "fct":
      return completions.map(({ size, fct_us }) => [size, fct_us.p50]);
    case "slowdown":
      return completions.map(({ size, slowdown }) => [size, slowdown.mean]);
    case "marks":
      return [["all switches", counts.ecn_marked]];
    case "cnps":
      return [["all NICs", counts.cnp_sent]];
    case "cnms":
      return [["all switches", counts.cnm_sent]];
    case "pfc":
      return [["all switches", counts.pfc_sent]];
    default: {
      const probed = queues.filter(({ sampled }) => sampled);
      return (probed.length > 0 ? probed : queues).map((queue) => [queue.queue, queue[figure]]);
    }
  }
}
