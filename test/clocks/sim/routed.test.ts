/** Fabrics whose switches route: the same paths, marks and times as of those that bridge, to the last sample. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { parseScenarioText } from "../../../src/scenario/scenario.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";

skipWhere(nativeObstacle());

/** Four hosts behind one switch send to one behind another, where the congestion is: CNMs pass both. */
const kIncast = `
duration: 60ms
warmup: 20ms
topology:
  link: { rate: 10Gbps, delay: 1us }
  hosts: [h1, h2, h3, h4, r]
  switches: [near, far]
  links: [h1 -- near, h2 -- near, h3 -- near, h4 -- near, r -- far, { from: near, to: far, rate: 40Gbps }]
switch: { ecn: { enabled: false }, qcn: { enabled: true, cpMinHeaderOctets: 42 } }
host: { qcn: { cn_tag: false } }
congestion: { algorithm: qcn }
traffic: [{ from: [h1, h2, h3, h4], to: r }]
`;

const run = async (file: string, set: readonly string[], threads = 1) => {
  const path = `examples/${file}`;
  return runText(readFileSync(path, "utf8"), set, threads, path);
};
const runText = async (text: string, set: readonly string[], threads = 1, path = "incast.yaml") => {
  const { scenario } = parseScenarioText(text, path, { set: [...set] });
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

  it("has QCN whose CNMs go by IP hold the queue where those of bridges do", async () => {
    const bridged = (await runText(kIncast, [])).result;
    const set = ["switch.forwarding=routed", "switch.qcn.notification=ip"];
    const routed = (await runText(kIncast, set)).result;
    for (const result of [bridged, routed]) {
      expect(result.totals.goodput_bps).toBeGreaterThan(0.98 * (result.totals.goodput_limit_bps as number));
      const told = Object.values(result.nics).reduce((sum, nic) => sum + (nic.rp_cnm_handled ?? 0), 0);
      expect(told).toBeGreaterThan(50);
      expect(told).toBe(result.switches.far?.cnm_sent);
      expect(result.frames).toMatchObject({ missing: 0, dropped: 0 });
    }
    const [there, here] = [bridged, routed].map(({ switches }) => switches.far?.queues.r?.["3"]?.mean as number);
    expect(there).toBeGreaterThan(20_000);
    expect(Math.abs((here as number) / (there as number) - 1)).toBeLessThan(0.1);
    expect((await runText(kIncast, set, 2)).told).toBe((await runText(kIncast, set)).told);
  });
});
