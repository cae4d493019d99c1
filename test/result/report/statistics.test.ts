import { describe, expect, it } from "vitest";
import { jainIndex, spread, summarize, summarizeWeighted } from "../../../src/result/statistics.js";

describe("jainIndex", () => {
  it.each([
    [[5, 5, 5, 5], 1],
    [[8, 0, 0, 0], 0.25],
    [[1, 2, 3], 36 / 42],
    [[7], 1],
    [[0, 0], 0],
    [[], 0],
  ])("of %j is %d", (shares, index) => {
    expect(jainIndex(shares)).toBeCloseTo(index, 12);
  });

  it("of equal shares is 1 and no more, however they are rounded", () => {
    for (let divisor = 1; divisor < 50; divisor++) {
      for (let count = 2; count < 40; count++) {
        expect(jainIndex(Array(count).fill(97.6e9 / divisor))).toBeLessThanOrEqual(1);
      }
    }
  });
});

describe("spread", () => {
  it("gives the lower end, of samples and not between them", () => {
    const twenty = Array.from({ length: 20 }, (_, i) => 20 - i);
    expect(spread(twenty)).toEqual({ mean: 10.5, min: 1, p10: 2, p50: 10, max: 20 });
    expect(spread([7])).toEqual({ mean: 7, min: 7, p10: 7, p50: 7, max: 7 });
  });
});

describe("summarize", () => {
  it("gives samples, not values between them", () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(summarize(hundred)).toEqual({ mean: 50.5, p50: 50, p95: 95, p99: 99, max: 100 });
  });

  it("is all zero without samples", () => {
    expect(summarize([])).toEqual({ mean: 0, p50: 0, p95: 0, p99: 0, max: 0 });
  });

  it("weighs a length by the time that it was held", () => {
    // 90 ns at 10, 8 ns at 50, 2 ns at 70, and 1000 never held.
    expect(summarizeWeighted([50, 10, 1000, 70], [8, 90, 0, 2])).toEqual({
      mean: 14.4,
      p50: 10,
      p95: 50,
      p99: 70,
      max: 70,
    });
  });

  it("refuses weights that do not belong to the samples", () => {
    expect(() => summarizeWeighted([1, 2], [1])).toThrow("same length");
    expect(() => summarizeWeighted([1, 2], [3, -1])).toThrow("non-negative");
  });
});
