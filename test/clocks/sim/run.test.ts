/** runSimulation() against a native simulation that does as told. */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { runSimulation } from "../../../src/clocks/sim/run.js";
import type { SimOptions, SimProgress } from "../../../src/clocks/sim/types.js";
import { RecordKind } from "../../../src/native/types.js";
import { renderReport } from "../../../src/result/report/run_report.js";
import { type FakeScript, FakeSimulation } from "./fake_simulation.js";
import { fatTree, incast } from "./scenarios.js";

const validate = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync("schema/result.schema.json", "utf8")));

async function run(scenario = incast(), script: Partial<FakeScript> = {}, options: Partial<SimOptions> = {}) {
  const fake = new FakeSimulation({ step: 300_000, ...script });
  const outcome = await runSimulation(scenario, { signal: new AbortController().signal, ...options }, fake.addon);
  return { fake, ...outcome };
}

/** Frames that a NIC sent and another one received. */
const kCarried = { cells: () => ({ "nics.0.tx_packets": 10, "nics.2.rx_packets": 10 }) };

describe("runSimulation", () => {
  it("goes on in slices to the warm-up and to the end, and frees the simulation", async () => {
    const { fake, complete, result } = await run(incast(), kCarried);
    expect(fake.runs.map(({ until }) => until)).toEqual([200_000, 1e6, 1e6, 1e6]);
    expect(fake.closed).toBe(1);
    expect(complete).toBe(true);
    expect(result).toMatchObject({ clock: "sim", scale: 1, fidelity: { valid: true, reasons: [] } });
    expect(result).not.toHaveProperty("until_s");
    expect(validate(JSON.parse(JSON.stringify(result))), JSON.stringify(validate.errors)).toBe(true);
  });

  it("hands on what is due, and is not valid where skipped time was off by more than the bound", async () => {
    const stretch = { from: 3e5, to: 9e5, observed: 1e5, judged: 1e5, agrees: false };
    const fastForward = {
      ...{ window: 1e4, share: 0.002, reason: "" },
      stretches: [{ ...stretch, goodput: 0.02, shares: 0, marks: 0, queues: 0.04 }],
    };
    const changes = [{ at: "400us", switch: "sw", port: "c", rate: "1Gbps" }];
    const { fake, result } = await run(incast({ changes }), { ...kCarried, fastForward }, { fastForward: 0.03 });
    expect(fake.config?.fast_forward).toEqual({ bound: 0.03, due: [400_000, 1e6] });
    expect(result.fidelity).toMatchObject({ valid: false, reasons: [expect.stringContaining("off by 4.0% in queue")] });
    expect(result.fast_forward).toMatchObject({ skipped: 0.6, jumps: 1, disagreed: 1 });
    expect(validate(JSON.parse(JSON.stringify(result))), JSON.stringify(validate.errors)).toBe(true);
    expect((await run(incast(), kCarried)).fake.config).not.toHaveProperty("fast_forward");
    const verifying = await run(incast(), kCarried, { fastForward: 0.03, verify: 0.05 });
    expect(verifying.fake.config?.fast_forward).toEqual({ bound: 0.03, share: 0.05, due: [1e6] });
  });

  it("is not valid where phases of message graphs that came from memory were off by more than the bound", async () => {
    const learned = {
      ...{ reason: "", messages: 10, skipped: 8, bytes: 1e6, skipped_bytes: 8e5, phases: 5, recalled: 4, known: 1 },
      ...{ left: 0, left_bytes: 0, judged: 30, judged_messages: 30, stretches: 3, error: 0.05, bias: 0.01, worst: 0.2 },
      ...{ contended: 0, judged_contended: 0, contended_error: 0, share: 0, judged_bytes: 1e4 },
      ...{ message_error: 0.05, message_p99: 0.2 },
    };
    const { result } = await run(incast(), { ...kCarried, learned }, { fastForward: 0.03 });
    expect(result.fidelity).toMatchObject({ valid: false, reasons: [expect.stringContaining("off by 5.0%")] });
    expect(result).toMatchObject({ flows: [], flows_omitted: 2, switches: {}, nics: {} });
    expect(validate(JSON.parse(JSON.stringify(result))), JSON.stringify(validate.errors)).toBe(true);
  });

  it("counts rates from the end of the warm-up, and counters over the whole run", async () => {
    const cells = (now: number) => ({
      // 8 Gb/s until the warm-up is over, then 4; with headers a tenth more.
      "receivers.0.rx_bytes": now <= 200_000 ? now : 200_000 + (now - 200_000) / 2,
      "receivers.0.rx_wire_bytes": now <= 200_000 ? 1.1 * now : 220_000 + (1.1 * (now - 200_000)) / 2,
      "senders.0.tx_packets": now / 1000,
      "senders.0.cnp_handled": 3,
      "receivers.0.ecn_marked": 5,
      "receivers.0.rx_packets": now / 1000,
      // Two were lost, of which one left a gap; three are under way.
      "senders.1.tx_packets": 12,
      "receivers.1.rx_packets": 7,
      "receivers.1.lost": 1,
    });
    const { result } = await run(incast(), { cells, underWay: [0, 3] });
    expect(result.flows[0]).toMatchObject({ id: "x/a", packets: 1000, cnp_handled: 3, ecn_marked: 5, lost: 0 });
    expect(result.flows[0]?.goodput_bps).toBeCloseTo(4e9, 0);
    expect(result.flows[0]?.wire_bps).toBeCloseTo(4.4e9, 0);
    expect(result.flows[1]).toMatchObject({ packets: 12, received: 7, under_way: 3, lost: 2, goodput_bps: 0 });
    const reliable = await run(incast({ transport: { type: "rc" } }), { cells, underWay: [0, 3] });
    expect(reliable.result.flows[1]).toMatchObject({ packets: 12, received: 7, under_way: 3, lost: 1 });
    expect(result.totals.goodput_bps).toBeCloseTo(4e9, 0);
    expect(result.totals.jain).toBeCloseTo(0.5, 9);
  });

  it("gives each switch, NIC and direction of a link its own figures", async () => {
    const cells = (now: number) => ({
      "switch_ports.2.drop_buffer_full": 4,
      [`switch_priorities.${2 * 8 + 3}.wred_ecn_marked_packets`]: 7,
      [`switch_priorities.${0 * 8 + 3}.pfc_tx_packets`]: 6,
      [`switch_priorities.${2 * 8 + 3}.pfc_rx_packets`]: 2,
      // The switch's port to c was paused; b's NIC was too.
      [`switch_priorities.${2 * 8 + 3}.pfc_rx_pause_duration`]: 5000,
      [`nic_priorities.${1 * 8 + 3}.rx_prio_pause_duration`]: 9000,
      [`nic_priorities.${0 * 8 + 3}.rx_prio_pause`]: 6,
      "nics.2.np_cnp_sent": 8,
      // Row 4 is link 2 (sw -- c) as sw sends: full from 200 us on.
      "links.4.wire_bytes": now < 1e6 ? 1000 : 1000 + 800_000 * 1.25,
      "links.4.frames": 900,
      "links.3.frames": 5,
      "links.3.lost": 1,
      "links.3.corrupted": 1,
    });
    const { result } = await run(incast(), { cells });
    expect(result.switches.sw).toMatchObject({
      drops: { buffer_full: 4 },
      ecn_marked: 7,
      pfc_sent: { 3: 6 },
      pfc_received: { 3: 2 },
      queues: { c: { 3: { mean: 1000, max: 1000 } } },
    });
    expect(result.nics).toMatchObject({ a: { pfc_received: { 3: 6 } }, c: { np_cnp_sent: 8, pfc_received: {} } });
    const link = (from: string, to: string) => result.links?.find((one) => one.from === from && one.to === to);
    expect(result.links).toHaveLength(6);
    expect(link("sw", "c")).toMatchObject({ rate_bps: 10e9, packets: 900, pause_time_s: { 3: 5e-6 } });
    expect(link("sw", "c")?.utilisation).toBeCloseTo(1, 9);
    expect(link("b", "sw")).toMatchObject({ packets: 0, utilisation: 0, pause_time_s: { 3: 9e-6 } });
    expect(link("sw", "b")).toMatchObject({ packets: 5, lost: 2 });
  });

  it("accounts for every frame, those in the network included, and is not valid when some are missing", async () => {
    const cells = () => ({
      "nics.0.tx_packets": 100,
      "nics.2.rx_packets": 80,
      "switch_ports.1.drop_no_route": 3,
      "links.0.lost": 1,
      "links.1.corrupted": 2,
      "links.2.duplicated": 4,
    });
    const good = await run(incast(), { cells, packets: 20 });
    expect(good.result.frames).toEqual({
      sent: 100,
      received: 80,
      dropped: 3,
      duplicated: 4,
      impaired: 3,
      in_network: 18,
      missing: 0,
    });
    const bad = await run(incast(), { cells, packets: 10 });
    expect(bad.result.frames).toMatchObject({ in_network: 10, missing: 8 });
    expect(bad.result.fidelity).toMatchObject({ valid: false, reasons: ["8 frames are not accounted for"] });
  });

  it("stops where it is when aborted, with what there is, and says so", async () => {
    const abort = new AbortController();
    const cells = (now: number) => ({ ...kCarried.cells(), "receivers.0.rx_bytes": now });
    const fake = new FakeSimulation({ step: 250_000, cells });
    const running = runSimulation(incast(), { signal: abort.signal }, fake.addon);
    // Two slices: to the end of the warm-up, and 250 us more.
    while (fake.runs.length < 2) await new Promise(setImmediate);
    abort.abort();
    const { result, complete } = await running;
    expect(complete).toBe(false);
    expect(result).toMatchObject({
      duration_s: 0.001,
      until_s: 0.00045,
      fidelity: { valid: false, reasons: ["stopped at 450 us of 1 ms"] },
    });
    expect(result.flows[0]?.goodput_bps).toBeCloseTo(8e9, 0);
    expect(fake.closed).toBe(1);
  });

  it("has a result also when aborted before it began", async () => {
    const { result, complete, series } = await run(incast(), {}, { signal: AbortSignal.abort() });
    expect({ complete, goodput: result.totals.goodput_bps }).toEqual({ complete: false, goodput: 0 });
    expect(series.time_s).toEqual([0]);
  });

  it("is not valid where no frame was sent", async () => {
    const { result, complete } = await run();
    expect(complete).toBe(true);
    expect(result.fidelity).toMatchObject({ valid: false, reasons: ["nothing to judge: no frame was sent"] });
    expect(
      renderReport(
        { result, series: { interval_s: 1, time_s: [], flows: {}, queues: {} }, source: undefined },
        new Date(0),
      ),
    ).toContain("The run has no figures.");
  });

  it("ends at `until`, complete and valid", async () => {
    const { fake, result, complete, series } = await run(incast(), kCarried, { until: 500_000 });
    expect(fake.runs.at(-1)?.until).toBe(500_000);
    expect(complete).toBe(true);
    expect(result).toMatchObject({ duration_s: 0.001, until_s: 0.0005, fidelity: { valid: true } });
    expect(series.time_s.at(-1)).toBeCloseTo(0.0005, 12);
    const beyond = await run(incast(), {}, { until: 5e6 });
    expect(beyond.fake.runs.at(-1)?.until).toBe(1e6);
    expect(beyond.result).not.toHaveProperty("until_s");
  });

  it("changes service rates when virtual time has come there, and goes on", async () => {
    const changes = [
      { at: "500us", switch: "sw", port: "c", rate: "2Gbps" },
      { at: "200us", switch: "sw", port: "c", rate: "9Gbps" },
      { at: "500us", switch: "sw", port: "c", priority: 0, rate: "1Gbps" },
      { switch: "sw", port: "c", rate: "8Gbps" },
    ];
    const { fake } = await run(incast({ changes }));
    expect(fake.config?.switches[0]?.ports.map((port) => port.priority_rates?.[3])).toEqual([
      undefined,
      undefined,
      8e9,
    ]);
    expect(fake.reconfigured.map(({ at, index }) => [at, index])).toEqual([
      [200_000, 0],
      [500_000, 0],
    ]);
    expect(fake.reconfigured.map(({ config }) => config.ports[2]?.priority_rates)).toEqual([
      [0, 0, 0, 9e9, 0, 0, 0, 0],
      [1e9, 0, 0, 2e9, 0, 0, 0, 0],
    ]);
    expect(fake.runs.map(({ until }) => until)).toEqual([200_000, 500_000, 1e6, 1e6]);
    const cut = await run(incast({ changes }), {}, { until: 300_000 });
    expect(cut.fake.reconfigured.map(({ at }) => at)).toEqual([200_000]);
  });

  it("counts what QCN says, by congestion point and NIC", async () => {
    const qcn = { switch: { ecn: { enabled: false }, qcn: { enabled: true } }, congestion: { algorithm: "qcn" } };
    const cells = () => ({
      [`switch_priorities.${2 * 8 + 3}.cn_cp_transmitted_frames`]: 700,
      [`switch_priorities.${2 * 8 + 3}.cn_cp_transmitted_cnms`]: 9,
      "nics.0.rp_cnm_handled": 8,
      "nics.0.rp_cnm_bad_version": 1,
      "senders.0.cnp_handled": 8,
    });
    const { result, series } = await run(incast(qcn), { cells });
    expect(result).toMatchObject({ congestion_control: "qcn", profile: "802.1qau", totals: { feedback_per_s: 9000 } });
    expect(result.flows[0]).toMatchObject({ cnp_handled: 0, cnm_handled: 8 });
    expect(result.switches.sw).toMatchObject({
      cnm_sent: 9,
      congestion_points: { c: { "3": { frames: 700, cnms: 9, discarded: 0 } } },
    });
    expect(result.nics.a).toMatchObject({ rp_cnm_handled: 8, rp_cnm_refused: { bad_version: 1 } });
    expect(series.flows["x/a"]?.alpha).toBeNull();
    expect(validate(JSON.parse(JSON.stringify(result))), JSON.stringify(validate.errors)).toBe(true);
  });

  it("reports progress, and the end of it", async () => {
    const seen: SimProgress[] = [];
    await run(incast(), {}, { onProgress: (progress) => seen.push(progress) });
    expect(seen.at(-1)).toMatchObject({ now_ns: 1e6, until_ns: 1e6, hops: 2e6, flows_started: 1, eta_s: 0 });
  });

  it("makes series of records, more of them than one drain takes", async () => {
    const records = Array.from({ length: 11 }, (_, i) => [
      [i * 100_000, RecordKind.transmit, 0, 1, 1e9 + i, 2e9, 0.5, 0],
      [i * 100_000, RecordKind.receive, 0, 1, i * 1e5, i * 1.1e5, i, 0],
      [i * 100_000, RecordKind.queue, 0, 2 * 8 + 3, i, 2 * i, 0, 0],
      [i * 100_000, RecordKind.pause, 0, 3, i, 0, 0, 0],
    ]).flat();
    const padding = Array.from({ length: 5000 }, () => [0, RecordKind.receive, 0, 0, 0, 0, 0, 0]);
    const { series } = await run(incast(), { records: [...padding, ...records] });
    expect(series.flows["x/b"]?.rate_bps).toEqual(Array.from({ length: 11 }, (_, i) => 1e9 + i));
    expect(series.flows["x/b"]?.goodput_bps?.slice(1).map(Math.round)).toEqual(Array(10).fill(8e9));
    expect(series.queues["sw:c:3"]?.max_bytes?.[4]).toBe(8);
    expect(series.pauses?.["sw:a:3"]?.slice(1)).toEqual(Array(10).fill(1));
    expect(series.cnps?.c?.at(-1)).toBe(1);
  });

  it("frees the simulation when something fails, and refuses a trace of nowhere before it makes one", async () => {
    const fake = new FakeSimulation({
      step: 1e6,
      cells: () => {
        throw new Error("broken");
      },
    });
    const signal = new AbortController().signal;
    await expect(runSimulation(incast(), { signal }, fake.addon)).rejects.toThrow("broken");
    expect(fake.closed).toBe(1);
    const trace = [{ target: "nowhere", file: "/tmp/x.pcapng" }];
    const never = new FakeSimulation({ step: 1 });
    await expect(runSimulation(incast(), { signal, trace }, never.addon)).rejects.toThrow(
      "--trace nowhere: no such link or device",
    );
    expect(never.config).toBeUndefined();
  });
});

