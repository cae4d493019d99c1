/** Figures of a run: fairness and percentiles of samples. */
import { max as largest, min as least, mean, sum, weightedMean, weightedQuantile } from "simple-statistics";

/** Distribution in the unit of what was measured; every percentile is a value that was recorded. */
export interface Summary {
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/** Distribution of shares of a resource, where the lower end tells: the least and the most that anybody got. */
export interface Spread {
  mean: number;
  min: number;
  p10: number;
  p50: number;
  max: number;
}

const kQuantiles = [0.5, 0.95, 0.99];

/**
 * Jain's fairness index (sum x)^2 / (n sum x^2): 1 when all shares are equal, 1/n when one takes everything. It is 0 when there are no
 * shares or nobody got anything, so that a dead run never looks fair.
 * Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.
 */
export function jainIndex(shares: readonly number[]): number {
  const squares = shares.reduce((total, share) => total + share * share, 0);
  // Rounded, equal shares may come to a little more.
  return squares === 0 ? 0 : Math.min(1, sum([...shares]) ** 2 / (shares.length * squares));
}

/** Mean, percentiles and maximum of samples; a percentile is the smallest sample with that share at or below it. */
export function summarize(samples: readonly number[]): Summary {
  const sorted = Float64Array.from(samples).sort();
  const [p50, p95, p99] = kQuantiles.map((share) => quantile(sorted, share)) as [number, number, number];
  return samples.length === 0
    ? { mean: 0, p50: 0, p95: 0, p99: 0, max: 0 }
    : { mean: mean([...samples]), p50, p95, p99, max: sorted.at(-1) as number };
}

/**
 * Returns the middle value, or the mean of the middle two. Infinity, for an event that did not happen, is above all. @throws Error without
 * values.
 */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error("no values");
  const sorted = Float64Array.from(values).sort();
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]] as [number, number];
  return low === high ? low : (low + high) / 2;
}

/** Returns the smallest of ascending samples with that share at or below it. */
function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] as number;
}

/**
 * Summarizes samples that each stand for a weight, such as the time that a queue kept a length. All figures are zero when there is no
 * weight at all.
 * @throws Error when the lists differ in length or a weight is negative.
 */
export function summarizeWeighted(samples: readonly number[], weights: readonly number[]): Summary {
  if (sum([...weights]) === 0) return { mean: 0, p50: 0, p95: 0, p99: 0, max: 0 };
  const values = [...samples];
  const [p50, p95, p99] = weightedQuantile(values, [...weights], kQuantiles) as [number, number, number];
  const seen = values.filter((_, i) => (weights[i] as number) > 0);
  return { mean: weightedMean(values, [...weights]), p50, p95, p99, max: largest(seen) };
}

/** Computes percentiles like summarize(). @throws Error without samples. */
export function spread(samples: readonly number[]): Spread {
  const values = [...samples];
  const sorted = Float64Array.from(samples).sort();
  return {
    mean: mean(values),
    min: least(values),
    p10: quantile(sorted, 0.1),
    p50: quantile(sorted, 0.5),
    max: largest(values),
  };
}
