/** The fluid model over time: against a plain method with tiny steps, itself in other forms, its fixed point, and figures 10 to 12. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  DCQCN_PAPER,
  DCQCN_STRAWMAN,
  type DcqcnModelParameters,
  dcqcnFixedPoint,
  type FluidFlows,
  runFluid,
} from "../../src/models/dcqcn/index.js";

const ms = 1e6;
const never = Number.POSITIVE_INFINITY;
const flow = (changes: Partial<FluidFlows> = {}): FluidFlows => ({
  count: 1,
  start: 0,
  stop: never,
  rate: 40e9,
  lineRate: 40e9,
  alpha: 1,
  ...changes,
});
/** alpha stands still at line rate. */
const kNoAlpha: DcqcnModelParameters = { ...DCQCN_PAPER, alpha_decays_at_line_rate: false };
const last = (list: readonly number[] | undefined) => list?.at(-1) as number;
const relative = (value: number, expected: number) => Math.abs(value / expected - 1);

/**
 * Equations 5 to 9 and 11 as printed, by Euler's method with the step `h`, s; packets of 1500 bytes. Without
 * alpha_decays_at_line_rate equation 7 holds from a flow's first mark on, until it has its line rate again.
 */
function euler(p: DcqcnModelParameters, flows: readonly FluidFlows[], horizon: number, h: number) {
  const bits = 12_000;
  const [C, ai, B, T] = [p.bandwidth / bits, p.rpg_ai_rate / bits, p.rpg_byte_reset / 1500, p.rpg_time_reset / 1e9];
  const [tau, alphaTau, F] = [p.min_time_between_cnps / 1e9, p.dce_tcp_rtt / 1e9, p.rpg_threshold];
  const lag = Math.round(p.delay / 1e9 / h);
  const past: { q: number; rates: number[] }[] = [];
  let q = 0;
  const state = flows.map(() => ({ rate: 0, target: 0, alpha: 0, on: false, limited: true }));
  for (let step = 0; step * h < horizon / 1e9; step++) {
    flows.forEach(({ start, rate, alpha }, i) => {
      const one = state[i] as (typeof state)[number];
      if (one.on || step * h < start / 1e9 - h / 2) return;
      const limited = p.alpha_decays_at_line_rate || rate < 40e9;
      Object.assign(one, { rate: rate / bits, target: rate / bits, alpha, on: true, limited });
    });
    past.push({ q, rates: state.map(({ rate }) => rate) });
    const then = past[step - lag] ?? { q: 0, rates: state.map(() => 0) };
    const above = ((then.q * 1500 - p.kmin) / (p.kmax - p.kmin)) * p.pmax;
    const mark = then.q * 1500 <= p.kmin ? 0 : then.q * 1500 <= p.kmax ? above : 1;
    let sum = 0;
    state.forEach((one, i) => {
      if (!one.on) return;
      const R = then.rates[i] as number;
      if (mark * R > 0) one.limited = true;
      else if (!p.alpha_decays_at_line_rate && R >= (40e9 / bits) * (4095 / 4096)) {
        one.limited = false;
        one.alpha = (flows[i] as FluidFlows).alpha;
      }
      const a = 1 - (1 - mark) ** (tau * R);
      const b = mark === 0 ? R / B : mark === 1 ? 0 : (R * mark) / ((1 - mark) ** -B - 1);
      const d = mark === 0 || R === 0 ? 1 / T : mark === 1 ? 0 : (R * mark) / ((1 - mark) ** (-T * R) - 1);
      const additive = b * (1 - mark) ** (F * B) + d * (1 - mark) ** (F * T * R);
      const { rate, target, alpha } = one;
      one.rate = Math.min(40e9 / bits, rate + h * ((-rate * alpha * a) / (2 * tau) + ((target - rate) / 2) * (b + d)));
      one.target = Math.min(40e9 / bits, target + h * ((-(target - rate) * a) / tau + ai * additive));
      if (one.limited) one.alpha = alpha + ((h * p.g) / alphaTau) * (1 - (1 - mark) ** (alphaTau * R) - alpha);
      sum += rate;
    });
    q = Math.max(0, q + h * (sum - C));
  }
  return { queue: q * 1500, rates: state.map(({ rate }) => rate * bits), alphas: state.map(({ alpha }) => alpha) };
}

