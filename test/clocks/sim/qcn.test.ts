/** QCN in virtual time on the native core: queues at their set point, rates that follow changes, and runs that can be repeated. */
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimulationAddon } from "../../../src/native/simulation_types.js";
import type { Result } from "../../../src/result/result.js";
import { loadScenario, type Scenario } from "../../../src/scenario/scenario.js";
import { star } from "../../fixtures/networks.js";
import { nativeObstacle, skipWhere } from "../../obstacles.js";
import { chain, incast } from "./scenarios.js";
import { sliced } from "./sliced.js";

skipWhere(nativeObstacle());

const kQcn = { switch: { ecn: { enabled: false }, qcn: { enabled: true } }, congestion: { algorithm: "qcn" } };
const example = (...set: string[]) => loadScenario("examples/qcn-incast.yaml", { set }).scenario;
const run = (scenario: Scenario, addon?: SimulationAddon) =>
  runSimulation(scenario, { signal: new AbortController().signal }, addon);
const sum = (counts: Readonly<Record<string, number>> = {}) => Object.values(counts).reduce((total, n) => total + n, 0);
const handled = ({ nics }: Result) =>
  sum(Object.fromEntries(Object.entries(nics).map(([k, n]) => [k, n.rp_cnm_handled ?? 0])));

describe("examples/qcn-incast.yaml", () => {
  it("holds the queue at Q_eq with a full link, and loses and pauses nothing", async () => {
    const { result } = await run(example("changes=[]"));
    expect(result.fidelity).toMatchObject({ valid: true, reasons: [] });
    expect(result.totals.goodput_bps).toBeGreaterThan(0.99 * (result.totals.goodput_limit_bps as number));
    const queue = result.switches.sw?.queues.r?.["3"];
    expect(queue?.mean).toBeGreaterThan(20_000);
    expect(queue?.mean).toBeLessThan(32_000);
    expect(sum(result.switches.sw?.pfc_sent) + sum(result.switches.sw?.drops)).toBe(0);
    expect(handled(result)).toBe(result.switches.sw?.cnm_sent);
    expect(result.frames).toMatchObject({ missing: 0, dropped: 0 });
  });

  it("follows the service rate down and up again", async () => {
    const { result, series } = await run(example());
    const total = (from: number, to: number) => {
      const within = series.time_s.map((time, i) => (time > from && time <= to ? i : -1)).filter((i) => i >= 0);
      const flows = Object.values(series.flows);
      const all = within.map((i) => flows.reduce((rate, { goodput_bps }) => rate + (goodput_bps?.[i] ?? 0), 0));
      return all.reduce((a, b) => a + b, 0) / all.length;
    };
    const payload = result.payload_share as number;
    expect(total(0.15, 0.2)).toBeGreaterThan(0.98 * 10e9 * payload);
    expect(total(0.22, 0.3)).toBeGreaterThan(0.98 * 4e9 * payload);
    expect(total(0.21, 0.3)).toBeLessThan(1.001 * 4e9 * payload);
    expect(total(0.39, 0.4)).toBeGreaterThan(0.98 * 10e9 * payload);
    expect(series.cnms?.["sw:r:3"]?.some((n) => n > 0)).toBe(true);
    expect(series.flows["incast/h1"]?.alpha).toBeNull();
  });

  it("is the same run however it is sliced, changes and all", async () => {
    const scenario = example("duration=30ms", "warmup=5ms", "changes.0.at=10ms", "changes.1.at=12345ns");
    const text = async (addon?: SimulationAddon) => {
      const { result, series } = await run(scenario, addon);
      return JSON.stringify({ result, series });
    };
    const whole = await text();
    expect(await text(sliced(501))).toBe(whole);
    expect(await text()).toBe(whole);
  });

  it.each(["qcn-t", "qcn-aimd"])("runs the variant %s", async (variant) => {
    const { result } = await run(example(`congestion.variant=${variant}`, "changes=[]"));
    expect(result.totals.goodput_bps).toBeGreaterThan(0.85 * (result.totals.goodput_limit_bps as number));
    if (variant === "qcn-t") expect(result.totals.jain).toBeGreaterThan(0.97);
  });
});

