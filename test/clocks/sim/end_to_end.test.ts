/** Whole simulations on the native core: what they say, and that nothing but scenario and seed changes it. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { writeOutcome } from "../../../src/clocks/files.js";
import { composeSimulation } from "../../../src/clocks/sim/compose.js";
import { phaseEffect } from "../../../src/clocks/sim/phase_effect.js";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimOptions } from "../../../src/clocks/sim/types.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import { renderTable } from "../../../src/result/report/table.js";
import { Fabric } from "../../../src/scenario/fabric.js";
import type { Scenario } from "../../../src/scenario/types.js";
import { star } from "../../fixtures/networks.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { chain, fatTree, incast } from "./scenarios.js";
import { sliced } from "./sliced.js";

skipWhere(nativeObstacle());

const folder = mkdtempSync(join(tmpdir(), "weir-sim-"));
afterAll(() => rmSync(folder, { recursive: true }));

const run = (scenario: Scenario, options: Partial<SimOptions> = {}, addon?: SimulationAddon) =>
  runSimulation(scenario, { signal: new AbortController().signal, ...options }, addon);

/** Results that must be the same if scenario and seed are, as one text. */
async function bytes(scenario: Scenario, options: Partial<SimOptions> = {}, addon?: SimulationAddon) {
  const { result, series, flowTable } = await run(scenario, options, addon);
  return JSON.stringify({ result, series, flowTable });
}

describe("queues of a result", () => {
  const marked = { switch: { ecn: { kmin: "2KB", kmax: "20KB", pmax: "10%" } }, traffic: [{ from: "a", to: "b" }] };

  it("are all that held anything, as on the wire: also those on the way, where the marks are made", async () => {
    const { result } = await run(chain(marked));
    expect(result.switches.s?.ecn_marked).toBeGreaterThan(0);
    expect(result.switches.s?.queues.t?.["3"]?.max).toBeGreaterThan(2000);
    expect(renderTable(result)).toMatch(/^s +t +3 +[\d.]+ /m);
  });

  it("are the probed ones in large networks", () => {
    const keeps = (k: number) => {
      const scenario = fatTree({ topology: { kind: "fat-tree", k, link: { rate: "100Gbps", delay: "1us" } } });
      return composeSimulation(scenario, new Fabric(scenario), []).all_distributions;
    };
    // 5/4 k^2 switches of k ports.
    expect([4, 6, 8].map(keeps)).toEqual([true, true, false]);
  });
});

it("a flow that gets nothing through has lost what it sent, and all that was dropped is somebody's loss", async () => {
  const drops = { congestion: { algorithm: "none" }, switch: { pfc: { enabled: false }, buffer: { total: "100KB" } } };
  const { result } = await run(incast(drops));
  const { dropped } = result.frames as { dropped: number };
  expect(dropped).toBeGreaterThan(100);
  expect(result.flows.reduce((sum, { lost }) => sum + lost, 0)).toBe(dropped);
  for (const { packets, received, under_way, lost } of result.flows)
    expect(packets).toBe((received as number) + (under_way as number) + lost);
  const [, loser] = result.flows;
  expect(loser?.lost).toBeGreaterThan(0.9 * (loser?.packets ?? 0));
});

it("equal senders that fall into step are told of, and jitter breaks it", async () => {
  const scenario = (jitter: string) =>
    incast({
      duration: "10ms",
      congestion: { algorithm: "none" },
      switch: { pfc: { enabled: false }, buffer: { total: "100KB" } },
      topology: star(["a", "b", "c"], { rate: "10Gbps", delay: "2us", impairment: { jitter } }),
    });
  const [even, shaken] = [scenario("0ns"), scenario("200ns")];
  const locked = (await run(even)).result;
  expect(locked.totals.jain).toBeLessThan(0.6);
  expect(phaseEffect(even, locked)).toMatch(/^x\/b lost 99\.\d% of its packets, x\/a \d\.\d%: .*impairment\.jitter=/);
  const fair = (await run(shaken)).result;
  expect(fair.totals.jain).toBeGreaterThan(0.98);
  expect(phaseEffect(shaken, fair)).toBeUndefined();
});

