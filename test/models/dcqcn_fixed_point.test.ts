/** The fixed point: the equations' right-hand sides there, that there is one only, and the queue. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { excess, packetFixedPoint } from "../../src/models/dcqcn/fixed_point.js";
import {
  DCQCN_PAPER,
  DCQCN_STRAWMAN,
  type DcqcnModelParameters,
  dcqcnFixedPoint,
} from "../../src/models/dcqcn/index.js";
import { inPackets } from "../../src/models/dcqcn/parameters.js";
import { FluidSystem } from "../../src/models/dcqcn/system.js";

/** q', R_C', R_T' and alpha' at the fixed point, each as a part of what its terms amount to. */
function residuals(parameters: DcqcnModelParameters, flows: number): number[] {
  const packets = inPackets(parameters);
  const { alpha, rate, target, queue } = packetFixedPoint(packets, flows);
  const flow = { count: flows, start: 0, stop: Number.POSITIVE_INFINITY, rate: 0, lineRate: 1, alpha: 1 };
  const system = new FluidSystem(packets, [flow], parameters.packet);
  system.activateAll();
  const out = new Float64Array(4);
  const q = queue as number;
  system.derivativeIn(1, Float64Array.of(q, rate, target, alpha), Float64Array.of(q, rate), out);
  const cuts = alpha / packets.alphaInterval;
  const sizes = [packets.capacity, rate * alpha * cuts, (target - rate) * cuts, packets.g * cuts];
  return Array.from(out, (slope, i) => Math.abs(slope / (sizes[i] as number)));
}

describe("fixed point", () => {
  it.each([1, 2, 4, 8, 10])("is one of the equations, %i flows", (flows) => {
    for (const residual of residuals(DCQCN_PAPER, flows)) expect(residual).toBeLessThan(1e-9);
  });

  it("is one of the equations whatever the parameters", () => {
    const parameters = fc.record({
      bandwidth: fc.double({ min: 1e9, max: 4e11, noNaN: true }),
      packet: fc.integer({ min: 500, max: 9000 }),
      g: fc.double({ min: 1e-4, max: 1, noNaN: true }),
      rpg_ai_rate: fc.double({ min: 1e6, max: 1e9, noNaN: true }),
      rpg_byte_reset: fc.constantFrom(0, 150e3, 10e6),
      rpg_time_reset: fc.double({ min: 2e4, max: 2e6, noNaN: true }),
      rpg_threshold: fc.integer({ min: 1, max: 10 }),
      min_time_between_cnps: fc.double({ min: 1e3, max: 1e5, noNaN: true }),
      dce_tcp_rtt: fc.double({ min: 1e3, max: 2e5, noNaN: true }),
    });
    fc.assert(
      fc.property(parameters, fc.integer({ min: 1, max: 100 }), (given, flows) => {
        // All of equation 5 below Kmax, so that every p has its queue.
        const all = { ...DCQCN_PAPER, ...given, queued: given.packet, pmax: 1 };
        // A p near 1 itself is what doubles resolve badly.
        fc.pre(dcqcnFixedPoint(all, flows).p < 0.5);
        for (const residual of residuals(all, flows)) expect(residual).toBeLessThan(1e-8);
      }),
      { numRuns: 200 },
    );
  });

  it.each([DCQCN_PAPER, DCQCN_STRAWMAN])("is the only one: what balances increases strictly in p", (parameters) => {
    const packets = inPackets(parameters);
    for (const flows of [1, 2, 16, 1000]) {
      const rate = packets.capacity / flows;
      const { p } = packetFixedPoint(packets, flows);
      let before = Number.NEGATIVE_INFINITY;
      for (let exponent = -12; exponent < -1; exponent += 0.05) {
        const now = excess(packets, 10 ** exponent, rate);
        expect(now).toBeGreaterThan(before);
        expect(now < 0).toBe(10 ** exponent < p);
        before = now;
      }
      expect(excess(packets, 0, rate)).toBeLessThan(0);
      expect(excess(packets, 1, rate)).toBeGreaterThan(0);
    }
  });

  it("agrees with the printed terms, written out", () => {
    const [C, T, tau, alphaTau, F] = [40e9 / 12_000, 55e-6, 50e-6, 55e-6, 5];
    const [B, ai] = [10e6 / 1500, 40e6 / 12_000];
    for (const flows of [2, 8, 64]) {
      const R = C / flows;
      const balance = (p: number) => {
        const a = 1 - (1 - p) ** (tau * R);
        const alpha = 1 - (1 - p) ** (alphaTau * R);
        const b = p / ((1 - p) ** -B - 1);
        const d = p / ((1 - p) ** (-T * R) - 1);
        const [c, e] = [b * (1 - p) ** (F * B), d * (1 - p) ** (F * T * R)];
        return (a * a * alpha) / ((b + d) * (c + e)) - tau * tau * ai * R;
      };
      const { p } = dcqcnFixedPoint(DCQCN_PAPER, flows);
      expect(balance(p * (1 - 1e-8))).toBeLessThan(0);
      expect(balance(p * (1 + 1e-8))).toBeGreaterThan(0);
    }
  });

  it("nears CoNEXT 2016's cube root where p is so small that nothing else of the powers counts", () => {
    const slow = { ...DCQCN_PAPER, rpg_ai_rate: 1, rpg_byte_reset: 10e9 };
    const { capacity, increase, bytes, timer, alphaInterval } = inPackets(slow);
    const flows = 2;
    const A = 1 / bytes + flows / (timer * capacity);
    const root = Math.cbrt(((increase * flows ** 2) / (alphaInterval * capacity ** 2)) * A ** 2);
    const { p } = dcqcnFixedPoint(slow, flows);
    expect(Math.abs(p / root - 1)).toBeLessThan(0.01);
  });
});

