/** Thresholds of section 4 of the DCQCN paper, headroom by its terms, and recommendations of marking and timers. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Findings } from "../../src/base/findings.js";
import { isDcqcn } from "../../src/congestion/algorithms.js";
import { checkCongestion, congestionSchema, resolveCongestion } from "../../src/congestion/section.js";
import { planEcn } from "../../src/models/buffers/ecn.js";
import { type BufferPlan, type BufferPlanInput, planBuffers } from "../../src/models/buffers/plan.js";
import { SWITCH_PROFILES } from "../../src/models/buffers/profiles.js";
import { headroomFor, kResponseQuanta } from "../../src/scenario/headroom.js";
import { parseScenario } from "../../src/scenario/scenario.js";
import { ecnThresholdBound, pfcThreshold, pfcThresholdAlone, sharedBytes } from "../../src/scenario/thresholds.js";

const kPaper: BufferPlanInput = { ports: 32, priorities: 8, buffer: 12e6, headroom: 22_400, beta: 8, kmin: 5_000 };

function plan(changes: Partial<BufferPlanInput> = {}): BufferPlan {
  const found = planBuffers({ ...kPaper, ...changes });
  if (found === undefined) throw new Error("the buffer does not hold the headroom");
  return found;
}

describe("section 4 of the paper", () => {
  const found = plan();

  it("has 24.47 and 21.75 KB, cut to two digits", () => {
    expect(found.t_pfc_static_bytes).toBe((12e6 - 8 * 32 * 22_400) / (8 * 32));
    expect(found.t_pfc_static_bytes).toBe(24_475);
    expect(found.t_ecn_dynamic_bytes).toBe(21_755.56);
    expect([found.t_pfc_static_bytes, found.t_ecn_dynamic_bytes].map((bytes) => Math.trunc(bytes / 10) / 100)).toEqual([
      24.47, 21.75,
    ]);
  });

  it("has both rounded as well, if 22.4 KB stands for 22401 to 22409 bytes", () => {
    const printed = (headroom: number) => {
      const { t_pfc_static_bytes, t_ecn_dynamic_bytes } = plan({ headroom });
      return [t_pfc_static_bytes, t_ecn_dynamic_bytes].map((bytes) => (bytes / 1000).toFixed(2)).join();
    };
    expect([22_401, 22_409].map(printed)).toEqual(["24.47,21.75", "24.47,21.75"]);
    expect([22_400, 22_412].map(printed)).not.toContain("24.47,21.75");
  });

  it("has 0.765 KB where 0.85 is printed: a threshold of 24.47 KB over 32 ports", () => {
    expect(found.t_ecn_static_bytes).toBe(764.84);
    expect(found.t_ecn_static_bytes).toBeCloseTo(24_475 / 32, 2);
  });

  it("has ECN before PFC at 5 KB with dynamic thresholds, and not with static ones", () => {
    expect(found).toMatchObject({ ecn_before_pfc: true, ecn_before_pfc_static: false });
    expect(plan({ kmin: 21_755 }).ecn_before_pfc).toBe(true);
    expect(plan({ kmin: 21_756 }).ecn_before_pfc).toBe(false);
    expect(plan({ kmin: 764 }).ecn_before_pfc_static).toBe(true);
    expect(plan({ kmin: 765 }).ecn_before_pfc_static).toBe(false);
  });

  it("has 22.4 KB from the terms with 173 m of cable", () => {
    const { bytes, terms } = headroomFor({ rate: 40e9, mtu: 1500, delay: 173 * 5 });
    expect(bytes).toBe(22_402);
    expect(terms.map(({ term, bytes: part }) => [term, part])).toEqual([
      ["local frame", 1522],
      ["pfc frame", 84],
      ["cable", 8650],
      ["interface", 3072],
      ["response", 7552],
      ["peer frame", 1522],
    ]);
  });

  it("is what the profile trident2 holds", () => {
    const { buffer, ports, headroom } = SWITCH_PROFILES.trident2;
    expect(plan({ buffer, ports, headroom })).toEqual(found);
  });
});

/** The largest t_ECN, found by filling queues, for which the ingress is below t_PFC when all of them are at t_ECN. */
function searched({ ports, priorities, buffer, headroom, beta }: BufferPlanInput, q: number, e: number): number {
  const free = buffer - priorities * ports * (headroom as number);
  let [low, high] = [0, free];
  for (let i = 0; i < 200; ++i) {
    const t = (low + high) / 2;
    if (e * t < (beta * (free - q * t)) / priorities) low = t;
    else high = t;
  }
  return low;
}

