/** The two setups of section 5.2 of the DCQCN paper by its equations, and what is made of several runs. */
import { describe, expect, it } from "vitest";
import { DCQCN_STRAWMAN } from "../../../src/models/dcqcn/index.js";
import { convergenceByModel, incastByModel, senders, typical } from "../bottleneck.js";

describe("convergence", () => {
  it("of table 14 is there within 50 ms, and nothing is left", () => {
    const { difference, apart, left } = convergenceByModel();
    expect(difference.values[0]).toBeGreaterThan(30);
    expect(apart).toBeGreaterThan(0.02);
    expect(apart).toBeLessThan(0.05);
    expect(left).toBeLessThan(0.01);
  });

  it("of the strawman never comes", () => {
    expect(convergenceByModel(DCQCN_STRAWMAN)).toMatchObject({ apart: 0.2 });
  });
});

describe("incast", () => {
  it("of 2 rests at the fixed point and fills the link", () => {
    const { mean, deviation, empty, utilisation, marked } = incastByModel(2);
    expect(mean).toBeCloseTo(27.6, 0);
    expect(deviation).toBeLessThan(1);
    expect(empty).toBe(0);
    expect(utilisation).toBeCloseTo(100, 2);
    expect(marked).toBeCloseTo(0.116, 2);
  });

  it("of 16 starves, as no queue has the p that it needs; with the line of marks carried on it does not", () => {
    const printed = incastByModel(16);
    expect(printed.utilisation).toBeLessThan(97);
    expect(printed.empty).toBeGreaterThan(30);
    const carriedOn = incastByModel(16, { kmax: 1955e3, pmax: 0.1 });
    expect(carriedOn.utilisation).toBeCloseTo(100, 2);
    expect(carriedOn.mean).toBeCloseTo(320, -1);
  });
});

it("of several seeds medians count, and the first's curve is drawn", () => {
  const all = [3, 1, 2].map((apart) => {
    return { difference: { time: [0], values: [apart] }, apart, left: -apart, oscillation: 2 * apart };
  });
  expect(typical(all)).toEqual({ difference: all[0]?.difference, apart: 2, left: -2, oscillation: 4 });
});

it("senders are named from h1 on", () => {
  expect(senders(3)).toBe("traffic.0.from=[h1, h2, h3]");
});
