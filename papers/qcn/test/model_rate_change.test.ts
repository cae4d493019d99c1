/** Closed forms of the expected rate change against sums, limits and a simulation of the paper's assumptions. */
import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { mean, sampleStandardDeviation } from "simple-statistics";
import { describe, expect, it } from "vitest";
import { QCN_BASELINE, type QcnModelParameters } from "../model/index.js";
import { changePerCut } from "../model/rate_change.js";
import { increasesAt, ReactionPoint, samplesPerCycle, simplified, summed } from "./model_reference.js";

const M = 1e6;
const kPoints = [0.004, 0.05, 0.2, 0.7, 1].flatMap((p) =>
  [100 * M, 500 * M, 900 * M].map((rate) => [p, rate] as const),
);
const kParameters: [string, QcnModelParameters][] = [
  ["baseline", QCN_BASELINE],
  ["long recovery", { ...QCN_BASELINE, rpg_threshold: 31 }],
  ["large cuts", { ...QCN_BASELINE, gd: 1 / 16, feedback: 2 }],
  ["large steps", { ...QCN_BASELINE, rpg_ai_rate: 5 * M }],
  ["other cycles", { ...QCN_BASELINE, ai_cycle: 0.25, rpg_threshold: 3, rpg_byte_reset: 100_000 }],
  ["sparse samples", { ...QCN_BASELINE, cp_sample_base: 300_000, bandwidth: 2e9 }],
  ["timer of 2.4 ms", { ...QCN_BASELINE, variant: "qcn-t" }],
  ["timer of 15 ms", { ...QCN_BASELINE, variant: "qcn-t", rpg_time_reset: 15e6 }],
];

describe.each(kParameters)("%s", (_, parameters) => {
  it.each(kPoints)("equation 24 is the sum that it stands for, P %f, R %i", (probability, rate) => {
    const sum = summed(parameters, rate, probability, (j) => simplified(parameters, rate, j));
    const closed = changePerCut({ ...parameters, form: "summed" }, rate, probability);
    const scale = parameters.gd * parameters.feedback * rate + Math.abs(sum);
    expect(Math.abs(closed - sum) / scale).toBeLessThan(1e-12);
  });

  it.each(kPoints)("the exact form is what the rules of the reaction point give, P %f, R %i", (probability, rate) => {
    const sum = summed(parameters, rate, probability, increasesAt(parameters, rate));
    const exact = changePerCut({ ...parameters, form: "exact" }, rate, probability);
    const scale = parameters.gd * parameters.feedback * rate + Math.abs(sum);
    // The state machine rounds differences of rates: 1e-16 of the rate, thousands of times.
    expect(Math.abs(exact - sum) / scale).toBeLessThan(1e-9);
  });
});

describe("as printed", () => {
  const [g, ai, bandwidth] = [1 / 128, 0.5 * M, 1e9];

  it.each(kPoints)("equation 25, P %f, R %i", (probability, r) => {
    const p = (probability * r) / bandwidth;
    const q = (1 - p) ** (bandwidth / r);
    const root = (1 - p) ** (bandwidth / (2 * r));
    const late = (1 - p) ** ((11 * bandwidth) / (2 * r));
    const printed =
      -g * r * p +
      (0.5 * g * r * p * q) / (1 - 0.5 * q) +
      (ai * p * late) / (1 - root) -
      (0.5 * ai * p * late) / (1 - 0.5 * root);
    expect(p * changePerCut(QCN_BASELINE, r, probability)).toBeCloseTo(printed, 5);
    const third = (-(1 / 64) * g * r * p * (1 - p) ** ((6 * bandwidth) / r)) / (1 - 0.5 * q);
    const fourth = ((1 / 64) * g * r * p * late) / (1 - 0.5 * root);
    const full = p * changePerCut({ ...QCN_BASELINE, form: "summed" }, r, probability);
    expect(full).toBeCloseTo(printed + third + fourth, 5);
  });

  it.each(kPoints)("equation 26 with its quotients as exponents, P %f, R %i", (probability, r) => {
    const timer = { ...QCN_BASELINE, variant: "qcn-t", rpg_time_reset: 10e6 } as const;
    const x = (bandwidth * 10e-3) / 1.2e6;
    const p = (probability * r) / bandwidth;
    const power = (exponent: number) => (1 - p) ** exponent;
    const printed =
      -g * r * p +
      (0.5 * g * r * p * power(x)) / (1 - 0.5 * power(x)) +
      (ai * p * power(5.5 * x)) / (1 - power(x / 2)) -
      (0.5 * ai * p * power(5.5 * x)) / (1 - 0.5 * power(x / 2));
    expect(p * changePerCut(timer, r, probability)).toBeCloseTo(printed, 5);
  });

  it.each(kPoints)("equation 28, P %f, R %i, which is its sum", (probability, r) => {
    const aimd = { ...QCN_BASELINE, variant: "qcn-aimd" } as const;
    const p = (probability * r) / bandwidth;
    const q = (1 - p) ** (bandwidth / r);
    const change = changePerCut(aimd, r, probability);
    expect(p * change).toBeCloseTo(-g * r * p + (ai * p * q) / (1 - q), 5);
    expect(change / summed(aimd, r, probability, () => ai)).toBeCloseTo(1, 10);
    expect(changePerCut({ ...aimd, form: "exact" }, r, probability)).toBe(change);
  });

  it("equation 16 is the increase of the state machine", () => {
    for (const j of [6, 7, 8, 12, 20]) {
      const r = 300 * M;
      const left = 1 - g / 2 ** (j - 1);
      const printed = (g * r) / 2 ** j / left + 0.5 * (j - 5 - (j - 7 + 1 / 2 ** (j - 6)) / left) * ai;
      expect(increasesAt(QCN_BASELINE, r)(j) / printed).toBeCloseTo(1, 8);
    }
  });

  it("equation 14, whose sum is over TR_(j-i)", () => {
    const before = 400 * M;
    for (const j of [7, 9, 15]) {
      let sum = (1 - g / 32) * (before / 2 ** (j - 6));
      for (let i = 1; i <= j - 6; i++) sum += (before + (j - i - 5) * ai) / 2 ** i;
      expect(new ReactionPoint(QCN_BASELINE, before).step(j).before).toBeCloseTo(sum, 5);
    }
  });
});

