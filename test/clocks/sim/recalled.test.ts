/** Message graphs of which phases come from memory: beside the same by packets, and what is told and left out. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import { parseScenario } from "../../../src/scenario/scenario.js";
import { sliced } from "./sliced.js";

const validate = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync("schema/result.schema.json", "utf8")));

const scenarioOf = (more: object = {}) =>
  parseScenario({
    topology: { kind: "star", hosts: 8, link: { rate: "100Gbps", delay: "1us", mtu: 9000 } },
    host: { path_mtu: 4096 },
    switch: { buffer: { total: "16MB", headroom: "auto" }, pfc: { priorities: [3] } },
    congestion: { algorithm: "dcqcn" },
    transport: { type: "rc" },
    traffic: [{ pattern: "collective", collective: "allreduce", algorithm: "ring", size: "8MB", iterations: 5 }],
    ...more,
  }).scenario;
const run = (scenario = scenarioOf(), more: object = {}, addon?: Parameters<typeof runSimulation>[2]) =>
  runSimulation(scenario, { signal: new AbortController().signal, ...more }, addon);
const kForward = { fastForward: 0.03 };

describe("a message graph by memory of its phases", () => {
  it("has the times of packets, and all messages, but nothing that devices have counted", async () => {
    const exact = await run();
    const { result, flowTable, performance, series } = await run(scenarioOf(), kForward);
    const times = [exact.result, result].map(({ graphs }) => graphs?.[0]?.time_s as number) as [number, number];
    expect(Math.abs(times[1] / times[0] - 1)).toBeLessThan(0.002);
    expect(performance.hops).toBeLessThan(exact.performance.hops / 3);
    expect(result.fidelity).toMatchObject({ valid: true });
    expect(result.graphs?.[0]).toMatchObject({ ended: 1160, critical: { messages: 70, ranks: 8 } });
    expect(result.fct).toMatchObject({ count: 560, incomplete: 0 });
    expect(flowTable.length).toBe(exact.flowTable.length);
    expect(result.fast_forward_graphs).toMatchObject({ bound: 0.03, messages: 560, stretches: 3, left: 0 });
    expect(result.fast_forward_graphs?.skipped).toBeGreaterThan(0.6);
    expect(result.fast_forward_graphs?.errors?.mean).toBeLessThan(0.01);
    // Goodput is of all bytes, also of those that no device has seen.
    expect(result.totals.goodput_bps / exact.result.totals.goodput_bps).toBeCloseTo(1, 2);
    expect(result).toMatchObject({ flows: [], flows_omitted: 8, switches: {}, nics: {} });
    for (const gone of ["links", "frames", "transport", "fast_forward"]) expect(result).not.toHaveProperty(gone);
    expect(JSON.stringify(series)).not.toContain("sw");
    expect(validate(JSON.parse(JSON.stringify(result))), JSON.stringify(validate.errors)).toBe(true);
  });

  it("is the same for any number of threads, and however the run is cut", async () => {
    const told = ({ result, flowTable }: Awaited<ReturnType<typeof run>>) => JSON.stringify([result, flowTable]);
    const alone = told(await run(scenarioOf(), kForward));
    for (const threads of [2, 5]) expect(told(await run(scenarioOf(), { ...kForward, threads }))).toBe(alone);
    const verifying = { ...kForward, verify: 0.2 };
    const verified = told(await run(scenarioOf(), verifying));
    expect(verified).not.toBe(alone);
    for (const threads of [2, 5]) expect(told(await run(scenarioOf(), { ...verifying, threads }))).toBe(verified);
    expect(told(await run(scenarioOf(), kForward, sliced(997)))).toBe(alone);
  });

  it("simulates the share of what is known that is asked for, and compares phases and messages", async () => {
    const usual = (await run(scenarioOf(), kForward)).result.fast_forward_graphs;
    expect(usual?.verified).not.toHaveProperty("asked");
    for (const verify of [0.001, 0.1, 0.5]) {
      const { result } = await run(scenarioOf(), { ...kForward, verify });
      const recalled = result.fast_forward_graphs;
      expect(recalled?.verified.asked).toBe(verify);
      expect(recalled?.verified.reached).toBeGreaterThanOrEqual(verify);
      // A stretch more than it takes, of 29 of 560 messages, and the three that there always are.
      expect(recalled?.verified.reached).toBeLessThan(verify + 0.25);
      expect(recalled?.stretches).toBeGreaterThanOrEqual(3);
      expect(recalled?.errors?.messages.mean).toBeLessThan(0.01);
      expect(recalled?.errors?.messages.p99).toBeLessThan(0.05);
      expect(result.fidelity).toMatchObject({ valid: true });
    }
    const half = (await run(scenarioOf(), { ...kForward, verify: 0.5 })).result.fast_forward_graphs;
    expect(half?.judged_messages).toBeGreaterThan(2 * (usual?.judged_messages ?? 0));
  });

  it("is simulated whole, and says why, where something happens to the network", async () => {
    const failures = [{ at: "1ms", link: "h1 -- sw", until: "1.1ms" }];
    const { result } = await run(scenarioOf({ failures }), kForward);
    expect(result.fast_forward_graphs).toMatchObject({
      skipped: 0,
      reason: "something happens to the network during the run",
    });
    expect(Object.keys(result.nics)).toHaveLength(8);
    expect(result.frames).toMatchObject({ missing: 0 });
  });
});
