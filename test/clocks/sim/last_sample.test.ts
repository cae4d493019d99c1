/** Samples at the end of a run are of the network under traffic, not of one that has just been stopped. */
import { describe, expect, it } from "vitest";
import { runModel } from "../../../src/clocks/model.js";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { Series } from "../../../src/result/result.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { incast } from "./scenarios.js";

const signal = new AbortController().signal;
const kTimes = { duration: "2ms", warmup: "500us" };

function lastOf({ flows }: Series, name: "rate_bps" | "target_rate_bps" | "cwnd_packets" | "goodput_bps"): number[] {
  return Object.values(flows).map((flow) => flow[name]?.at(-1) ?? 0);
}

describe("the last sample", () => {
  skipWhere(nativeObstacle());

  it.each([
    ["DCQCN", {}, ["rate_bps", "target_rate_bps", "goodput_bps"]],
    ["no congestion control", { congestion: { algorithm: "none" } }, ["goodput_bps"]],
    ["QCN", { congestion: { algorithm: "qcn" } }, ["rate_bps", "goodput_bps"]],
    ["DCTCP", { congestion: { algorithm: "dctcp" }, transport: { type: "rc" } }, ["cwnd_packets", "goodput_bps"]],
    ["TIMELY", { congestion: { algorithm: "timely" }, transport: { type: "rc" } }, ["rate_bps", "goodput_bps"]],
  ] as const)("of a simulation under %s is of flows that send", async (_, more, names) => {
    const scenario = incast({ ...kTimes, ...more });
    const { series } = await runSimulation(scenario, { signal });
    expect(series.time_s.at(-1)).toBeCloseTo(scenario.duration / 1e9, 9);
    for (const name of names) {
      expect(Math.min(...lastOf(series, name)), name).toBeGreaterThan(0);
    }
  });

  it("of a flow that is over has no rate", async () => {
    const traffic = [{ id: "over", from: "a", to: "c", bytes: "10KB" }];
    const { series } = await runSimulation(incast({ ...kTimes, traffic }), { signal });
    expect(lastOf(series, "rate_bps")).toEqual([0]);
  });
});

it("the last sample of the equations is of flows that send", async () => {
  const { series } = await runModel(incast({ duration: "5ms", warmup: "1ms" }), { signal });
  expect(Math.min(...lastOf(series, "rate_bps"))).toBeGreaterThan(0);
});