describe("without feedback", () => {
  const kRarely = 1e-12;
  it.each([
    ["qcn", 2 * 0.5 * M * 0.3],
    ["qcn-aimd", 0.5 * M * 0.3],
    // A step each 1.2 ms, the sampling period.
    ["qcn-t", 0.5 * M],
  ] as const)("%s increases by a step each cycle", (variant, expected) => {
    for (const form of ["paper", "summed", "exact"] as const) {
      const change = 0.3 * kRarely * changePerCut({ ...QCN_BASELINE, variant, form }, 300 * M, kRarely);
      expect(change / expected).toBeCloseTo(1, 8);
    }
  });
});

/**
 * A reaction point at a steady rate whose bytes and time run on, samples of the congestion point at fixed intervals, each of
 * which is of this flow and has feedback with probability p. Returns by how much the rules change its rate, from cut to cut. Each
 * cycle and each interval is longer or shorter by up to `jitter` of itself.
 */
function simulate(parameters: QcnModelParameters, rate: number, p: number, cuts: number, jitter = 0): number[] {
  const generator = xoroshiro128plus(7);
  const drawn = (length: number) => length * (1 + jitter * (2 * uniformFloat64(generator) - 1));
  const perCycle = samplesPerCycle(parameters, rate);
  const increase = increasesAt(parameters, rate);
  const changes: number[] = [];
  for (let cut = 0; cut < cuts; cut++) {
    let change = -parameters.gd * parameters.feedback * rate;
    let ends = drawn(perCycle);
    let done = 0;
    for (let sample = drawn(1); ; sample += drawn(1)) {
      // An increase that is due together with a sample comes after it: the sample's feedback is there first.
      while (ends < sample - 1e-9) {
        done++;
        change += increase(done);
        const halved = done >= parameters.rpg_threshold && parameters.variant !== "qcn-aimd";
        ends += drawn(halved ? parameters.ai_cycle * perCycle : perCycle);
      }
      if (uniformFloat64(generator) < p) break;
    }
    changes.push(change);
  }
  return changes;
}

describe("a simulation of the assumptions", () => {
  // Cycles of whole numbers of samples: the model takes (1-p)^n for n between them too.
  it.each([
    ["qcn", 500 * M, 0.1],
    ["qcn", 250 * M, 0.05],
    ["qcn", 100 * M, 0.017],
    ["qcn-t", 900 * M, 0.155],
    ["qcn-t", 100 * M, 0.017],
    ["qcn-aimd", 500 * M, 0.058],
    ["qcn-aimd", 100 * M, 0.0073],
  ] as const)("%s at %i bit/s, p %f", (variant, rate, p) => {
    const parameters = { ...QCN_BASELINE, variant, form: "exact" } as const;
    const changes = simulate(parameters, rate, p, 100_000);
    const error = sampleStandardDeviation(changes) / Math.sqrt(changes.length);
    const model = changePerCut(parameters, rate, (p * parameters.bandwidth) / rate);
    expect(Math.abs(mean(changes) - model)).toBeLessThan(4 * error);
    // This makes agreement say something.
    expect(error).toBeLessThan(0.02 * parameters.gd * rate + 0.02 * Math.abs(model));
  });

  it("with jitter has half a sample less before an increase than the model counts", () => {
    const parameters = { ...QCN_BASELINE, form: "exact" } as const;
    for (const [rate, p] of [
      [900 * M, 0.155],
      [500 * M, 0.104],
      [100 * M, 0.017],
    ] as const) {
      const cut = parameters.gd * rate;
      const increases = mean(simulate(parameters, rate, p, 100_000, 0.15)) + cut;
      const model = changePerCut(parameters, rate, (p * parameters.bandwidth) / rate) + cut;
      expect(Math.abs(increases / model / (1 - p) ** -0.5 - 1)).toBeLessThan(0.02);
      expect(increases / model).toBeGreaterThan(1);
    }
  });
});