describe("queue", () => {
  it("is on the line of equation 5: an order of magnitude above Kmin, as the paper says", () => {
    for (const flows of [2, 4, 8, 10]) {
      const { p, queue_bytes, rate_bps } = dcqcnFixedPoint(DCQCN_PAPER, flows);
      expect(rate_bps).toBe(40e9 / flows);
      expect(p).toBeLessThan(0.01);
      expect(queue_bytes).toBeCloseTo(5000 + (p / 0.01) * 195_000, 3);
      expect(queue_bytes).toBeGreaterThan(5 * 5000);
    }
    expect(dcqcnFixedPoint(DCQCN_PAPER, 2)).toMatchObject({
      p: expect.closeTo(0.00116513, 8),
      alpha: expect.closeTo(0.101354, 6),
      queue_bytes: expect.closeTo(27_720, 0),
    });
  });

  it("is none where p exceeds Pmax, and with cut-off marking", () => {
    expect(dcqcnFixedPoint(DCQCN_PAPER, 16)).toMatchObject({ p: expect.closeTo(0.016242, 6), queue_bytes: null });
    expect(dcqcnFixedPoint(DCQCN_STRAWMAN, 2).queue_bytes).toBeNull();
  });

  it("does not depend on what a packet takes of the queue", () => {
    const { p, queue_bytes } = dcqcnFixedPoint({ ...DCQCN_PAPER, queued: 1400 }, 4);
    const whole = dcqcnFixedPoint(DCQCN_PAPER, 4);
    expect(p).toBe(whole.p);
    expect(queue_bytes).toBeCloseTo(whole.queue_bytes as number, 6);
  });
});

describe("input", () => {
  const bad: [Partial<DcqcnModelParameters>, RegExp][] = [
    [{ bandwidth: 0 }, /bandwidth/],
    [{ delay: Number.NaN }, /delay/],
    [{ kmin: 300e3 }, /kmax/],
    [{ pmax: 0 }, /pmax/],
    [{ g: 1.5 }, /g must/],
    [{ rpg_byte_reset: -1 }, /rpg_byte_reset/],
    [{ rpg_threshold: 0 }, /rpg_threshold/],
  ];
  it.each(bad)("%o is refused", (change, message) => {
    expect(() => dcqcnFixedPoint({ ...DCQCN_PAPER, ...change }, 2)).toThrow(message);
  });
  it.each([0, -1, 1.5, Number.NaN])("%d flows are refused", (flows) => {
    expect(() => dcqcnFixedPoint(DCQCN_PAPER, flows)).toThrow(/flows/);
  });
});
