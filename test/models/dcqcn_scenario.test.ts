/** Scenarios as the fluid model sees them, what it refuses, and results beside those of the other clocks. */
import { describe, expect, it } from "vitest";
import { runModel } from "../../src/clocks/model.js";
import { dcqcnFixedPoint, modelScenario } from "../../src/models/dcqcn/index.js";
import { compareRuns } from "../../src/result/report/overlay.js";
import { renderOverlay } from "../../src/result/report/overlay_html.js";
import { renderTable } from "../../src/result/report/table.js";
import { type Result, resultSchema, seriesSchema } from "../../src/result/result.js";
import { parseScenario, type Scenario } from "../../src/scenario/scenario.js";
import { star } from "../fixtures/networks.js";
import { sampleResult, sampleSeries } from "../result/report/sample.js";

const kTopology = star(["h1", "h2", "h3", "r"], { rate: "40Gbps", delay: "1us", mtu: 1500 });
const kTraffic = [{ id: "incast", from: ["h1", "h2", "h3"], to: "r" }];
const scenario = (changes: Record<string, unknown> = {}): Scenario =>
  parseScenario({
    name: "three",
    duration: "20ms",
    warmup: "10ms",
    topology: kTopology,
    switch: { ecn: { kmin: "5KB", kmax: "200KB", pmax: "1%" } },
    traffic: kTraffic,
    ...changes,
  }).scenario;
const signal = () => new AbortController().signal;
const run = (changes: Record<string, unknown> = {}) => runModel(scenario(changes), { signal: signal() });

