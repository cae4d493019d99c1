import { describe, expect, it } from "vitest";
import { halfWidth, pairedDifference, studentQuantile } from "../../../src/study/versus/confidence.js";

describe("confidence intervals", () => {
  it.each([
    [1, 12.706],
    [2, 4.303],
    [9, 2.262],
    [30, 2.042],
    [31, 2.0395],
    [60, 2.0003],
    [120, 1.9799],
    [999, 1.9623],
  ])("Student's t of %i degrees of freedom, as tables have it", (degrees, quantile) => {
    expect(studentQuantile(degrees)).toBeCloseTo(quantile, 3);
  });

  it("of a mean", () => {
    expect(halfWidth([5])).toBeUndefined();
    expect(halfWidth([7, 7, 7])).toBe(0);
    // s = 1, n = 3: 4.3027 / sqrt(3).
    expect(halfWidth([1, 2, 3])).toBeCloseTo(2.4842, 4);
  });

  it("of differences seed by seed are narrow where the seeds move both alike", () => {
    const first = [10, 20, 30];
    expect(pairedDifference(first, [11, 21, 31])).toEqual({ mean: 1, ci95: 0, seeds: 3 });
    expect(pairedDifference(first, [11, undefined, 32])).toMatchObject({ mean: 1.5, seeds: 2 });
    expect(pairedDifference(first, [11, undefined, undefined])).toBeUndefined();
  });
});
