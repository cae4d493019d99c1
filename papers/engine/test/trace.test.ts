import { describe, expect, it } from "vitest";
import { meanDifference } from "../trace.js";

describe("the mean difference of two traces", () => {
  it("is the area between them over the part that both cover", () => {
    const flat = { x: [0, 10], y: [2, 2] };
    const rising = { x: [2, 4, 12], y: [2, 4, 4] };
    // The difference from 2 to 10: a triangle of 2, then 2 x 6.
    expect(meanDifference(flat, rising, [0, 20])).toBeCloseTo((2 + 12) / 8);
    expect(meanDifference(rising, flat, [4, 8])).toBeCloseTo(2);
  });

  it("is not known where they have nothing in common", () => {
    expect(meanDifference({ x: [0, 1], y: [0, 0] }, { x: [2, 3], y: [0, 0] }, [0, 3])).toBeNaN();
    expect(meanDifference({ x: [], y: [] }, { x: [2, 3], y: [0, 0] }, [0, 3])).toBeNaN();
  });
});