describe("the solution", () => {
  const cases: [string, DcqcnModelParameters, FluidFlows[], number][] = [
    ["two flows of different starts", DCQCN_PAPER, [flow(), flow({ start: 10 * ms })], 40 * ms],
    ["a flow that starts at 0", { ...DCQCN_PAPER, g: 1 / 16 }, [flow(), flow({ rate: 0 })], 30 * ms],
    ["the same without alpha at line rate", kNoAlpha, [flow(), flow({ start: 10 * ms })], 40 * ms],
    ["and from 0", { ...kNoAlpha, g: 1 / 16 }, [flow(), flow({ rate: 0 })], 30 * ms],
    [
      "slow counters",
      { ...DCQCN_PAPER, rpg_byte_reset: 150e3, rpg_time_reset: 1_500_000 },
      [flow(), flow({ rate: 5e9 })],
      20 * ms,
    ],
  ];
  it.each(cases)("is that of a plain method with tiny steps: %s", (_, parameters, flows, horizon) => {
    const { series } = runFluid(parameters, flows, { horizon, step: ms, tolerance: 1e-8 });
    const [coarse, fine] = [1e-7, 5e-8].map((h) => euler(parameters, flows, horizon, h));
    // The method has order 1: twice the fine solution less the coarse one has no error of that order.
    const better = (of: (run: ReturnType<typeof euler>) => number) =>
      2 * of(fine as ReturnType<typeof euler>) - of(coarse as ReturnType<typeof euler>);
    flows.forEach((_, i) => {
      expect(
        relative(
          last(series.rates[i]),
          better(({ rates }) => rates[i] as number),
        ),
      ).toBeLessThan(1e-4);
      expect(
        relative(
          last(series.alphas[i]),
          better(({ alphas }) => alphas[i] as number),
        ),
      ).toBeLessThan(1e-4);
    });
    expect(Math.abs(last(series.queue) - better(({ queue }) => queue))).toBeLessThan(100);
  });

  it("does not depend on the tolerance, nor on how it is sampled", () => {
    const flows = [flow(), flow({ start: 10 * ms })];
    const at = (tolerance: number, step: number) =>
      runFluid(DCQCN_PAPER, flows, { horizon: 50 * ms, step, tolerance }).series;
    const exact = at(1e-10, ms);
    for (const other of [at(1e-6, ms), at(1e-6, 50_000), at(1e-6, 7 * ms)]) {
      const k = other.time.indexOf(49 * ms);
      expect(relative(other.rates[1]?.[k] as number, exact.rates[1]?.[49] as number)).toBeLessThan(1e-4);
      expect(relative(other.queue[k] as number, exact.queue[49] as number)).toBeLessThan(1e-3);
    }
  });

  it("of N identical flows is that of N flows written out", () => {
    for (const parameters of [DCQCN_PAPER, { ...DCQCN_PAPER, g: 1 / 16 }]) {
      const options = { horizon: 20 * ms, step: ms, tolerance: 1e-9 };
      const together = runFluid(parameters, [flow({ count: 4 })], options);
      const apart = runFluid(parameters, [flow(), flow(), flow(), flow()], options);
      together.series.time.forEach((_, k) => {
        const [a, b] = [together.series.rates[0]?.[k] as number, apart.series.rates[3]?.[k] as number];
        expect(Math.abs(a - b)).toBeLessThan(1e-5 * 10e9);
        expect(Math.abs((together.series.queue[k] as number) - (apart.series.queue[k] as number))).toBeLessThan(20);
      });
      expect(relative(together.sums[0]?.marks as number, apart.sums[2]?.marks as number)).toBeLessThan(1e-4);
    }
  });

  it("comes to rest at the fixed point", () => {
    for (const count of [2, 8]) {
      const { series } = runFluid(DCQCN_PAPER, [flow({ count })], { horizon: 400 * ms, step: 10 * ms });
      const point = dcqcnFixedPoint(DCQCN_PAPER, count);
      expect(relative(last(series.queue), point.queue_bytes as number)).toBeLessThan(1e-4);
      expect(relative(last(series.rates[0]), point.rate_bps)).toBeLessThan(1e-5);
      expect(relative(last(series.targets[0]), point.target_rate_bps)).toBeLessThan(1e-5);
      expect(relative(last(series.alphas[0]), point.alpha)).toBeLessThan(1e-4);
    }
  });
});

