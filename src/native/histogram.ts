/**
 * Distributions as the native core keeps them: 32 buckets to each power of two, so that a percentile is right to within 3.2%. Their
 * layout is that of native/base/histogram.h.
 */

import type { NamedHistogram, NativeHistogram } from "./reports.js";

export type { NamedHistogram, NativeHistogram };

/** A worker that tells of its distributions while it runs. */
export interface HistogramSource {
  /** Returns none before devices live. */
  histograms(): NamedHistogram[];
}

export interface Distribution {
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
  /** Total weight: a count, or ns. */
  weight: number;
  /** Pairs [value, fraction of the weight at or below it], ascending. */
  cdf: [number, number][];
}

const kSubBits = 5;
const kBuckets = (65 - kSubBits) << kSubBits;

/** The lowest value that a bucket holds. */
export function lowerBound(bucket: number): number {
  if (bucket < 1 << kSubBits) return bucket;
  return ((bucket & ((1 << kSubBits) - 1)) + (1 << kSubBits)) * 2 ** ((bucket >> kSubBits) - 1);
}

/** Percentiles are middles of buckets, and never above the maximum. */
export function distribution(histogram: NativeHistogram): Distribution {
  const { total, max, sum } = histogram;
  return {
    mean: total === 0 ? 0 : sum / total,
    p50: percentile(histogram, 0.5),
    p95: percentile(histogram, 0.95),
    p99: percentile(histogram, 0.99),
    max,
    weight: total,
    cdf: cdf(histogram),
  };
}

/** The weight of all values below 2^power, for every power from `first` to `last`, which are above 4. */
export function weightsBelow({ first, counts }: NativeHistogram, [from, to]: readonly [number, number]): number[] {
  let below = 0;
  let bucket = 0;
  return Array.from({ length: to - from + 1 }, (_, i) => {
    // Each power of two begins a bucket.
    const end = (from + i - kSubBits + 1) << kSubBits;
    for (; first + bucket < end && bucket < counts.length; ++bucket) below += counts[bucket] as number;
    return below;
  });
}

/** The smallest value with that share of the weight at or below it; 0 when nothing was recorded. */
function percentile({ first, counts, total, max }: NativeHistogram, share: number): number {
  let seen = 0;
  for (const [i, count] of counts.entries()) {
    seen += count;
    if (count > 0 && seen >= share * total) return Math.min(middle(first + i), max);
  }
  return max;
}

function middle(bucket: number): number {
  const low = lowerBound(bucket);
  return bucket + 1 < kBuckets ? low + Math.floor((lowerBound(bucket + 1) - low) / 2) : low;
}

/** Points are the highest values that buckets may hold. */
function cdf({ first, counts, total, max }: NativeHistogram): [number, number][] {
  let seen = 0;
  return [...counts].flatMap((count, i): [number, number][] => {
    if (count === 0) return [];
    seen += count;
    const upper = first + i + 1 < kBuckets ? lowerBound(first + i + 1) - 1 : max;
    return [[Math.min(upper, max), seen / total]];
  });
}
