/** p[F_b > 0] and rates over time: what has to hold for any parameters, and what the paper's figures show. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  feedbackProbability,
  QCN_BASELINE,
  type QcnModelInput,
  type QcnModelParameters,
  type QcnSeries,
  qcnConvergence,
} from "../model/index.js";
import { changePerCut } from "../model/rate_change.js";

const M = 1e6;
const kSecond = 1e9;
/** Sum of E(dR_i) / P. */
const balance = (parameters: QcnModelParameters, rates: readonly number[], probability: number) =>
  rates.reduce((sum, rate) => sum + (rate / parameters.bandwidth) * changePerCut(parameters, rate, probability), 0);
const pair = (first: number, bandwidth = 1000 * M) => [first, bandwidth - first];
function probabilityOf(parameters: QcnModelParameters, rates: readonly number[]): number {
  const solution = feedbackProbability(parameters, rates);
  if (!solution.solved) throw new Error(`no solution: ${solution.growth}`);
  return solution.probability;
}
/** Seconds until 90% from 900 and 100 Mb/s. */
function seconds(input: Partial<QcnModelInput> = {}): number {
  const full = { rates: [900 * M, 100 * M], ...input };
  const { convergedAt } = qcnConvergence(full, { horizon: 60 * kSecond, step: 60 * kSecond, untilConverged: true });
  return (convergedAt ?? Number.POSITIVE_INFINITY) / kSecond;
}

const anyParameters = fc
  .record({
    variant: fc.constantFrom("qcn", "qcn-t", "qcn-aimd"),
    form: fc.constantFrom("paper", "summed", "exact"),
    gd: fc.constantFrom(1 / 16, 1 / 128, 1 / 256),
    rpg_ai_rate: fc.double({ min: 0.05 * M, max: 50 * M, noNaN: true }),
    rpg_time_reset: fc.double({ min: 0.1e6, max: 25e6, noNaN: true }),
    ai_cycle: fc.constantFrom(0.25, 0.5, 1),
  })
  .map((some) => ({ ...QCN_BASELINE, ...some }) as QcnModelParameters);
const anyRates = fc
  .array(fc.double({ min: 0.001, max: 1, noNaN: true }), { minLength: 1, maxLength: 12 })
  .map((parts) => parts.map((part) => (part / parts.reduce((sum, other) => sum + other, 0)) * 1e9));

describe("p[F_b > 0]", () => {
  it("balances the rates, and is the only one to do so; or none is", () => {
    let unsolved = 0;
    fc.assert(
      fc.property(anyParameters, anyRates, (parameters, rates) => {
        const solution = feedbackProbability(parameters, rates);
        const grid = Array.from({ length: 60 }, (_, k) => 1e-6 ** (1 - k / 59));
        const values = grid.map((probability) => balance(parameters, rates, probability));
        for (const [k, value] of values.slice(1).entries()) expect(value).toBeLessThan(values[k] as number);
        if (solution.solved) {
          const { probability } = solution;
          expect(probability).toBeGreaterThan(0);
          expect(probability).toBeLessThanOrEqual(1);
          expect(balance(parameters, rates, probability * (1 - 1e-9))).toBeGreaterThan(0);
          expect(balance(parameters, rates, Math.min(1, probability * (1 + 1e-9)))).toBeLessThanOrEqual(0);
        } else {
          unsolved++;
          expect(solution.growth).toBeGreaterThan(0);
          expect(values.every((value) => value > 0)).toBe(true);
        }
      }),
      { numRuns: 300, seed: 7 },
    );
    expect(unsolved).toBeGreaterThan(20);
    expect(unsolved).toBeLessThan(280);
  });

  it("is about 0.2 at 1 Gb/s, whatever the rates (figure 3)", () => {
    const all = [500, 600, 700, 800, 900, 990].map((first) => probabilityOf(QCN_BASELINE, pair(first * M)));
    for (const probability of all) expect(Math.abs(probability - 0.185)).toBeLessThan(0.025);
    expect(probabilityOf(QCN_BASELINE, pair(500 * M))).toBeCloseTo(0.2087, 4);
    expect(probabilityOf(QCN_BASELINE, pair(900 * M))).toBeCloseTo(0.1722, 4);
  });

  it("has a solution for a timer of 15 ms and two flows of any rates, and for a slower timer where for a faster one", () => {
    for (let first = 500; first < 1000; first += 5) {
      for (const milliseconds of [10, 15, 100]) {
        const timer = { ...QCN_BASELINE, variant: "qcn-t", rpg_time_reset: milliseconds * 1e6 } as const;
        expect(probabilityOf(timer, pair(first * M))).toBeLessThan(0.06);
      }
    }
  });

  it("has none when cycles are too short or flows too many for F_b = 1", () => {
    const timer = { ...QCN_BASELINE, variant: "qcn-t" } as const;
    const equal = (flows: number) => Array<number>(flows).fill(1e9 / flows);
    expect(feedbackProbability({ ...timer, rpg_time_reset: 0.15e6 }, pair(900 * M)).solved).toBe(false);
    expect(feedbackProbability(timer, equal(6)).solved).toBe(true);
    expect(feedbackProbability(timer, equal(7)).solved).toBe(false);
    expect(feedbackProbability(QCN_BASELINE, equal(1627)).solved).toBe(true);
    expect(feedbackProbability(QCN_BASELINE, equal(1628)).solved).toBe(false);
  });
});