describe("limits of the state", () => {
  it("keep the queue from 0 and the rates from the line rate", () => {
    const run = runFluid({ ...DCQCN_PAPER, g: 1 / 16 }, [flow({ count: 16 })], { horizon: 50 * ms, step: 20_000 });
    expect(Math.min(...run.series.queue)).toBe(0);
    expect(Math.min(...run.lengths)).toBe(0);
    for (const list of [...run.series.rates, ...run.series.targets])
      expect(Math.max(...list)).toBeLessThanOrEqual(40e9);
  });

  it("let a flow alone fill the link, without a queue", () => {
    const { series, sums, longest } = runFluid(DCQCN_PAPER, [flow()], { horizon: 10 * ms, step: ms });
    expect(new Set(series.rates[0])).toEqual(new Set([40e9]));
    expect(longest).toBe(0);
    expect(sums[0]).toMatchObject({ marks: 0, cnps: 0, delivered: expect.closeTo(40e9 * 0.01, 0) });
  });

  it("let those who stay have what a flow leaves", () => {
    const flows = [flow(), flow({ stop: 60 * ms })];
    const { series, sums } = runFluid(DCQCN_PAPER, flows, { horizon: 150 * ms, step: ms });
    expect(series.rates[1]?.[59]).toBeGreaterThan(15e9);
    expect(series.rates[1]?.[60]).toBeGreaterThan(15e9);
    expect(series.rates[1]?.[61]).toBe(0);
    expect(last(series.rates[0])).toBe(40e9);
    expect(sums[1]?.delivered).toBe(series.delivered[1]?.[61]);
  });
});

describe("alpha of a flow at line rate", () => {
  // The second flow comes after 10 ms and goes after 60 ms.
  const run = (parameters: DcqcnModelParameters, tolerance = 1e-6) => {
    const flows = [flow(), flow({ start: 10 * ms, stop: 60 * ms })];
    return runFluid(parameters, flows, { horizon: 150 * ms, step: ms, tolerance }).series;
  };
  const decay = (from: number, time: number) => from * Math.exp((-time / 256 / 55_000) * ms);
  const [decays, stands] = [run(DCQCN_PAPER), run(kNoAlpha)].map(({ alphas, rates }) => ({
    alpha: alphas[0] as number[],
    rate: rates[0] as number[],
  })) as [{ alpha: number[]; rate: number[] }, { alpha: number[]; rate: number[] }];

  it("decays by equation 7 from its start, and on when the link is its own again", () => {
    for (const k of [1, 5, 10]) expect(decays.alpha[k]).toBeCloseTo(decay(1, k), 9);
    expect(decays.rate[100]).toBe(40e9);
    expect(decays.alpha[150]).toBeCloseTo(decay(decays.alpha[100] as number, 50), 9);
  });

  it("or stands still until its first mark, and is 1 again where the line rate is reached", () => {
    expect(new Set(stands.alpha.slice(0, 11))).toEqual(new Set([1]));
    expect(stands.alpha[59]).toBeLessThan(0.5);
    const back = stands.rate.findIndex((rate, k) => k > 60 && rate >= 40e9 * (4095 / 4096));
    expect(stands.alpha[back - 1]).toBeLessThan(0.5);
    expect(new Set(stands.alpha.slice(back + 1))).toEqual(new Set([1]));
  });

  it("which its first cuts show", () => {
    expect(stands.rate[12]).toBeLessThan(decays.rate[12] as number);
  });

  it("is found whatever the tolerance", () => {
    const exact = run(kNoAlpha, 1e-10);
    stands.rate.forEach((rate, k) => void expect(Math.abs(rate - (exact.rates[0]?.[k] as number))).toBeLessThan(1e7));
  });
});

/** Runs 3 ms that stay finite and lose nothing. */
function soundRun(changes: Partial<DcqcnModelParameters>, flows: readonly FluidFlows[]) {
  const run = runFluid({ ...DCQCN_PAPER, ...changes }, flows, { horizon: 3 * ms, step: 1e5 });
  const { queue, rates, targets, alphas } = run.series;
  for (const value of [queue, ...rates, ...targets, ...alphas].flat()) expect(value).toBeGreaterThanOrEqual(0);
  const total = (of: (one: (typeof run.sums)[number]) => number) =>
    run.sums.reduce((sum, one, i) => sum + of(one) * (flows[i] as FluidFlows).count, 0);
  const sent = total(({ packets }) => packets * 12_000);
  const there = total(({ delivered }) => delivered) + 8 * last(queue);
  expect(Math.abs(there - sent)).toBeLessThanOrEqual(1e-6 * sent + 1);
  return run;
}

