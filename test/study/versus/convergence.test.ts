import { describe, expect, it } from "vitest";
import type { Series } from "../../../src/result/result.js";
import type { Flow, Scenario } from "../../../src/scenario/types.js";
import { convergenceTime } from "../../../src/study/versus/convergence.js";

const kSamples = 1000;
const kMs = 1e6;

/** Convergence over 100 ms in steps of 0.1 ms; functions give each flow's rate by ms. */
function time(flows: Record<string, (ms: number) => number>, more: Partial<Flow> = {}) {
  const time_s = Array.from({ length: kSamples }, (_, i) => i * 1e-4);
  const scenario = {
    duration: 100 * kMs,
    flows: Object.keys(flows).map((id) => ({ id, to: "r", priority: 3, start: 10 * kMs, stop: 100 * kMs, ...more })),
  } as unknown as Scenario;
  const series: Series = {
    interval_s: 1e-4,
    time_s,
    flows: Object.fromEntries(
      Object.entries(flows).map(([id, of]) => [id, { goodput_bps: time_s.map((at) => of(at * 1e3)) }]),
    ),
    queues: {},
  };
  return convergenceTime(scenario, series);
}

describe("convergence", () => {
  it("is when the last flow has come within a quarter of its share, from the start on", () => {
    // Shares of 50 from 50 ms on, smoothed over 2 ms.
    const found = time({ a: (ms) => (ms < 50 ? 90 : 50), b: (ms) => (ms < 50 ? 10 : 50) });
    expect(found).toBeGreaterThan(0.0395);
    expect(found).toBeLessThan(0.041);
    expect(time({ a: () => 60, b: () => 40 })).toBeCloseTo(0, 3);
  });

  it("never happens where shares stay uneven, or become even at the very end", () => {
    expect(time({ a: () => 63, b: () => 37 })).toBe("never");
    expect(time({ a: (ms) => (ms < 95 ? 90 : 50), b: (ms) => (ms < 95 ? 10 : 50) })).toBe("never");
    expect(time({ a: () => 0, b: () => 0 })).toBe("never");
  });

  it("is not known of flows that end, have a rate, or share with nobody", () => {
    const even = { a: () => 50, b: () => 50 };
    expect(time(even, { bytes: 1000 })).toBeUndefined();
    expect(time(even, { rate: 1e9 })).toBeUndefined();
    expect(time({ a: () => 50 })).toBeUndefined();
  });
});