describe("rates over time", () => {
  const at = ({ rates }: QcnSeries, flow: number, point: number) => rates[flow]?.[point] as number;
  const run = (input: QcnModelInput, rounds = 2000) => qcnConvergence(input, { horizon: rounds * 1.2e6, step: 0 });

  it.each(["qcn", "qcn-t", "qcn-aimd"] as const)("%s keeps their sum", (variant) => {
    const rates = [400, 250, 150, 120, 80].map((rate) => rate * M);
    const { series } = run({ variant, rates });
    expect(series.time).toHaveLength(2001);
    for (const k of series.time.keys()) {
      const sum = series.rates.reduce((total, flow) => total + (flow[k] as number), 0);
      expect(Math.abs(sum - 1e9)).toBeLessThan(1e-3);
    }
  });

  it("makes up for what the rates at the start lack of the bandwidth, from all alike", () => {
    const { series } = run({ rates: [900 * M, 100 * M - 600] }, 1);
    const exact = run({ rates: [900 * M, 100 * M] }, 1).series;
    for (const flow of [0, 1]) expect(Math.abs(at(series, flow, 1) - at(exact, flow, 1))).toBeLessThan(600);
    expect(Math.abs(at(series, 0, 1) + at(series, 1, 1) - 1e9)).toBeLessThan(1e-6);
  });

  it("adds what equation 25 expects in the first round", () => {
    const { series } = run({ rates: pair(900 * M) }, 1);
    const probability = probabilityOf(QCN_BASELINE, pair(900 * M));
    const expected = 0.9 * probability * changePerCut(QCN_BASELINE, 900 * M, probability);
    expect(series.time).toEqual([0, 1.2e6]);
    expect(series.probability[0]).toBe(probability);
    expect((series.rates[0]?.[1] as number) - 900 * M).toBeCloseTo(expected, 4);
    expect(expected).toBeLessThan(-1e3);
  });

  it("does not depend on the order of flows, and leaves equal ones equal", () => {
    const forwards = run({ rates: [600 * M, 200 * M, 200 * M] }).series.rates;
    const backwards = run({ rates: [200 * M, 200 * M, 600 * M] }).series.rates;
    expect(forwards[0]?.at(-1)).toBeCloseTo(backwards[2]?.at(-1) as number, 2);
    expect(forwards[1]).toEqual(forwards[2]);
    for (const flow of run({ rates: Array<number>(5).fill(200 * M) }).series.rates) {
      for (const rate of flow) expect(Math.abs(rate - 200 * M)).toBeLessThan(1e-3);
    }
  });

  it("approach each other in every round", () => {
    const { series } = run({ rates: pair(990 * M) });
    const [fast, slow] = series.rates as [number[], number[]];
    for (let k = 1; k < fast.length; k++) {
      expect(fast[k]).toBeLessThan(fast[k - 1] as number);
      expect(slow[k]).toBeGreaterThan(slow[k - 1] as number);
    }
  });

  it("says when 90% is reached, and goes on to the horizon unless told otherwise", () => {
    const input = { rates: pair(600 * M) };
    const whole = qcnConvergence(input, { horizon: 8 * kSecond, step: 0.1 * kSecond });
    const part = qcnConvergence(input, { horizon: 8 * kSecond, step: 0.1 * kSecond, untilConverged: true });
    const [fast, slow] = part.series.rates.map((flow) => flow.at(-1) as number) as [number, number];
    expect(whole.convergedAt).toBe(part.convergedAt);
    expect(part.series.time.at(-1)).toBe(part.convergedAt);
    expect(slow / fast).toBeGreaterThanOrEqual(0.9);
    expect(slow / fast).toBeLessThan(0.901);
    expect(8 * kSecond - (whole.series.time.at(-1) as number)).toBeLessThan(1.2e6);
    expect(whole.series.time.length).toBe(81);
    expect(qcnConvergence(input, { horizon: kSecond, step: kSecond }).convergedAt).toBeNull();
    expect(qcnConvergence({ rates: [1e9] }, { horizon: kSecond, step: kSecond }).convergedAt).toBe(0);
  });

  it("end where no probability balances them", () => {
    // Seven flows that are not equal yet still have a solution; on the way to equal rates there is none.
    const rates = [700, 50, 50, 50, 50, 50, 50].map((rate) => rate * M);
    const result = qcnConvergence({ variant: "qcn-t", rates }, { horizon: 10 * kSecond, step: 0 });
    expect(result.series.time.length).toBeGreaterThan(100);
    expect(result.unsolvable?.time).toBeGreaterThan(result.series.time.at(-1) as number);
    expect(result.unsolvable?.growth).toBeGreaterThan(0);
    expect(result.unsolvable?.rates).toHaveLength(7);
    expect(result.series.probability.at(-1)).toBeGreaterThan(0.99);
  });

  it.each([
    [{ rates: [] }, /positive/],
    [{ rates: [1e9, 0] }, /positive/],
    [{ rates: [400 * M, 400 * M] }, /add up/],
    [{ rates: [1e9], gd: 1 }, /0\.5/],
    [{ rates: [1e9], rpg_ai_rate: 0 }, /rpg_ai_rate/],
    [{ rates: [1e9], rpg_threshold: 0.5 }, /rpg_threshold/],
    [{ rates: [1e9], bandwidth: Number.NaN }, /bandwidth/],
  ])("refuses %o", (input, message) => {
    expect(() => qcnConvergence(input, { horizon: 0, step: 0 })).toThrow(message);
  });
});