describe("a scenario", () => {
  it("is three flows of one class at 40 Gb/s, in packets of 1106 bytes, of which the queue sees 1082", () => {
    expect(modelScenario(scenario())).toEqual({
      parameters: {
        bandwidth: 40e9,
        packet: 1106,
        queued: 1082,
        kmin: 5_000,
        kmax: 200_000,
        pmax: 0.01,
        g: 1 / 256,
        rpg_ai_rate: 40e6,
        rpg_byte_reset: 10e6,
        rpg_time_reset: 55_000,
        rpg_threshold: 5,
        min_time_between_cnps: 50_000,
        dce_tcp_rtt: 55_000,
        alpha_decays_at_line_rate: true,
        delay: 54_000,
      },
      classes: [{ count: 3, start: 0, stop: Number.POSITIVE_INFINITY, rate: 40e9, lineRate: 40e9, alpha: 1 }],
      classOf: [0, 0, 0],
      switch: "sw",
      receiver: "r",
      priority: 3,
    });
    expect(modelScenario(scenario(), 50_000).parameters.delay).toBe(50_000);
    const held = scenario({ congestion: { parameters: { alpha_decays_at_line_rate: false } } });
    expect(modelScenario(held).parameters.alpha_decays_at_line_rate).toBe(false);
  });

  it("has a class for each start, line rate and stop", () => {
    const links = [
      "h1 -- sw",
      { from: "h2", to: "sw", rate: "10Gbps", delay: "3us" },
      { from: "h3", to: "sw" },
      "sw -- r",
    ];
    const { classes, classOf, parameters } = modelScenario(
      scenario({
        topology: { ...kTopology, links },
        congestion: { parameters: { rpg_max_rate: "20Gbps", initial_alpha_value: 512, rpg_ai_rate: "10Mbps" } },
        traffic: [
          { id: "a", from: ["h1", "h2"], to: "r" },
          { id: "b", from: "h3", to: "r", start: "5ms", stop: "8ms" },
        ],
      }),
    );
    expect(classOf).toEqual([0, 1, 2]);
    expect(classes.map(({ lineRate }) => lineRate)).toEqual([20e9, 10e9, 20e9]);
    expect(classes[2]).toEqual({ count: 1, start: 5e6, stop: 8e6, rate: 20e9, lineRate: 20e9, alpha: 0.5 });
    expect(parameters).toMatchObject({ delay: 50_000 + 2 * 4_000, rpg_ai_rate: 10e6 });
  });

  it("starts below line rate where the hosts do", () => {
    const { classes } = modelScenario(scenario({ host: { line_rate_start: false, initial_rate: "1Gbps" } }));
    expect(classes[0]).toMatchObject({ rate: 1e9, lineRate: 40e9 });
  });

  const refused: [string, Record<string, unknown>, RegExp][] = [
    ["QCN", { congestion: { algorithm: "qcn" } }, /congestion\.algorithm: qcn/],
    [
      "a service rate that changes",
      { changes: [{ at: "1ms", switch: "sw", port: "r", rate: "1Gbps" }] },
      /changes: service rates/,
    ],
    ["another algorithm", { congestion: { algorithm: "none" } }, /congestion\.algorithm: none/],
    ["the slotted form", { congestion: { profile: "mlx5" } }, /congestion\.profile: mlx5 has the slotted form/],
    ["a deeper cut", { congestion: { parameters: { rpg_gd: 12 } } }, /rpg_gd.*must be 11/],
    ["no clamp", { congestion: { parameters: { clamp_tgt_rate: false } } }, /clamp_tgt_rate.*must be true/],
    ["no interval of CNPs", { congestion: { parameters: { min_time_between_cnps: 0 } } }, /min_time_between_cnps/],
    ["acknowledgements", { transport: { type: "rc" } }, /transport\.type: rc/],
    ["a rate", { traffic: [{ ...kTraffic[0], rate: "1Gbps" }] }, /traffic: incast\/h1 does not always/],
    ["an end", { traffic: [{ ...kTraffic[0], bytes: "1MB" }] }, /traffic: incast\/h1 does not always/],
    ["two receivers", { traffic: [...kTraffic, { from: "r", to: "h1" }] }, /several hosts[\s\S]*r sends and receives/],
    ["two flows of a host", { traffic: [...kTraffic, { id: "x", from: "h1", to: "r" }] }, /h1 sends several flows/],
    [
      "two priorities",
      {
        traffic: [
          { from: "h1", to: "r" },
          { from: "h2", to: "r", priority: 4 },
        ],
      },
      /several priorities/,
    ],
    ["no marks", { switch: { ecn: { enabled: false } } }, /switch\.ecn: the switch does not mark priority 3/],
    ["an averaged queue", { switch: { ecn: { queue: "averaged" } } }, /switch\.ecn\.queue: averaged/],
    [
      "a slow receiver",
      { host: { receive_buffer: { rate: "10Gbps" } } },
      /host\.receive_buffer\.rate: .* drains at 10 Gb\/s/,
    ],
    [
      "small packets of one flow",
      {
        traffic: [
          { from: "h1", to: "r" },
          { from: "h2", to: "r", message: "100B" },
        ],
      },
      /different sizes/,
    ],
    [
      "two switches",
      {
        topology: {
          ...kTopology,
          switches: ["sw", "tw"],
          links: ["h1 -- sw", "h2 -- sw", "h3 -- sw", "sw -- tw", "tw -- r"],
        },
      },
      /topology: 2 switches/,
    ],
    [
      "an impairment",
      {
        topology: {
          ...kTopology,
          links: ["h1 -- sw", "h2 -- sw", "h3 -- sw", { from: "sw", to: "r", impairment: { loss: "1%" } }],
        },
      },
      /topology\.links: sw -- r has an impairment/,
    ],
  ];
  it.each(refused)("with %s is refused", (_, changes, message) => {
    expect(() => modelScenario(scenario(changes))).toThrow(message);
  });
});

