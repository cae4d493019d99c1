/** The terms of equations 5 to 9 near their limits, against series and 70 digits. */
import { describe, expect, it } from "vitest";
import { DCQCN_PAPER } from "../../src/models/dcqcn/index.js";
import { inPackets } from "../../src/models/dcqcn/parameters.js";
import {
  increases,
  logUnmarked,
  marked,
  marking,
  recurrence,
  regimeOf,
  spread,
  survived,
} from "../../src/models/dcqcn/terms.js";
import { markedExactly, perPacketExactly } from "./high_precision.js";

const paper = inPackets(DCQCN_PAPER);
const of = (p: number, rate: number, parameters = paper) => increases(parameters, p, rate, { all: 0, additive: 0 });
const relative = (value: number, expected: number) => Math.abs(value / expected - 1);

describe("terms beside 70 digits", () => {
  const points = [1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.3, 0.9, 0.999].flatMap((p) =>
    [0.5, 3, 166.7].map((n) => [p, n] as const),
  );

  it.each(points)("1 - (1-p)^n, p %d, n %d", (p, n) => {
    expect(relative(marked(n, logUnmarked(p)), markedExactly(p, n))).toBeLessThan(1e-14);
  });

  it.each(points)("p / ((1-p)^-n - 1), p %d, n %d", (p, n) => {
    const expected = perPacketExactly(p, n);
    if (expected < 1e-30) return;
    const value = (spread(p) * recurrence(-n * logUnmarked(p))) / n;
    expect(relative(value, expected)).toBeLessThan(2e-13);
  });

  it("differ from the print's own powers where these lose everything", () => {
    const p = 1e-15;
    expect(relative(p / ((1 - p) ** -3 - 1), 1 / 3)).toBeGreaterThan(0.01);
    expect(relative((spread(p) * recurrence(-3 * logUnmarked(p))) / 3, perPacketExactly(p, 3))).toBeLessThan(1e-14);
  });
});

describe("series for small p", () => {
  it.each([1e-3, 1e-5, 1e-8])("%d", (p) => {
    expect(Math.abs(spread(p) - (1 - p / 2 - (p * p) / 12))).toBeLessThan(p ** 3 + 1e-15);
    expect(Math.abs(recurrence(p) - (1 - p / 2 + (p * p) / 12))).toBeLessThan(p ** 3 + 1e-15);
    // CoNEXT 2016: b is 1/n - p (1/2 + 1/(2n)) + O(p^2).
    const n = 100;
    const b = (spread(p) * recurrence(-n * logUnmarked(p))) / n;
    expect(Math.abs(b - (1 / n - p * (0.5 + 0.5 / n)))).toBeLessThan(20 * p * p + 1e-17);
  });
});

describe("limits", () => {
  const rate = paper.capacity / 2;

  it.each([0, 5e-324, 1e-300, 1e-20])("p = %d: R/B by bytes and 1/T by time, all additive, no cut", (p) => {
    const { all, additive } = of(p, rate);
    expect(relative(all, rate / paper.bytes + 1 / paper.timer)).toBeLessThan(1e-12);
    expect(relative(additive, all)).toBeLessThan(1e-12);
    expect(marked(rate * paper.interval, logUnmarked(p))).toBeLessThan(1e-15);
  });

  it("are reached without a jump", () => {
    expect(relative(of(1e-13, rate).all, of(0, rate).all)).toBeLessThan(1e-8);
    expect(relative(of(1e-6, rate).all, of(0, rate).all)).toBeGreaterThan(1e-6);
  });

  it("p = 1: every packet cuts, nothing raises", () => {
    expect(of(1, rate)).toEqual({ all: 0, additive: 0 });
    expect(of(1 - 2 ** -53, rate).all).toBeLessThan(1e-12);
    expect(marked(0.5, logUnmarked(1))).toBe(1);
    expect(survived(1, logUnmarked(1))).toBe(0);
  });

  it.each([0, 0.01, 1])("a rate of 0 with p = %d: nobody is marked, the timer alone raises", (p) => {
    const { all, additive } = of(p, 0);
    expect(all).toBeCloseTo(spread(p) / paper.timer, 8);
    expect(additive).toBe(all);
    expect(marked(0, logUnmarked(p))).toBe(0);
  });

  it.each([0, 1e-3, 1])("without byte counter, p = %d", (p) => {
    const without = of(p, rate, { ...paper, bytes: Number.POSITIVE_INFINITY });
    const rare = of(p, rate, { ...paper, bytes: 1e300 });
    expect(without.all).toBe(rare.all);
    expect(Number.isFinite(without.additive)).toBe(true);
  });
});

describe("the print of equations 8 and 9", () => {
  it.each([1e-4, 1e-3, 0.01])("p = %d", (p) => {
    const rate = paper.capacity / 4;
    const { bytes, timer, stages } = { ...paper, bytes: 100 };
    const b = (rate * p) / ((1 - p) ** -bytes - 1);
    const t = (rate * p) / ((1 - p) ** (-timer * rate) - 1);
    const { all, additive } = of(p, rate, { ...paper, bytes });
    expect(relative(all, b + t)).toBeLessThan(1e-10);
    expect(relative(additive, b * (1 - p) ** (stages * bytes) + t * (1 - p) ** (stages * timer * rate))).toBeLessThan(
      1e-10,
    );
  });
});

describe("equation 5", () => {
  const { kmin, kmax, pmax } = paper;
  const at = (queue: number) => marking(paper, queue, regimeOf(paper, queue));

  it("is 0 up to Kmin, Pmax at Kmax, and jumps to 1 there", () => {
    expect([0, kmin].map(at)).toEqual([0, 0]);
    expect(at((kmin + kmax) / 2)).toBeCloseTo(pmax / 2, 15);
    expect(at(kmax)).toBeCloseTo(pmax, 15);
    expect(at(kmax * (1 + 1e-15))).toBe(1);
  });

  it("is a step where Kmin = Kmax", () => {
    const step = { kmin, kmax: kmin, pmax: 1 };
    expect(marking(step, kmin, regimeOf(step, kmin))).toBe(0);
    expect(marking(step, kmin + 1, regimeOf(step, kmin + 1))).toBe(1);
  });

  it("keeps to its piece where rounding puts the queue beyond", () => {
    expect(marking(paper, kmax + 1e-9, 1)).toBe(pmax);
    expect(marking(paper, kmin - 1e-9, 1)).toBe(0);
    expect(marking(paper, kmax - 1e-9, 2)).toBe(1);
  });
});