describe("a 2:1 incast", () => {
  const topology = star(["a", "b", "c"]);
  const scenario = () => incast({ duration: "60ms", warmup: "30ms", topology });

  it("at 40 Gb/s is fair, fills the link, and loses nothing", async () => {
    const { result, series } = await run(scenario());
    const limit = result.totals.goodput_limit_bps as number;
    expect(result.totals.goodput_bps).toBeLessThan(limit);
    expect(result.totals.goodput_bps).toBeGreaterThan(0.9 * limit);
    expect(result.totals.jain).toBeGreaterThan(0.97);
    expect(result.flows.map(({ lost }) => lost)).toEqual([0, 0]);
    expect(result.frames).toMatchObject({ dropped: 0, impaired: 0, missing: 0 });
    expect(result.fidelity).toMatchObject({ valid: true, reasons: [] });
    const bottleneck = result.links?.find(({ from, to }) => from === "sw" && to === "c");
    expect(bottleneck?.utilisation).toBeGreaterThan(0.9);
    expect(bottleneck?.utilisation).toBeLessThan(1.001);
    expect(result.nics.c?.np_cnp_sent).toBe(
      (result.nics.a?.rp_cnp_handled ?? 0) + (result.nics.b?.rp_cnp_handled ?? 0),
    );
    expect(result.nics.c?.np_cnp_sent).toBeGreaterThan(10);
    // Goodput from counters agrees with that from samples.
    const samples = series.flows["x/a"]?.goodput_bps?.slice(301) ?? [];
    expect(samples).toHaveLength(300);
    const mean = samples.reduce((sum, x) => sum + x, 0) / samples.length;
    expect(mean / (result.flows[0]?.goodput_bps ?? 0)).toBeCloseTo(1, 3);
  });

  it("pauses without congestion control, for the time that the links say", async () => {
    const { result } = await run(incast({ congestion: { algorithm: "none" }, switch: { buffer: { total: "1MB" } } }));
    const paused = result.links?.find(({ from }) => from === "a")?.pause_time_s["3"];
    // Two senders at full rate into one port: each stands still for about half of the time.
    expect(paused).toBeGreaterThan(0.2e-3);
    expect(paused).toBeLessThan(0.7e-3);
    expect(result.frames).toMatchObject({ dropped: 0, missing: 0 });
  });
});

describe("the same scenario and seed", () => {
  it.each([
    ["an incast", () => incast({ duration: "2ms" })],
    ["a tree under load", () => fatTree()],
    ["a lossy link", () => lossy()],
  ])("give the same bytes: %s", async (_name, scenario) => {
    const first = await bytes(scenario());
    expect(await bytes(scenario())).toBe(first);
    expect(await bytes(scenario(), {}, sliced(37))).toBe(first);
    const trace = [{ target: scenario().switches[0]?.name ?? "", file: "trace.pcapng" }];
    expect(await bytes(scenario(), { trace, folder })).toBe(first);
    expect(existsSync(join(folder, "trace.pcapng"))).toBe(true);
  });

  it.each([2, 3, 7])("leave the same files with %i threads, but for performance and report", async (count) => {
    const threads = new Map<string, number>();
    for (const [name, wanted] of [["one", 1] as const, ["several", count] as const]) {
      const scenario = fatTree();
      const trace = [{ target: scenario.switches[0]?.name ?? "", file: join(folder, `${name}.pcapng`) }];
      const outcome = await run(scenario, { threads: wanted, trace });
      threads.set(name, outcome.performance.threads);
      writeOutcome(join(folder, name), outcome, { text: "", set: [], scenario }, "csv");
    }
    expect([...threads.values()]).toEqual([1, count]);
    for (const file of ["result.json", "series.json", "fct.csv", "scenario.json", "flows.csv"]) {
      expect(readFileSync(join(folder, "several", file), "utf8"), file).toBe(
        readFileSync(join(folder, "one", file), "utf8"),
      );
    }
    const trace = readFileSync(join(folder, "one.pcapng"));
    expect(trace.length).toBeGreaterThan(10_000);
    expect(readFileSync(join(folder, "several.pcapng")).equals(trace)).toBe(true);
  });

  it("take turns between threads where they are asked for, and say how", async () => {
    const alone = (await run(fatTree())).performance;
    expect(alone).toMatchObject({ threads: 1 });
    expect(alone.sharing).toBeUndefined();
    expect(alone.rounds).toBeGreaterThan(10);
    const { threads, rounds, sharing } = (await run(fatTree(), { threads: 2 })).performance;
    expect({ threads, rounds }).toEqual({ threads: 2, rounds: alone.rounds });
    expect(sharing?.partitions).toBeGreaterThan(2);
    expect(sharing?.crossing).toBeGreaterThan(0);
    expect(sharing?.crossing).toBeLessThan(1);
    expect(sharing?.together).toBeLessThanOrEqual(1);
    expect(sharing?.waiting).toBeLessThan(1);
  });

  it("takes as many threads as the network is worth", async () => {
    expect((await run(incast({ duration: "1ms" }), { threads: "auto" })).performance.threads).toBe(1);
    const large = { kind: "fat-tree", k: 8, link: { rate: "400Gbps", delay: "5us" } };
    const { threads, round_ns } = (await run(fatTree({ topology: large, duration: "40us" }), { threads: "auto" }))
      .performance;
    expect(threads).toBe(Math.min(availableParallelism(), 128));
    expect(round_ns).toBeGreaterThan(threads > 1 ? 4000 : 1000);
  });

  it("another seed gives another run", async () => {
    expect(await bytes(fatTree({ seed: 2 }))).not.toBe(await bytes(fatTree({ seed: 3 })));
  });
});