const kSwitches = fc.record({
  ports: fc.integer({ min: 1, max: 256 }),
  priorities: fc.integer({ min: 1, max: 8 }),
  buffer: fc.integer({ min: 1e8, max: 1e9 }),
  headroom: fc.integer({ min: 0, max: 40_000 }),
  beta: fc.double({ min: 1 / 64, max: 128, noNaN: true }),
  kmin: fc.integer({ min: 0, max: 1e6 }),
});

describe("any switch", () => {
  it("has the bounds that a search finds", () => {
    fc.assert(
      fc.property(kSwitches, (input) => {
        const { ports, priorities } = input;
        const found = plan(input);
        const all = searched(input, ports * priorities, ports);
        expect(Math.abs(found.t_ecn_dynamic_bytes - all)).toBeLessThan(0.02);
        const one = searched(input, ports, ports);
        expect(Math.abs(found.t_ecn_dynamic_one_priority_bytes - one)).toBeLessThan(0.02);
      }),
      { seed: 1 },
    );
  });

  it("is monotonic in buffer, headroom, ports, priorities and beta", () => {
    const bounds = ({
      t_pfc_static_bytes,
      t_ecn_static_bytes,
      t_ecn_dynamic_bytes,
      t_pfc_dynamic_alone_bytes,
    }: BufferPlan) => [t_pfc_static_bytes, t_ecn_static_bytes, t_ecn_dynamic_bytes, t_pfc_dynamic_alone_bytes] as const;
    fc.assert(
      fc.property(kSwitches, (input) => {
        const before = bounds(plan(input));
        const larger = bounds(plan({ ...input, buffer: input.buffer + 1e6, beta: input.beta * 1.5 }));
        larger.forEach((bound, i) => void expect(bound).toBeGreaterThanOrEqual(before[i] ?? 0));
        for (const change of [
          { ports: input.ports + 1 },
          { headroom: (input.headroom as number) + 100 },
          { priorities: input.priorities + 1 },
        ]) {
          bounds(plan({ ...input, ...change })).forEach((bound, i) => {
            expect(bound).toBeLessThanOrEqual(before[i] ?? 0);
          });
        }
      }),
      { seed: 2 },
    );
  });

  it("pauses an ingress alone where its fill meets the threshold", () => {
    fc.assert(
      fc.property(kSwitches, ({ ports, buffer: total, headroom, priorities, beta }) => {
        const buffer = { total, headroom, priorities, beta, mode: "dynamic" as const, threshold: 0 };
        const alone = pfcThresholdAlone(buffer, ports);
        expect(pfcThreshold(buffer, ports, alone)).toBeGreaterThanOrEqual(alone);
        expect(pfcThreshold(buffer, ports, alone + 1)).toBeLessThanOrEqual(alone + 1);
        expect(alone).toBeLessThan(sharedBytes(buffer, ports));
      }),
      { seed: 3 },
    );
  });

  it("has no plan without memory beyond the headroom", () => {
    expect(planBuffers({ ...kPaper, buffer: 8 * 32 * 22_400 })).toBeUndefined();
    expect(planBuffers({ ...kPaper, buffer: 8 * 32 * 22_400 + 1 })).toBeDefined();
  });

  it("is judged as `weir validate` judges it", () => {
    const warned = (kmin: number) =>
      parseScenario({
        topology: { kind: "star", hosts: 32 },
        switch: { ecn: { kmin } },
      }).warnings.some((warning) => warning.includes("PFC may act before ECN"));
    expect([21_755, 21_756].map(warned)).toEqual([false, true]);
    const { scenario } = parseScenario({ topology: { kind: "star", hosts: 32 } });
    const [sw] = scenario.switches;
    expect(sw?.buffer.threshold).toBe(plan().t_pfc_static_bytes);
    expect(sw && ecnThresholdBound(sw.buffer, 32)).toBeCloseTo(plan().t_ecn_dynamic_bytes, 2);
  });
});

