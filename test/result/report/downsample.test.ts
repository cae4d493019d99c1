import { describe, expect, it } from "vitest";
import { downsample } from "../../../src/result/report/downsample.js";

describe("downsample", () => {
  it("leaves a short series alone", () => {
    const columns = { x: [1, 2, 3], ys: [[4, 5, 6]] };
    expect(downsample(columns, 3)).toEqual(columns);
  });

  it("keeps every bucket's extremes in their order", () => {
    const columns = {
      x: [0, 1, 2, 3, 4, 5, 6, 7],
      ys: [
        [5, 9, 1, 5, 2, 3, 8, 4],
        [0, 0, 0, 7, 0, 0, 0, 0],
      ],
    };
    expect(downsample(columns, 4)).toEqual({
      x: [0, 2, 4, 6],
      ys: [
        [9, 1, 2, 8],
        [0, 7, 0, 0],
      ],
    });
  });

  it("loses no peak of a long series", () => {
    const x = Array.from({ length: 12_345 }, (_, i) => i);
    const spikes = x.map((i) => (i === 777 ? -3 : i === 12_344 ? 42 : 1));
    const thin = downsample({ x, ys: [spikes] }, 5000);
    expect(thin.x).toHaveLength(5000);
    expect(Math.min(...(thin.ys[0] as number[]))).toBe(-3);
    expect(Math.max(...(thin.ys[0] as number[]))).toBe(42);
    expect(thin.x.every((value, i) => i === 0 || value > (thin.x[i - 1] as number))).toBe(true);
  });

  it("keeps gaps as gaps", () => {
    expect(downsample({ x: [0, 1, 2, 3], ys: [[null, null, null, 6]] }, 2).ys).toEqual([[6, 6]]);
    expect(downsample({ x: [0, 1, 2, 3], ys: [[null, null, 5, 6]] }, 2).ys).toEqual([[5, 6]]);
    expect(downsample({ x: [0, 1, 2, 3, 4, 5], ys: [[null, null, null, 1, 2, 3]] }, 4).ys).toEqual([
      [null, null, 1, 3],
    ]);
  });
});