describe("a result", () => {
  it("keeps the contract, and is at the fixed point in the end", async () => {
    const { result, series, complete } = await run({ duration: "200ms", warmup: "150ms" });
    expect(complete).toBe(true);
    resultSchema.parse(result);
    seriesSchema.parse(series);
    const { parameters } = modelScenario(scenario());
    const point = dcqcnFixedPoint(parameters, 3);
    expect(result).toMatchObject({ clock: "model", scale: 1, profile: "paper-sigcomm15", fidelity: { valid: true } });
    expect(result.model).toMatchObject({ delay_us: 54, fixed_point: point });
    expect(result.switches.sw?.queues.r?.["3"]?.mean).toBeCloseTo(point.queue_bytes as number, -2);
    for (const { goodput_bps, wire_bps } of result.flows) {
      expect(wire_bps / 1e9).toBeCloseTo(40 / 3, 4);
      expect(goodput_bps / wire_bps).toBeCloseTo(1024 / 1106, 6);
    }
    expect(result.totals).toMatchObject({ jain: 1, goodput_bps: expect.closeTo(40e9 * (1024 / 1106), -4) });
    const { time_s, interval_s, flows, queues, marks, cnps } = series;
    expect([time_s.length, interval_s]).toEqual([2001, 1e-4]);
    expect(flows["incast/h2"]?.rate_bps?.at(-1)).toBeCloseTo(point.rate_bps, -6);
    expect(queues["sw:r:3"]?.bytes?.at(-1)).toBeCloseTo(point.queue_bytes as number, -2);
    const sum = (list: readonly number[] = []) => list.reduce((total, one) => total + one, 0);
    expect(Math.round(sum(marks?.["sw:r:3"]))).toBe(result.switches.sw?.ecn_marked);
    expect(Math.abs(sum(cnps?.r) - (result.nics.r?.np_cnp_sent as number))).toBeLessThan(2);
    expect(renderTable(result)).toContain("fidelity: valid, equations\n");
  });

  it("lies over results of the other clocks", async () => {
    const { result, series } = await run();
    const wire = sampleResult(2);
    const sampled = sampleSeries(2, 50);
    const other = (clock: "wire" | "sim") => ({
      label: clock,
      result: { ...wire, clock, flows: wire.flows.map((flow, i) => ({ ...flow, id: `incast/h${i + 1}` })) },
      series: sampled,
      source: undefined,
    });
    const runs = [other("wire"), other("sim"), { label: "model", result, series, source: undefined }];
    const comparison = compareRuns(runs);
    expect(comparison.runs.map(({ clock }) => clock)).toEqual(["wire", "sim", "model"]);
    expect(comparison.flows.map(({ id }) => id)).toEqual(["incast/h1", "incast/h2"]);
    expect(comparison.queues.map(({ queue, sampled: has }) => [queue, has])).toEqual([["sw:r:3", true]]);
    expect(renderOverlay(runs, comparison)).toContain('"model"');
  });

  it("has the distribution of the queue, up to its longest", async () => {
    const { result } = await run({ warmup: 0 });
    const { queue_cdf, queues } = result.switches.sw as Result["switches"][string];
    const cdf = (queue_cdf as Record<string, Record<string, [number, number][]>>).r?.["3"] ?? [];
    expect(cdf.at(-1)).toEqual([queues.r?.["3"]?.max, 1]);
    for (const [i, [bytes, part]] of cdf.entries()) {
      if (i > 0)
        expect([bytes >= (cdf[i - 1]?.[0] as number), part > (cdf[i - 1]?.[1] as number)]).toEqual([true, true]);
    }
  });

  it("has no fixed point where links hold the flows back, and counts a late flow over its own time", async () => {
    const { result } = await run({
      traffic: [
        { id: "a", from: "h1", to: "r" },
        { id: "b", from: "h2", to: "r", start: "15ms" },
      ],
    });
    expect(result.flows[1]?.goodput_bps).toBeGreaterThan(3e9);
    expect(result.flows[1]?.goodput_bps).toBeLessThan(result.flows[0]?.goodput_bps as number);
    expect(result.totals.goodput_limit_bps).toBeUndefined();
    const alone = await run({ traffic: [{ id: "a", from: "h1", to: "r" }] });
    expect(alone.result.model).toMatchObject({ fixed_point: null, longest_queue_bytes: 0 });
  });

  it("is not valid when it was stopped, and ends there", async () => {
    const abort = new AbortController();
    const outcome = await runModel(scenario(), {
      signal: abort.signal,
      onProgress: ({ done }) => void (done >= 0.5 && abort.abort()),
    });
    expect(outcome.complete).toBe(false);
    expect(outcome.result).toMatchObject({
      until_s: 0.01,
      fidelity: { valid: false, reasons: ["stopped at 10 ms of 20 ms"] },
    });
    expect(outcome.series.time_s.at(-1)).toBeCloseTo(0.01, 9);
    expect(outcome.result.flows.map(({ goodput_bps }) => goodput_bps)).toEqual([0, 0, 0]);
  });
});
