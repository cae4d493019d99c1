/** Linear stability: the criterion on systems that are known, and its verdict beside runs of the equations themselves. */
import { describe, expect, it } from "vitest";
import { packetFixedPoint } from "../../src/models/dcqcn/fixed_point.js";
import { DCQCN_PAPER, type DcqcnModelParameters, dcqcnStability } from "../../src/models/dcqcn/index.js";
import { argument, growth, linearise, loop, magnitude, zerosBeyond } from "../../src/models/dcqcn/linear.js";
import { inPackets } from "../../src/models/dcqcn/parameters.js";
import { FluidSystem } from "../../src/models/dcqcn/system.js";
import { DelaySolver } from "../../src/models/dde/index.js";

describe("criterion", () => {
  const delayed = (a: number) => ({ now: [[0]], lagged: [[-a]], delay: 1 });

  it("knows x' = -a x(t - 1): stable up to a = pi/2, with Lambert's W(-a) for its rightmost zero", () => {
    expect(growth(delayed(1))).toBeCloseTo(-0.3181315, 2);
    expect(growth(delayed(1 / Math.E))).toBeCloseTo(-1, 1);
    expect(zerosBeyond(delayed(Math.PI / 2 - 1e-3), 0)).toBe(0);
    expect(zerosBeyond(delayed(Math.PI / 2 + 1e-3), 0)).toBe(2);
    // W_k(-20): two pairs beyond 0 up to 5 pi/2 < 20 < 9 pi/2 + 2 pi.
    expect(zerosBeyond(delayed(10), 0)).toBe(4);
  });

  it("knows eigenvalues where nothing is late", () => {
    const none = [
      [0, 0],
      [0, 0],
    ];
    const rotation = { now: [[0.3, 2], [-2, 0.3]], lagged: none, delay: 1 }; // biome-ignore format: a matrix
    expect(growth(rotation)).toBeCloseTo(0.3, 3);
    expect(zerosBeyond(rotation, 0)).toBe(2);
    expect(zerosBeyond({ ...rotation, now: [[-1, 0], [0, 2]] }, 0)).toBe(1); // biome-ignore format: a matrix
  });
});

/** Growth of deviations in the equations themselves, 1/s: the largest |q - q*| of a later stretch beside that of an earlier one. */
function measuredGrowth(parameters: DcqcnModelParameters, flows: number): number {
  const packets = inPackets(parameters);
  const { alpha, rate, target, queue } = packetFixedPoint(packets, flows);
  const flow = { count: flows, start: 0, stop: Number.POSITIVE_INFINITY, rate: 0, lineRate: 1e12, alpha: 1 };
  const system = new FluidSystem(packets, [flow], parameters.packet);
  system.activateAll();
  const q = queue as number;
  const rest = Float64Array.of(q, rate);
  const problem = { ...system.problem(), events: [], before: (_: number, past: Float64Array) => past.set(rest) };
  const solver = new DelaySolver(problem, Float64Array.of(q * (1 + 1e-4), rate, target, alpha), { tolerance: 1e-11 });
  const largest = (until: number) => {
    let most = 0;
    solver.advance(until, (step) => {
      for (const part of [0.25, 0.5, 0.75, 1]) {
        most = Math.max(most, Math.abs(step.value(0, step.begin + part * (step.end - step.begin)) - q));
      }
    });
    return most;
  };
  largest(0.02);
  const early = largest(0.03);
  largest(0.06);
  return Math.log(largest(0.07) / early) / 0.04;
}

describe("verdict beside the equations", () => {
  const cases: [Partial<DcqcnModelParameters>, number, boolean][] = [
    [{}, 8, true],
    [{ delay: 85_000 }, 2, true],
    [{ delay: 85_000 }, 8, false],
    [{ delay: 100_000 }, 2, false],
    [{ delay: 100_000 }, 4, false],
    [{ g: 1 / 16 }, 4, false],
    [{ rpg_ai_rate: 160e6 }, 4, false],
  ];
  it.each(cases)("%o, %i flows: stable is %s", (change, flows, stable) => {
    const parameters = { ...DCQCN_PAPER, ...change };
    const found = dcqcnStability(parameters, flows);
    expect(found.stable).toBe(stable);
    expect((found.phase_margin_deg as number) > 0).toBe(stable);
    const growth_per_s = found.growth_per_s as number;
    expect(growth_per_s < 0).toBe(stable);
    expect(Math.abs(measuredGrowth(parameters, flows) - growth_per_s)).toBeLessThan(4 + 0.04 * Math.abs(growth_per_s));
  });
});

describe("phase margin", () => {
  const margin = (change: Partial<DcqcnModelParameters>, flows: number) =>
    dcqcnStability({ ...DCQCN_PAPER, ...change }, flows).phase_margin_deg as number;

  it("is 180 degrees + arg L where |L| is 1", () => {
    const { phase_margin_deg, crossover_rad_s } = dcqcnStability(DCQCN_PAPER, 4);
    const linear = linearise(inPackets(DCQCN_PAPER), 4);
    const at = linear && loop(linear, crossover_rad_s as number);
    expect(at && magnitude(at)).toBeCloseTo(1, 9);
    expect(at && 180 + (argument(at) * 180) / Math.PI).toBeCloseTo(phase_margin_deg as number, 9);
  });

  it("falls with the delay, and grows with a smaller R_AI, a smaller g and a flatter line of marks", () => {
    const delays = [4e3, 25e3, 50e3, 100e3].map((delay) => margin({ delay }, 4));
    expect(delays).toEqual([...delays].sort((a, b) => b - a));
    expect(margin({ rpg_ai_rate: 10e6 }, 4)).toBeGreaterThan(margin({}, 4));
    expect(margin({ g: 1 / 16 }, 4)).toBeLessThan(margin({}, 4));
    expect(margin({ kmax: 1e6 }, 4)).toBeGreaterThan(margin({}, 4));
  });

  it("is not monotonic in N: at 85 us 2 and 64 flows are stable, 10 are not, at 4 us all are (CoNEXT 2016, section 3.2)", () => {
    // The line of table 14 carried on to 10%, since 64 flows need more than 1%.
    const line = { kmax: 5_000 + 10 * 195_000, pmax: 0.1 };
    const stable = (delay: number) => [2, 10, 64].map((flows) => margin({ ...line, delay }, flows) > 0);
    expect(stable(85_000)).toEqual([true, false, true]);
    expect(stable(4_000)).toEqual([true, true, true]);
  });

  it("is none where no queue has the fixed point's p", () => {
    expect(dcqcnStability(DCQCN_PAPER, 16)).toMatchObject({ stable: null, phase_margin_deg: null, growth_per_s: null });
  });
});

it("flows become equal as fast as the inner system says", () => {
  const { growth_between_flows_per_s } = dcqcnStability(DCQCN_PAPER, 2);
  expect(growth_between_flows_per_s).toBeCloseTo(-64.89, 1);
});