describe("ideal completion times", () => {
  it.each([
    ["stream", 1],
    ["stream", 1025],
    ["stream", 300_000],
    ["rc", 1],
    ["rc", 5000],
    ["rc", 300_000],
  ])("are those of a lone %s flow of %i B", async (type, size) => {
    const traffic = [{ from: "a", to: "b", bytes: size, start: "7us" }];
    const { flowTable } = await run(chain({ transport: { type }, congestion: { algorithm: "none" }, traffic }));
    expect(flowTable).toHaveLength(1);
    expect(flowTable[0]?.slowdown).toBeGreaterThan(0.9999);
    expect(flowTable[0]?.slowdown).toBeLessThan(1.0001);
  });

  it.each([
    ["stream", "write"],
    ["stream", "send"],
    ["rc", "read"],
  ])("hold over a transport of type %s for the %s of several messages at a capped rate", async (type, operation) => {
    const traffic = [{ from: "a", to: "b", bytes: 100_000, message: 30_000, rate: "10Gbps", operation }];
    const { flowTable } = await run(chain({ transport: { type }, traffic }));
    expect(flowTable[0]?.slowdown).toBeCloseTo(1, 4);
  });

  it.each([1, 5000, 300_000, 3_000_000])("are those of a lone READ of %i B", async (bytes) => {
    const traffic = [{ from: "a", to: "b", bytes, start: "7us", operation: "read" }];
    const alone = { transport: { type: "rc", window: 600 }, congestion: { algorithm: "none" }, traffic };
    const { result, flowTable } = await run(chain(alone));
    expect(flowTable).toMatchObject([{ bytes, start_ns: 7000 }]);
    expect(flowTable[0]?.slowdown).toBeCloseTo(1, 4);
    expect(result.flows[0]).toMatchObject({ from: "a", to: "b", lost: 0 });
  });
});

describe("a tree under load", () => {
  it("completes what it can, and nothing faster than an empty network would", async () => {
    const { result, flowTable } = await run(fatTree());
    expect(flowTable.length).toBeGreaterThan(50);
    expect(result.fct?.count).toBe(flowTable.length);
    expect(flowTable.length + (result.fct?.incomplete ?? 0)).toBe(fatTree().flows.length);
    expect(Math.min(...flowTable.map(({ slowdown }) => slowdown))).toBeGreaterThan(0.9999);
    expect(result.frames).toMatchObject({ missing: 0 });
  });

  it("finds its way again after losses, and says how", async () => {
    const { result } = await run(lossy());
    expect(result.frames).toMatchObject({ impaired: expect.toSatisfy((n: number) => n > 0), missing: 0 });
    expect((result.transport as Record<string, number>).retransmitted).toBeGreaterThan(0);
    expect(result.fct).toMatchObject({ count: 1, incomplete: 0 });
  });
});

describe("a run that is cut short", () => {
  it("by a signal has the result of what has happened", async () => {
    const abort = new AbortController();
    const scenario = incast({ duration: "1s", warmup: "1ms" });
    const addon = sliced(1000, (now) => {
      if (now > 2e6) abort.abort();
    });
    const { result, complete } = await runSimulation(scenario, { signal: abort.signal }, addon);
    expect(complete).toBe(false);
    expect(result.fidelity.reasons).toEqual([expect.stringMatching(/^stopped at .* of 1 s$/)]);
    expect(result.totals.goodput_bps).toBeGreaterThan(1e9);
    expect(result.until_s).toBeGreaterThan(0.002);
  });

  it("by `until` is the beginning of the whole run", async () => {
    const whole = await run(incast());
    const half = await run(incast(), { until: 500_000 });
    expect(half.complete).toBe(true);
    expect(half.series.flows["x/a"]?.goodput_bps).toEqual(whole.series.flows["x/a"]?.goodput_bps?.slice(0, 6));
  });
});

/** One long message over links that lose 1% of the frames. */
function lossy(): Scenario {
  return incast({
    duration: "20ms",
    transport: { type: "rc", timeout: 5 },
    topology: star(["a", "b", "c"], { rate: "10Gbps", impairment: { loss: 0.01 } }),
    traffic: [{ id: "x", from: "a", to: "c", bytes: "1MB" }],
  });
}