describe("the figures", () => {
  it("4, 5, 6: 900 and 100 Mb/s take far longer than 700 and 300", () => {
    expect(seconds()).toBeCloseTo(13.46, 2);
    expect(seconds({ rates: pair(700 * M) })).toBeCloseTo(8.25, 2);
    const [slow, ...rest] = [550, 600, 700, 800, 900, 990]
      .map((first) => seconds({ rates: pair(first * M) }))
      .reverse();
    for (const other of rest) expect(slow).toBeGreaterThan(other);
  });

  it("5: what the simplifications do is 1%", () => {
    const [paper, summed, exact] = (["paper", "summed", "exact"] as const).map((form) => seconds({ form })) as [
      number,
      number,
      number,
    ];
    expect(summed / paper).toBeCloseTo(1.0015, 3);
    expect(exact / paper).toBeCloseTo(1.0055, 3);
  });

  it("7: G_d has little influence; 1/16 is about half the time", () => {
    expect(seconds({ gd: 1 / 16 }) / seconds()).toBeCloseTo(0.56, 2);
    expect(seconds({ gd: 1 / 64 }) / seconds()).toBeCloseTo(0.8, 2);
    expect(seconds({ gd: 1 / 256 }) / seconds()).toBeCloseTo(1.3, 2);
    // They matter as a product.
    expect(seconds({ feedback: 2 })).toBe(seconds({ gd: 1 / 64 }));
  });

  it("8, 9: R_AI and T_AI have much, in opposite directions", () => {
    expect(seconds({ rpg_ai_rate: 1 * M }) / seconds()).toBeCloseTo(0.65, 2);
    expect(seconds({ rpg_ai_rate: 5 * M }) / seconds()).toBeCloseTo(0.26, 2);
    expect(seconds({ ai_cycle: 0.25 }) / seconds()).toBeCloseTo(0.62, 2);
    expect(seconds({ ai_cycle: 1 }) / seconds()).toBeCloseTo(1.71, 2);
  });

  it("10: a timer shortens it, 2.4 ms by several times", () => {
    const timer = (milliseconds: number) => seconds({ variant: "qcn-t", rpg_time_reset: milliseconds * 1e6 });
    expect(timer(2.4)).toBeCloseTo(2.99, 2);
    expect(timer(10)).toBeCloseTo(12.36, 2);
    expect(timer(15)).toBeGreaterThan(seconds());
  });

  it("11: AIMD shortens it, less than a larger R_AI does", () => {
    expect(seconds({ variant: "qcn-aimd" })).toBeCloseTo(9.45, 2);
    expect(seconds({ variant: "qcn-aimd", rpg_ai_rate: 5 * M })).toBeCloseTo(1.22, 2);
    expect(seconds({ variant: "qcn-aimd" })).toBeGreaterThan(seconds({ rpg_ai_rate: 1 * M }));
  });

  it("m times the bandwidth, with m times R_AI, takes 1/m of the time", () => {
    for (const m of [2, 10, 40]) {
      const scaled = { bandwidth: m * 1e9, rates: [900 * m * M, 100 * m * M] };
      expect(seconds({ ...scaled, rpg_ai_rate: 0.5 * m * M }) * m).toBeCloseTo(seconds(), 6);
      expect(seconds(scaled) * m).toBeGreaterThan(1.5 * seconds());
    }
  });
});
