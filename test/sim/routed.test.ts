/** Fabrics whose switches route: the same paths, marks and times as of those that bridge, to the last sample. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseScenarioText } from "../../src/scenario/scenario.js";
import { runSimulation } from "../../src/sim/run.js";
import { nativeObstacle, skipWhere } from "../obstacles.js";

skipWhere(nativeObstacle());

const run = async (file: string, set: readonly string[], threads = 1) => {
  const path = `examples/${file}`;
  const { scenario } = parseScenarioText(readFileSync(path, "utf8"), path, { set: [...set] });
  const { result, series } = await runSimulation(scenario, { signal: new AbortController().signal, threads });
  return { result, told: JSON.stringify({ flows: result.flows, queues: result.switches, series }) };
};

describe("a fabric that routes", () => {
  it.each([
    ["leaf-spine.yaml", ["duration=20ms", "warmup=5ms"]],
    [
      "fat-tree-failure.yaml",
      ["duration=3ms", "warmup=0s", "failures=[{ link: a1_1 -- c1, at: 1ms, until: 2ms, reroute: 200us }]"],
    ],
    ["rtt-incast.yaml", ["duration=20ms", "warmup=5ms"]],
  ])("%s is as if it bridged, on one thread and on two", async (file, set) => {
    const bridged = await run(file, set);
    const routed = await run(file, [...set, "switch.forwarding=routed"]);
    expect(routed.told).toBe(bridged.told);
    expect((await run(file, [...set, "switch.forwarding=routed"], 2)).told).toBe(bridged.told);
    expect(routed.result.totals.goodput_bps).toBeGreaterThan(0);
  });
});