describe("t_flight", () => {
  // MTU 9216 as frame, 5 ns/m, no interface delay: two frames, 84 bytes, cable there and back, quanta x 64.
  it.each([
    [10e9, [22_866, 23_304, 26_554]],
    [25e9, [23_792, 24_886, 33_011]],
    [100e9, [44_357, 48_732, 81_232]],
    [200e9, [48_758, 57_508, 122_508]],
    [400e9, [78_936, 96_436, 226_436]],
  ])("at %d bit/s over 5, 40 and 300 m", (rate, expected) => {
    const bytes = [5, 40, 300].map(
      (metres) => headroomFor({ rate, mtu: 9216 - 22, delay: 5 * metres, interfaceDelay: 0 }).bytes,
    );
    // Each way of the cable is rounded up.
    bytes.forEach((found, i) => void expect(Math.abs(found - (expected[i] ?? 0))).toBeLessThanOrEqual(2));
  });

  it("is the sum of its terms, and grows with each of them", () => {
    const input = fc.record({
      rate: fc.integer({ min: 1e8, max: 8e11 }),
      mtu: fc.integer({ min: 576, max: 16_000 }),
      delay: fc.integer({ min: 0, max: 1e6 }),
      response: fc.integer({ min: 0, max: 1e6 }),
      interfaceDelay: fc.integer({ min: 0, max: 1e4 }),
    });
    fc.assert(
      fc.property(input, fc.boolean(), (given, trigger) => {
        const { bytes, terms } = headroomFor({ ...given, trigger });
        expect(terms.reduce((sum, term) => sum + term.bytes, 0)).toBe(bytes);
        for (const name of ["rate", "mtu", "delay", "response", "interfaceDelay"] as const) {
          const more = headroomFor({ ...given, trigger, [name]: given[name] * 2 + 1 });
          expect(more.bytes).toBeGreaterThanOrEqual(bytes);
        }
        expect(headroomFor({ ...given, trigger: true }).bytes).toBeGreaterThan(headroomFor(given).bytes);
      }),
      { seed: 4 },
    );
  });

  it("takes the response of the next rate in the table", () => {
    const response = (rate: number) => headroomFor({ rate, mtu: 1500, delay: 0 }).terms[4]?.bytes;
    expect(kResponseQuanta.map(([rate]) => response(rate))).toEqual(kResponseQuanta.map(([, quanta]) => quanta * 64));
    expect(response(30e9)).toBe(118 * 64);
    expect(response(800e9)).toBe(905 * 64);
  });
});

describe("marking and timers", () => {
  const dcqcn = (parameters: object, rate: number) => {
    const congestion = resolveCongestion(congestionSchema.parse({ parameters }), rate, (file) => file, new Findings());
    if (!isDcqcn(congestion)) throw new Error("DCQCN is the default");
    return congestion;
  };
  const planned = (input: Parameters<typeof planEcn>[0]) => {
    const written = Object.entries(planEcn(input).parameters).map(([name, { value }]) => [name, value]);
    return dcqcn(Object.fromEntries(written), input.rate);
  };
  const resolved = (input: Parameters<typeof planEcn>[0]) => planned(input).parameters;

  it("are the paper's at 40 Gb/s and 50 us", () => {
    expect(planEcn({ rate: 40e9, rtt: 50_000, mtu: 1500, flows: 16 })).toMatchObject({
      bdp_bytes: 250_000,
      kmin_bytes: 5_000,
      kmax_bytes: 200_000,
      pmax: 0.01,
    });
    expect(resolved({ rate: 40e9, rtt: 50_000, mtu: 1500, flows: 16 })).toEqual(dcqcn({}, 40e9).parameters);
  });

  it("halve R_AI at 32:1, as the paper does", () => {
    expect(resolved({ rate: 40e9, rtt: 50_000, mtu: 1500, flows: 32 }).rpg_ai_rate).toBe(20e6);
    expect(resolved({ rate: 40e9, rtt: 50_000, mtu: 1500, flows: 2 }).rpg_ai_rate).toBe(40e6);
  });

  it("are written so that a scenario takes them without a warning", () => {
    const input = fc.record({
      rate: fc.integer({ min: 1e9, max: 8e11 }),
      rtt: fc.integer({ min: 1, max: 1e7 }),
      mtu: fc.integer({ min: 576, max: 9000 }),
      flows: fc.integer({ min: 1, max: 1000 }),
    });
    fc.assert(
      fc.property(input, (given) => {
        const { kmin_bytes, kmax_bytes, feedback_delay_ns } = planEcn(given);
        const found = new Findings();
        checkCongestion(planned(given), given.rate, found);
        expect([...found.problems, ...found.warnings]).toEqual([]);
        expect(resolved(given).rpg_time_reset).toBe(feedback_delay_ns + 5_000);
        expect(kmin_bytes).toBeGreaterThan(2 * given.mtu);
        expect(kmax_bytes).toBeGreaterThanOrEqual(4 * kmin_bytes);
        const slower = planEcn({ ...given, rtt: given.rtt * 2 });
        expect(slower.kmax_bytes).toBeGreaterThanOrEqual(kmax_bytes);
        expect(planEcn({ ...given, rate: given.rate * 2 }).kmin_bytes).toBeGreaterThanOrEqual(kmin_bytes);
      }),
      { seed: 5 },
    );
  });

  it("lists others with what they say of 100 Gb/s and 20 us", () => {
    const { alternatives } = planEcn({ rate: 100e9, rtt: 20_000, mtu: 1500, flows: 16 });
    expect(alternatives.map(({ kmax_bytes }) => kmax_bytes)).toEqual([500_000, 750_000, 1_600_000, 2_097_152]);
  });
});
