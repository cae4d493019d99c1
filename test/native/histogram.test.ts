/** Figures of distributions: to the resolution of their buckets, and what is exact stays so. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { distribution, lowerBound, weightsBelow } from "../../src/native/histogram.js";
import { histogramOf } from "./histograms.js";

const values = fc.array(
  fc.tuple(
    fc.oneof(fc.nat({ max: 100 }), fc.nat({ max: 2 ** 31 - 1 }), fc.maxSafeNat()),
    fc.integer({ min: 1, max: 1000 }),
  ),
  { minLength: 1, maxLength: 200 },
);

/** The smallest value with that share of the weight at or below it. */
function exact(list: readonly (readonly [number, number])[], share: number): number {
  const sorted = [...list].sort(([a], [b]) => a - b);
  const total = sorted.reduce((sum, [, weight]) => sum + weight, 0);
  let seen = 0;
  for (const [value, weight] of sorted) {
    seen += weight;
    if (seen >= share * total) return value;
  }
  return sorted.at(-1)?.[0] ?? 0;
}

describe("a distribution", () => {
  it("has percentiles within 3.2%, none above the maximum, and an exact mean", () => {
    fc.assert(
      fc.property(values, (list) => {
        const { mean, max, p50, p95, p99, weight } = distribution(histogramOf(...list));
        const total = list.reduce((sum, [, one]) => sum + one, 0);
        expect(weight).toBe(total);
        expect(mean).toBe(list.reduce((sum, [value, one]) => sum + value * one, 0) / total);
        expect(max).toBe(Math.max(...list.map(([value]) => value)));
        for (const [share, got] of [
          [0.5, p50],
          [0.95, p95],
          [0.99, p99],
        ] as const) {
          const expected = exact(list, share);
          expect(Math.abs(got - expected)).toBeLessThanOrEqual(0.032 * expected);
          expect(got).toBeLessThanOrEqual(max);
        }
      }),
    );
  });

  it("is exact below 64, where weights count as repetitions", () => {
    const own = distribution(histogramOf([0, 50], [31, 45], [63, 5]));
    expect(own).toEqual({
      mean: (31 * 45 + 63 * 5) / 100,
      p50: 0,
      p95: 31,
      p99: 63,
      max: 63,
      weight: 100,
      cdf: [
        [0, 0.5],
        [31, 0.95],
        [63, 1],
      ],
    });
  });

  it("tells the highest value of each bucket with the share up to there", () => {
    const { cdf } = distribution(histogramOf([1000, 3], [1001, 1], [5000, 4]));
    // 32 buckets of 16 from 512 on, of 128 from 4096 on.
    expect(cdf).toEqual([
      [1007, 0.5],
      [5000, 1],
    ]);
  });

  it("of nothing is zero", () => {
    expect(distribution(histogramOf())).toEqual({ mean: 0, p50: 0, p95: 0, p99: 0, max: 0, weight: 0, cdf: [] });
  });

  it("has buckets that tile the numbers up to 2^64", () => {
    expect([0, 31, 32, 63, 64, 65, 96].map(lowerBound)).toEqual([0, 31, 32, 63, 64, 66, 128]);
    expect(lowerBound(1919)).toBe(63 * 2 ** 58);
    for (let i = 0; i < 1919; i++) expect(lowerBound(i)).toBeLessThan(lowerBound(i + 1));
  });
});

describe("weights below powers of two", () => {
  it("are those of all values below", () => {
    fc.assert(
      fc.property(values, (list) => {
        const below = weightsBelow(histogramOf(...list), [8, 27]);
        const expected = Array.from({ length: 20 }, (_, i) =>
          list.reduce((sum, [value, weight]) => sum + (value < 2 ** (8 + i) ? weight : 0), 0),
        );
        expect(below).toEqual(expected);
      }),
    );
  });

  it("of nothing are zero", () => expect(weightsBelow(histogramOf(), [8, 10])).toEqual([0, 0, 0]));
});
