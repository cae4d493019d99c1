import { expect, describe as group, it } from "vitest";
import {
  between,
  describe,
  evenness,
  firstTime,
  lastingFrom,
  movingMean,
  type Signal,
  total,
} from "../../src/result/measure.js";

const signal = (...values: number[]): Signal => ({ time: values.map((_, i) => i), values });

group("measures of series", () => {
  it("take windows with their begin and without their end", () => {
    expect(between(signal(5, 6, 7, 8), 1, 3)).toEqual([6, 7]);
    expect(
      total([
        [1, 2],
        [3, 4],
      ]),
    ).toEqual([4, 6]);
  });

  it("smooth around each sample, over fewer at the ends", () => {
    expect(movingMean(signal(0, 3, 6, 9), 2).values).toEqual([1.5, 3, 6, 7.5]);
    expect(movingMean(signal(4, 5), 0).values).toEqual([4, 5]);
  });

  it("find when something first and when it lastingly came true", () => {
    const up = (value: number) => value > 1;
    expect(firstTime(signal(0, 2, 0, 2), up)).toBe(1);
    expect(firstTime(signal(0, 2, 0, 2), up, 2)).toBe(3);
    expect(firstTime(signal(0, 2, 0, 2), up, 2, 3)).toBe(Number.POSITIVE_INFINITY);
    expect(lastingFrom(signal(0, 2, 0, 2, 2), up)).toBe(3);
    expect(lastingFrom(signal(0, 2, 0), up)).toBe(Number.POSITIVE_INFINITY);
    expect(lastingFrom(signal(0, 2, 0), up, 0, 2)).toBe(1);
  });

  it("say how even signals are", () => {
    expect(evenness([signal(1, 2, 0), signal(2, 2, 0)]).values).toEqual([0.5, 1, 1]);
  });

  it("describe a list", () => {
    const values = Array.from({ length: 101 }, (_, i) => i);
    expect(describe(values)).toMatchObject({ mean: 50, p1: 1, p50: 50, max: 100 });
    expect(describe(values)?.deviation).toBeCloseTo(29.15, 2);
    expect(describe([])).toBeUndefined();
  });
});