describe("sums", () => {
  it("lose nothing: what was sent has left or waits", () => {
    const flows = [flow(), flow({ start: 3 * ms, count: 3 }), flow({ rate: 0 })];
    const { series, sums } = runFluid(DCQCN_PAPER, flows, { horizon: 30 * ms, step: ms });
    const total = (of: (one: (typeof sums)[number]) => number) =>
      sums.reduce((sum, one, i) => sum + of(one) * (flows[i] as FluidFlows).count, 0);
    const sent = total(({ packets }) => packets * 12_000);
    expect(relative(total(({ delivered }) => delivered) + 8 * last(series.queue), sent)).toBeLessThan(1e-4);
  });

  it("stay finite and lose nothing whatever the parameters, flows that come and go included", () => {
    const flows = fc.array(
      fc
        .record({
          count: fc.constantFrom(1, 5, 100),
          start: fc.constantFrom(0, 1e6, 1.3e6),
          lasts: fc.constantFrom(never, 1e6, 1),
          line: fc.constantFrom(0.01, 0.5, 1, 4),
          part: fc.constantFrom(0, 0.5, 1),
          alpha: fc.constantFrom(0, 0.5, 1),
        })
        .map(({ count, start, lasts, line, part, alpha }) =>
          flow({ count, start, stop: start + lasts, lineRate: line * 40e9, rate: part * line * 40e9, alpha }),
        ),
      { minLength: 1, maxLength: 4 },
    );
    const parameters = fc.record({
      kmin: fc.constantFrom(0, 5e3, 40e3),
      wide: fc.constantFrom(0, 1e3, 195e3, 2e6),
      pmax: fc.constantFrom(1e-3, 0.1, 1),
      g: fc.constantFrom(1, 1 / 16, 1 / 256),
      rpg_ai_rate: fc.constantFrom(1e6, 40e6, 1e9),
      rpg_byte_reset: fc.constantFrom(0, 3000, 10e6),
      rpg_time_reset: fc.constantFrom(1e3, 55e3, 1e8),
      min_time_between_cnps: fc.constantFrom(1e3, 50e3, 1e6),
      dce_tcp_rtt: fc.constantFrom(1e3, 55e3, 1e6),
      delay: fc.constantFrom(5e3, 50e3, 5e6),
    });
    fc.assert(
      fc.property(parameters, flows, ({ wide, ...given }, some) => {
        soundRun({ ...given, kmax: given.kmin + wide }, some);
      }),
      { numRuns: 60 },
    );
  });

  // R_T is at line rate with a strong increase that marks end within nanoseconds: whether it is held changes at once.
  const slow = { rpg_ai_rate: 40e6, rpg_byte_reset: 10e6, rpg_time_reset: 1e8, dce_tcp_rtt: 1e3, delay: 50e3 };
  const brief: [Partial<DcqcnModelParameters>, FluidFlows[]][] = [
    [
      { ...slow, kmin: 0, kmax: 2e6, pmax: 1, g: 1 / 16, min_time_between_cnps: 1e6 },
      [
        flow({ count: 5, stop: 1 }),
        flow({ count: 5, stop: 1e6, rate: 2e8, lineRate: 4e8 }),
        flow({ count: 100, start: 1.3e6, alpha: 0 }),
      ],
    ],
    [
      { ...slow, kmin: 40e3, kmax: 235e3, pmax: 0.1, g: 1 / 16 },
      [flow({ count: 100, start: 1e6, alpha: 0 }), flow({ count: 100, start: 1e6, stop: 2e6, rate: 0, alpha: 0.5 })],
    ],
    [
      { ...slow, kmin: 40e3, kmax: 2.04e6, pmax: 1, g: 1, min_time_between_cnps: 1e6 },
      [
        flow({ rate: 20e9 }),
        flow({ count: 100, start: 1e6, stop: 2e6, rate: 160e9, lineRate: 160e9, alpha: 0 }),
        flow({ count: 100, stop: 1, alpha: 0 }),
      ],
    ],
    [
      { ...slow, kmax: 2.005e6, pmax: 0.1, g: 1, rpg_ai_rate: 1e9, rpg_byte_reset: 0, delay: 5e3 },
      [flow({ count: 100, rate: 20e9, lineRate: 20e9, alpha: 0.5 })],
    ],
  ];
  it.each(brief)("come to an end where a bound holds for a moment: %o", (changes, flows) => {
    expect(soundRun(changes, flows).steps).toBeLessThan(5000);
  });

  it("count marks and CNPs as the fixed point has them", () => {
    // Only the second half of a second counts: at the start everything is marked for a while.
    const { series } = runFluid(DCQCN_PAPER, [flow({ count: 4 })], { horizon: 1000 * ms, step: 500 * ms });
    const { p, rate_bps } = dcqcnFixedPoint(DCQCN_PAPER, 4);
    const packets = rate_bps / 12_000;
    const late = (list: readonly number[] | undefined) => (list?.[2] as number) - (list?.[1] as number);
    expect(relative(late(series.delivered[0]), rate_bps / 2)).toBeLessThan(1e-6);
    expect(relative(late(series.marks), 2 * p * packets)).toBeLessThan(1e-4);
    expect(relative(late(series.cnps), (2 * (1 - (1 - p) ** (packets * 50e-6))) / 50e-6)).toBeLessThan(1e-4);
  });
});

