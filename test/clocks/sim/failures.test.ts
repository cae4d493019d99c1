/** Links and switches that fail in the course of a simulation, with every load balancing. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimOptions } from "../../../src/clocks/sim/types.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import { renderTable } from "../../../src/result/report/table.js";
import { Fabric } from "../../../src/scenario/fabric.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { FakeSimulation } from "./fake_simulation.js";
import { fatTree } from "./scenarios.js";
import { sliced } from "./sliced.js";

skipWhere(nativeObstacle());

const kBalancing = ["ecmp", "spray", "flowlet", "adaptive"] as const;

const run = (scenario: Scenario, options: Partial<SimOptions> = {}, addon?: SimulationAddon) =>
  runSimulation(scenario, { signal: new AbortController().signal, ...options }, addon);

/** Every host sends to one other. Lost packets are sent again after 131 us at the latest. */
const permutation = (failures: object[], overrides: Record<string, unknown> = {}) =>
  fatTree({
    duration: "600us",
    transport: { type: "rc", recovery: "selective-repeat", reordering: 200, timeout: 5 },
    traffic: [{ pattern: "permutation", message: "20KB" }],
    probes: { interval: "10us" },
    failures,
    ...overrides,
  });
const kLink = { link: "a1_1 -- c1", at: "200us", until: "400us", reroute: "50us" };

describe("a link that fails", () => {
  it("is taken away and given back at its times, and routes follow, between two runs", async () => {
    const fake = new FakeSimulation({ step: 300_000 });
    const scenario = permutation([kLink, { switch: "c2", at: "250us", reroute: "50us" }]);
    await run(scenario, {}, fake.addon);
    const link = (from: string, to: string) => scenario.links.findIndex((one) => one.from === from && one.to === to);
    const own = link("a1_1", "c1");
    const cores = ["a1_1", "a2_1", "a3_1", "a4_1"].map((name) => link(name, "c2"));
    expect(fake.links).toEqual([
      { at: 200_000, link: own, up: false },
      ...cores.map((one) => ({ at: 250_000, link: one, up: false })),
      { at: 400_000, link: own, up: true },
    ]);
    const times = [250_000, 300_000, 450_000];
    expect(fake.rerouted.map(({ at, index }) => [at, index])).toEqual(
      times.flatMap((at) => scenario.switches.map((_, index) => [at, index])),
    );
    const fabric = new Fabric(scenario);
    const core = fabric.device("c2");
    const last = fake.rerouted.filter(({ at, index }) => at === 450_000 && index === core);
    expect(last[0]?.routes.group_of_host).toEqual(new Uint16Array(16).fill(0xffff));
  });

  it.each(kBalancing)("loses frames there alone, all accounted for, and flows recover: %s", async (load_balancing) => {
    const { result, series } = await run(permutation([kLink], { switch: { load_balancing } }));
    expect(result.fidelity).toMatchObject({ valid: true, reasons: [] });
    expect(result.frames).toMatchObject({ missing: 0, impaired: 0 });
    const links = result.links ?? [];
    const hit = links.filter(({ link_down = 0 }) => link_down > 0);
    expect(hit.map(({ from, to }) => [from, to].sort().join())).toEqual(hit.map(() => "a1_1,c1"));
    expect(result.frames?.link_down).toBe(hit.reduce((sum, { link_down = 0 }) => sum + link_down, 0));
    expect(result.frames?.link_down).toBeGreaterThan(20);
    const { sent = 0, received = 0, dropped = 0, link_down = 0, in_network = 0 } = result.frames ?? {};
    expect(sent).toBe(received + dropped + link_down + in_network);
    // Lost packets are sent again: every flow gets something through in the last 100 us.
    for (const { goodput_bps = [] } of Object.values(series.flows)) {
      expect(goodput_bps.slice(-10).reduce((sum, rate) => sum + rate, 0)).toBeGreaterThan(0);
    }
    expect(result.events?.map(({ at_s, what }) => `${Math.round(at_s * 1e6)} ${what}`)).toEqual([
      "200 link a1_1 -- c1 fails",
      "250 routes without link a1_1 -- c1",
      "400 link a1_1 -- c1 is there again",
      "450 routes with link a1_1 -- c1",
    ]);
    expect(renderTable(result)).toContain("at 250 us: routes without link a1_1 -- c1");
  });

  it.each(kBalancing)(
    "is the same run for any number of threads, and however it is cut: %s",
    async (load_balancing) => {
      const scenario = () =>
        permutation([kLink, { switch: "e4_2", at: "300us", until: "350us", reroute: "1us" }], {
          switch: { load_balancing },
        });
      const bytes = async (options: Partial<SimOptions>, addon?: SimulationAddon) => {
        const { result, series, flowTable } = await run(scenario(), options, addon);
        return JSON.stringify({ result, series, flowTable });
      };
      const first = await bytes({ threads: 1 });
      for (const threads of [2, 3, 7]) expect(await bytes({ threads })).toBe(first);
      expect(await bytes({}, sliced(371))).toBe(first);
    },
  );

  it("has no say in a run that ends before, and none is told of it", async () => {
    const until = 150_000;
    const { result, series } = await run(permutation([kLink]), { until });
    const whole = await run(permutation([]), { until });
    expect(JSON.stringify(series)).toBe(JSON.stringify(whole.series));
    expect(result.events).toEqual([]);
    expect(result.frames).toEqual({ ...whole.result.frames, link_down: 0 });
    expect(whole.result.frames).not.toHaveProperty("link_down");
    expect(whole.result).not.toHaveProperty("events");
  });
});

it("of a host that is cut off nothing gets through: it is lost on the way, then there is no route", async () => {
  const topology = { kind: "star", hosts: 3, link: { rate: "10Gbps", delay: "1us" } };
  const traffic = [{ from: "h1", to: "h3" }];
  const scenario = fatTree({
    topology,
    traffic,
    duration: "300us",
    transport: { type: "stream" },
    failures: [{ link: "h3 -- sw", at: "100us", reroute: "100us" }],
  });
  const { result } = await run(scenario);
  expect(result.fidelity.valid).toBe(true);
  // 884.8 ns a frame, 100 us each.
  expect(result.frames?.link_down).toBeGreaterThanOrEqual(112);
  expect(result.frames?.link_down).toBeLessThanOrEqual(115);
  expect(result.switches.sw?.drops.no_route).toBeGreaterThanOrEqual(112);
  expect(result.switches.sw?.drops.no_route).toBeLessThanOrEqual(113);
  expect(result.frames?.missing).toBe(0);
});

it("a switch that fails takes all its links with it, and the others carry on", async () => {
  const topology = { kind: "leaf-spine", leaves: 2, spines: 2, hosts: 2, link: { rate: "10Gbps", delay: "1us" } };
  const scenario = permutation([{ switch: "spine1", at: "200us", reroute: "20us" }], {
    topology,
    duration: "1ms",
    switch: { load_balancing: "spray" },
    traffic: [
      { from: "h1-1", to: "h2-1" },
      { from: "h2-2", to: "h1-2" },
    ],
  });
  const { result, series } = await run(scenario);
  expect(result.fidelity.valid).toBe(true);
  const hit = (result.links ?? []).filter(({ link_down = 0 }) => link_down > 0);
  for (const { from, to } of hit) expect([from, to]).toContain("spine1");
  expect(hit.filter(({ to }) => to === "spine1")).toHaveLength(2);
  for (const { goodput_bps = [] } of Object.values(series.flows)) {
    expect(goodput_bps.slice(-10).reduce((sum, rate) => sum + rate, 0)).toBeGreaterThan(0);
  }
});