describe("flows of QCN", () => {
  const longer = { duration: "40ms", warmup: "10ms" };

  it.each([
    ["without CN-TAGs", { cn_tag: false }, 64, {}],
    ["by destination", { flows: "destination-mac", cn_tag: false }, 0, {}],
    ["by application, which all queue pairs of a host share", { flows: "application" }, 0, { qps: 3 }],
    [
      "by five-tuple, with fewer reaction points than flows",
      { flows: "five-tuple", reaction_points: 2 },
      0,
      { qps: 5 },
    ],
    ["by queue pairs with addresses of their own", {}, 0, { qps: 2, source_mac: "own" }],
  ])("%s", async (_, host, octets, entry) => {
    const { result } = await run(
      incast({
        ...kQcn,
        ...longer,
        switch: { ecn: { enabled: false }, qcn: { enabled: true, cpMinHeaderOctets: octets } },
        host: { qcn: host },
        traffic: [{ id: "x", from: ["a", "b"], to: "c", ...entry }],
      }),
    );
    expect(result.frames).toMatchObject({ missing: 0, dropped: 0 });
    expect(result.totals.goodput_bps).toBeGreaterThan(0.9 * (result.totals.goodput_limit_bps as number));
    expect(result.switches.sw?.cnm_sent).toBeGreaterThan(10);
    // CNMs that were under way at the end have not been handled.
    expect(handled(result)).toBeGreaterThanOrEqual((result.switches.sw?.cnm_sent ?? 0) - 2);
    for (const nic of Object.values(result.nics)) expect(nic.rp_cnm_refused).toEqual({});
  });

  it("through token buckets of NetFPGA fill a link of 1 Gb/s", async () => {
    const { result } = await run(
      incast({
        ...kQcn,
        duration: "400ms",
        warmup: "100ms",
        congestion: { algorithm: "qcn", profile: "netfpga" },
        host: { qcn: { limiter: "token-bucket" } },
        topology: star(["a", "b", "c"], { rate: "1Gbps", delay: "20us" }),
      }),
    );
    expect(result.totals.goodput_bps).toBeGreaterThan(0.95 * (result.totals.goodput_limit_bps as number));
    expect(result.frames).toMatchObject({ missing: 0, dropped: 0 });
  });

  it("outside of the domain are remapped, and nobody slows them", async () => {
    const ports = { a: { defence: "edge", alternate_priority: 1 } };
    const { result } = await run(
      incast({ ...kQcn, ...longer, switch: { ecn: { enabled: false }, qcn: { enabled: true, ports } } }),
    );
    expect(result.nics.a).toMatchObject({ rp_cnm_handled: 0, rp_cnm_refused: {} });
    expect(result.flows[0]).toMatchObject({ cnm_handled: 0 });
    expect(Object.keys(result.switches.sw?.congestion_points?.c ?? {})).toEqual(["3"]);
  });

  it("alone take as long as a frame with a CN-TAG does", async () => {
    const traffic = [{ from: "a", to: "b", bytes: 100_000, message: 30_000 }];
    for (const cn_tag of [true, false]) {
      const { flowTable } = await run(chain({ ...kQcn, host: { qcn: { cn_tag } }, traffic }));
      expect(flowTable[0]?.slowdown).toBeCloseTo(1, 4);
    }
  });
});

describe("long links", () => {
  it("of 64 ms carry what is under way, and QCN hears of congestion that much later", async () => {
    const { result } = await run(
      incast({
        ...kQcn,
        duration: "2s",
        warmup: "500ms",
        congestion: { algorithm: "qcn", profile: "netfpga" },
        topology: star(["a", "b", "c"], { rate: "1Gbps", delay: "1us" }, { a: { delay: "64ms" } }),
        switch: { ...kQcn.switch, pfc: { enabled: false } },
      }),
    );
    expect(result.fidelity.reasons).toEqual([]);
    expect(result.flows[0]?.packets).toBeGreaterThan(1000);
    expect(result.frames).toMatchObject({ missing: 0 });
  });
});