describe("figure 10: a second flow after 10 ms", () => {
  const { series } = runFluid(DCQCN_PAPER, [flow(), flow({ start: 10 * ms })], { horizon: 100 * ms, step: ms });
  const second = series.rates[1] as number[];

  it("does not exist before, and starts at line rate", () => {
    expect(second.slice(0, 10)).toEqual(Array(10).fill(0));
    expect(second[10]).toBe(40e9);
  });

  it("is cut below its share at once, and then closes in on it", () => {
    expect(second[12]).toBeLessThan(10e9);
    for (let k = 16; k < 25; k++) expect(second[k]).toBeGreaterThan(second[k - 1] as number);
    expect(second[40]).toBeGreaterThan(15e9);
    for (const rate of second.slice(80)) expect(relative(rate, 20e9)).toBeLessThan(0.02);
  });
});

describe("figures 11 and 12", () => {
  /** Difference of the throughputs of a flow from 40 Gb/s and one from 0 over 200 ms, in each ms after the first 10. */
  const apart = (changes: Partial<DcqcnModelParameters>) => {
    const { series } = runFluid({ ...DCQCN_STRAWMAN, ...changes }, [flow(), flow({ rate: 0 })], {
      horizon: 200 * ms,
      step: ms,
    });
    const [first, second] = series.delivered as [number[], number[]];
    const ahead = first.map((bits, k) => bits - (second[k] as number));
    return ahead.map((bits, k) => Math.abs(bits - (ahead[k - 1] ?? 0)) * 1000).slice(11);
  };
  /** Queue of so many flows from line rate over the second half of 100 ms, with table 14 but for g. */
  const queue = (g: number, count = 2) => {
    const { series } = runFluid({ ...DCQCN_PAPER, g }, [flow({ count })], { horizon: 100 * ms, step: 0.1 * ms });
    return series.queue.slice(501);
  };
  const deviation = (values: readonly number[]) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
  };
  const kSlowCounter = { rpg_byte_reset: 10e6 };

  it("the strawman does not converge", () => {
    expect(Math.min(...apart({}))).toBeGreaterThan(35e9);
    expect(DCQCN_STRAWMAN).toMatchObject({ kmin: 40e3, kmax: 40e3, pmax: 1, g: 1 / 16 });
  });

  it("a slower byte counter helps, a faster timer more", () => {
    const slower = last(apart(kSlowCounter));
    expect(slower).toBeLessThan(last(apart({})));
    expect(slower).toBeGreaterThan(25e9);
    expect(last(apart({ ...kSlowCounter, rpg_time_reset: 300e3 }))).toBeLessThan(15e9);
    expect(last(apart({ ...kSlowCounter, rpg_time_reset: 55e3 }))).toBeLessThan(0.2e9);
  });

  it("so do marks by RED, and a smaller Pmax", () => {
    expect(last(apart({ kmax: 200e3 }))).toBeLessThan(15e9);
    expect(last(apart({ kmax: 200e3, pmax: 0.1 }))).toBeLessThan(1e9);
  });

  it("a smaller g leaves less variation of the queue", () => {
    expect(deviation(queue(1 / 16))).toBeGreaterThan(5 * deviation(queue(1 / 256)));
    expect(Math.max(...queue(1 / 16, 16))).toBeGreaterThan(Math.max(...queue(1 / 256, 16)));
  });
});

describe("input", () => {
  const options = { horizon: ms, step: ms };
  const bad: [Partial<FluidFlows>, RegExp][] = [
    [{ count: 0 }, /count/],
    [{ start: -1 }, /start/],
    [{ start: 5, stop: 5 }, /stop/],
    [{ rate: 50e9 }, /rate/],
    [{ alpha: 2 }, /alpha/],
    [{ lineRate: 0, rate: 0 }, /lineRate/],
  ];
  it.each(bad)("%o is refused", (change, message) => {
    expect(() => runFluid(DCQCN_PAPER, [flow(change)], options)).toThrow(message);
  });
  it("no flows, horizons and steps that mean nothing are refused", () => {
    expect(() => runFluid(DCQCN_PAPER, [], options)).toThrow(/flows/);
    expect(() => runFluid(DCQCN_PAPER, [flow()], { horizon: never, step: ms })).toThrow(/horizon/);
    expect(() => runFluid(DCQCN_PAPER, [flow()], { horizon: ms, step: 0 })).toThrow(/step/);
  });
});
