/** Distributions as the native core hands them over (native/base/histogram.h). */
import { lowerBound, type NativeHistogram } from "../../src/native/histogram.js";

const kBuckets = 1920;

/** A histogram of values, each with its weight. */
export function histogramOf(...values: (readonly [value: number, weight: number])[]): NativeHistogram {
  const counts = new Map<number, number>();
  for (const [value, weight] of values) {
    let [low, high] = [0, kBuckets - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (lowerBound(middle) <= value) low = middle;
      else high = middle - 1;
    }
    counts.set(low, (counts.get(low) ?? 0) + weight);
  }
  const first = Math.min(...counts.keys(), kBuckets);
  const last = Math.max(...counts.keys(), first - 1);
  return {
    first,
    counts: Float64Array.from({ length: last - first + 1 }, (_, i) => counts.get(first + i) ?? 0),
    total: values.reduce((sum, [, weight]) => sum + weight, 0),
    max: Math.max(0, ...values.map(([value]) => value)),
    sum: values.reduce((sum, [value, weight]) => sum + value * weight, 0),
  };
}
