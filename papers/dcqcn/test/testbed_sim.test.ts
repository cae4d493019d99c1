/** Observations of the DCQCN paper on its testbed, in short simulations of papers/dcqcn. docs/evidence/testbed.md has the long ones. */
import { beforeAll, describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { Result } from "../../../src/result/result.js";
import { loadScenario, type Scenario } from "../../../src/scenario/scenario.js";
import { examples } from "../../../test/fixtures/examples.js";
import { describeUnless, itUnless, nativeObstacle, skipWhere } from "../../../test/obstacles.js";

/** The paper's switch, section 4: 12 MB, 32 ports, 8 priorities of which each port keeps headroom for. */
const kHeadroom = 22_400;
const kShared = 12e6 - 32 * 8 * kHeadroom;
/** beta of 8 and 8 priorities: t_PFC = kBeta8 x what is free of the shared buffer. */
const kBeta8 = 1;

const kPfcOnly = ["congestion.algorithm=none"];
const kMisconfigured = [
  "switch.buffer.mode=static",
  "switch.buffer.threshold=24.47KB",
  "switch.ecn.kmin=120KB",
  "switch.ecn.kmax=200KB",
];

function load(name: string, set: readonly string[] = []): Scenario {
  return loadScenario(`papers/dcqcn/${name}.yaml`, { set }).scenario;
}

/** Returns the result of `milliseconds` after the first half. */
async function run(name: string, milliseconds: number, set: readonly string[] = []): Promise<Result> {
  const times = [`duration=${milliseconds}ms`, `warmup=${milliseconds / 2}ms`];
  const { result } = await runSimulation(load(name, [...times, ...set]), { signal: new AbortController().signal });
  expect(result.fidelity.valid).toBe(true);
  return result;
}

const gbps = (result: Result) => result.flows.map(({ goodput_bps }) => goodput_bps / 1e9);
const group = (result: Result, name: string) =>
  result.groups?.[name]?.goodput_bps ?? { p10: Number.NaN, p50: Number.NaN };

function received(result: Result, ...switches: string[]): number {
  return switches.reduce((sum, name) => sum + (result.switches[name]?.pfc_received?.["3"] ?? 0), 0);
}

function marked(result: Result): number {
  return Object.values(result.switches).reduce((sum, { ecn_marked }) => sum + ecn_marked, 0);
}

describe("buffers", () => {
  // Other papers' scenarios, in folders of their own, have the buffers of these papers.
  const files = examples("scenario").filter((file) => file.startsWith("papers/dcqcn/"));
  it("are there", () => expect(files.length).toBeGreaterThan(3));

  it.each(files)("%s: every switch shares as much as the paper's 32 ports do", (file) => {
    const { switches, links } = loadScenario(file).scenario;
    for (const { name, buffer } of switches) {
      const ports = links.filter(({ from, to }) => from === name || to === name).length;
      expect(buffer, name).toMatchObject({ headroom: kHeadroom, priorities: 8, beta: 8, mode: "dynamic" });
      expect(buffer.total - ports * 8 * kHeadroom, name).toBe(kShared);
    }
  });

  it("have the static t_PFC of the paper, 24.47 KB, where a switch has its ports' share of 12 MB", () => {
    const { switches } = loadScenario("examples/testbed-incast.yaml").scenario;
    for (const { buffer } of switches) expect(buffer.threshold).toBeCloseTo(kShared / (8 * 32), -1);
    expect(switches[0]?.buffer.threshold).toBeGreaterThanOrEqual(24_470);
    expect(switches[0]?.buffer.threshold).toBeLessThan(24_480);
  });

  itUnless(
    nativeObstacle(),
    "pause at t_PFC: three inputs of one queue stop when each holds what is free",
    async () => {
      const { switches } = await run("unfairness", 6, kPfcOnly);
      const queue = switches.t4?.queues["h4-2"]?.["3"];
      // q = 3 t_PFC, t_PFC = kShared - q.
      const expected = (3 * kBeta8 * kShared) / (1 + 3 * kBeta8);
      expect(queue?.mean).toBeGreaterThan(0.99 * expected);
      expect(queue?.mean).toBeLessThan(1.01 * expected);
    },
  );
});

describe("unfairness (figures 3 and 8)", () => {
  skipWhere(nativeObstacle());

  it("with PFC alone, an input of its own is worth as much as one that others share", async () => {
    const [h1 = 0, h2 = 0, h3 = 0, h4 = 0] = gbps(await run("unfairness", 6, kPfcOnly));
    // By seed 1 h1 and h2 share an input of t4. Each of three inputs has a third of 37 Gb/s.
    expect(h4).toBeCloseTo(12.34, 0);
    expect(h3).toBeCloseTo(12.34, 0);
    expect(h1 + h2).toBeCloseTo(12.34, 0);
    expect(Math.max(h1, h2)).toBeLessThan(0.6 * h4);
  });

  it("with DCQCN all are equal, and nobody is paused", async () => {
    // The mean of three draws of the marks: within one run a flow strays by a quarter.
    const mean = [0, 0, 0, 0];
    for (const seed of [1, 2, 3]) {
      const result = await run("unfairness", 60, [`seed=${seed}`, "topology.ecmp_seed=1"]);
      gbps(result).forEach((rate, i) => {
        mean[i] = (mean[i] ?? 0) + rate / 3;
      });
      expect(result.totals.goodput_bps).toBeGreaterThan(35e9);
      expect(received(result, ...Object.keys(result.switches))).toBe(0);
    }
    expect(Math.min(...mean)).toBeGreaterThan(0.8 * Math.max(...mean));
  });
});

describe("the victim flow (figures 4 and 9)", () => {
  skipWhere(nativeObstacle());

  const victim = async (set: readonly string[], ms: number) => (gbps(await run("victim", ms, set))[0] ?? 0) / 37.03;

  it("with PFC alone has a quarter of its link, and an eighth once two more hosts send on other paths", async () => {
    expect(await victim([...kPfcOnly, "traffic.2.from=[]"], 24)).toBeCloseTo(1 / 4, 2);
    expect(await victim(kPfcOnly, 24)).toBeCloseTo(1 / 8, 2);
  });

  it("with DCQCN does not suffer from them", async () => {
    const alone = await victim(["traffic.2.from=[]"], 50);
    expect(alone).toBeGreaterThan(0.35);
    expect(await victim([], 50)).toBeGreaterThan(alone);
  });
});

describeUnless(nativeObstacle(), "benchmark traffic (figures 15, 16 and 18)", () => {
  let pfc: Result;
  let misconfigured: Result;
  let dcqcn: Result;
  beforeAll(async () => {
    pfc = await run("benchmark", 8, kPfcOnly);
    misconfigured = await run("benchmark", 8, kMisconfigured);
    dcqcn = await run("benchmark", 8);
  });

  it("with PFC alone floods the spines with PAUSE frames and starves the users", () => {
    expect(received(pfc, "s1", "s2")).toBeGreaterThan(500);
    expect(received(dcqcn, "s1", "s2")).toBeLessThan(10);
    expect(group(pfc, "users").p50).toBeLessThan(0.1 * group(dcqcn, "users").p50);
    expect(group(pfc, "users").p10).toBeLessThan(0.05 * group(dcqcn, "users").p10);
  });

  it("with thresholds that are wrong is in between", () => {
    expect(group(misconfigured, "users").p10).toBeGreaterThan(2 * group(pfc, "users").p10);
    expect(group(misconfigured, "users").p10).toBeLessThan(0.7 * group(dcqcn, "users").p10);
    expect(received(misconfigured, "s1", "s2")).toBeGreaterThan(500);
  });

  it("without PFC loses packets, and some flows do not recover, where a queue is not allowed much", async () => {
    const lossy = ["switch.pfc.enabled=false", "switch.buffer.lossy_alpha=0.015625", "traffic.1.degree=8"];
    const result = await run("benchmark", 16, lossy);
    expect((result.transport as Record<string, number>).retransmitted).toBeGreaterThan(1000);
    expect(group(result, "rebuild").p10).toBeLessThan(0.01 * (40e9 / 8));
    expect(received(result, ...Object.keys(result.switches))).toBe(0);
  });
});

describe("thresholds", () => {
  skipWhere(nativeObstacle());

  it("that are wrong pause and never mark; those of the paper mark and do not pause", async () => {
    const [wrong, right] = [await run("unfairness", 6, kMisconfigured), await run("unfairness", 6)];
    expect(marked(wrong)).toBe(0);
    expect(received(wrong, "l3", "l4")).toBeGreaterThan(100);
    expect(marked(right)).toBeGreaterThan(100);
    expect(received(right, "l3", "l4")).toBe(0);
  });
});