describe("flow completion times", () => {
  const ends = () =>
    incast({ traffic: [{ id: "x", from: ["a", "b"], to: "c", bytes: "2MB", message: "1MB", start: "100us" }] });

  it("are of whole flows, from their start to their last message", async () => {
    const finished = [
      [0, 0, 1e6, 100_000, 400_000],
      [1, 0, 1e6, 100_000, 500_000],
      [0, 1, 1e6, 100_000, 2_100_000],
    ];
    const cells = (now: number) => ({ "receivers.0.rx_bytes": now === 1e6 ? 2e6 : 0 });
    const { flowTable, result } = await run(ends(), { finished, cells });
    expect(flowTable).toEqual([
      expect.objectContaining({ flow: 0, id: "x/a", from: "a", to: "c", message: 0, bytes: 2e6, end_ns: 2_100_000 }),
    ]);
    const [row] = flowTable;
    expect(row?.slowdown).toBeCloseTo(2e6 / (row?.ideal_ns ?? 0), 9);
    // 2 MB take 1.73 ms of a 10 Gb/s link.
    expect(row?.ideal_ns).toBeGreaterThan(1.7e6);
    expect(result.fct).toMatchObject({ count: 1, incomplete: 1, fct_us: { p50: 2000 } });
    expect(result.fct?.bins).toEqual([expect.objectContaining({ above_bytes: 1e6, up_to_bytes: 10e6, count: 1 })]);
    // Goodput is that of the 2 ms of the flow's own life.
    expect(result.flows[0]?.goodput_bps).toBeCloseTo(8e9, 0);
  });

  it("are of each message where messages have their own sizes", async () => {
    const scenario = ends();
    const [one] = scenario.flows;
    if (one === undefined) throw new Error("a flow");
    const loop = { ...scenario, flows: [{ ...one, bytes: undefined, sizes: [5000, 200_000, 7] }] };
    const finished = [
      [0, 0, 5000, 100_000, 120_000],
      [0, 1, 200_000, 120_000, 400_000],
    ];
    const { flowTable, result } = await run(loop, { finished });
    expect(flowTable.map(({ message, bytes, start_ns }) => [message, bytes, start_ns])).toEqual([
      [0, 5000, 100_000],
      [1, 200_000, 120_000],
    ]);
    expect(result.fct).toMatchObject({ count: 2, incomplete: 1 });
    expect(result.fct?.bins.map(({ above_bytes, count }) => [above_bytes, count])).toEqual([
      [0, 1],
      [100_000, 1],
    ]);
  });

  it("are not there when no flow has an end", async () => {
    const { flowTable, result } = await run(incast(), { finished: [[0, 0, 4e6, 0, 500_000]] });
    expect(flowTable).toEqual([]);
    expect(result).not.toHaveProperty("fct");
  });

  it("leave out rows of flows beyond the first thousand, but not their share", async () => {
    const many = fatTree({ traffic: [{ id: "x", from: "h1-1-1", to: "h2-1-1", qps: 1003 }] });
    const cells = (now: number) => ({ "receivers.1002.rx_bytes": now });
    const { result } = await run(many, { cells, step: 1e9 });
    expect(result.flows).toHaveLength(1000);
    expect(result.flows_omitted).toBe(3);
    expect(result.totals.goodput_bps).toBeCloseTo(8e9, 0);
  });
});
