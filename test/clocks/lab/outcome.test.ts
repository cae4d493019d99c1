import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { composeResult, endOf, frameAccount, type MeasuredOutcome } from "../../../src/clocks/lab/outcome.js";
import { kRecordWords, RecordKind } from "../../../src/native/types.js";
import {
  type Counter,
  calmOutcome,
  constant,
  counterTable,
  dcqcnOf,
  evidence,
  kCarried,
  recorderOf,
  smallScenario,
} from "./evidence.js";

const validate = new Ajv2020({ strict: false }).compile(JSON.parse(readFileSync("schema/result.schema.json", "utf8")));
const judge = (changes: Parameters<typeof evidence>[0]) => composeResult(evidence(changes)).fidelity;
const outcomes = (changes: Partial<MeasuredOutcome>) => ({ outcomes: [calmOutcome(), calmOutcome(changes)] });

describe("frameAccount", () => {
  const nic = (name: string, device: string, value: number): Counter => [name, { device }, value];
  const qp = (name: string, device: string, value: number): Counter => [
    name,
    { device, qpn: "0x000011", flow: "x" },
    value,
  ];
  const port = (name: string, value: number, peer = "a"): Counter => [name, { switch: "sw", port: peer }, value];
  const account = (switches: Counter[], nics: Counter[]) =>
    frameAccount(smallScenario(), counterTable(switches), counterTable(nics));

  it("counts what NICs send and receive once, whatever their queue pairs count", () => {
    const nics = [
      nic("tx_packets", "a", 100),
      qp("tx_packets", "a", 90),
      nic("rx_packets", "c", 100),
      qp("rx_packets", "c", 80),
    ];
    // A switch counts the same frames again on their way.
    expect(account([port("rx_packets", 100), port("tx_packets", 100, "c")], nics)).toEqual({
      sent: 100,
      received: 100,
      dropped: 0,
      duplicated: 0,
      impaired: 0,
      missing: 0,
    });
  });

  it("adds up all reasons to drop, copies of floods, and faults of every port", () => {
    const nics = [
      nic("tx_packets", "a", 100),
      nic("rx_packets", "c", 87),
      ["lost", { device: "c", port: "sw" }, 4] as Counter,
    ];
    const switches = [
      port("drop_lossy_threshold", 7),
      port("drop_no_route", 2, "b"),
      port("flood_copies", 3),
      ["lost", { device: "sw", port: "a" }, 2] as Counter,
      ["overflow", { device: "sw", port: "a" }, 1] as Counter,
      ["duplicated", { device: "sw", port: "b" }, 1] as Counter,
    ];
    expect(account(switches, nics)).toEqual({
      sent: 100,
      received: 87,
      dropped: 9,
      duplicated: 4,
      impaired: 7,
      missing: 1,
    });
  });

  it("includes the CNMs that congestion points made", () => {
    const made = ["cn_cp_transmitted_cnms", { switch: "sw", port: "c", priority: "3" }, 3] as Counter;
    expect(account([made], [nic("tx_packets", "a", 100), nic("rx_packets", "c", 103)])).toMatchObject({
      sent: 103,
      missing: 0,
    });
  });

  it("misses what the host of a NIC did not send", () => {
    const nics = [nic("tx_packets", "a", 90), nic("tx_port_down", "a", 4), nic("host_tx_errors", "a", 6)];
    const switches = [port("tx_port_down", 5, "c"), port("host_tx_errors", 5, "c")];
    expect(account(switches, [...nics, nic("rx_packets", "c", 80)])).toMatchObject({ sent: 100, missing: 20 });
  });

  it("does not take a queue pair's gaps for faults on purpose", () => {
    expect(account([], [nic("tx_packets", "a", 10), nic("rx_packets", "c", 10), qp("lost", "c", 5)])).toMatchObject({
      impaired: 0,
      missing: 0,
    });
  });

  it("includes MAC control, which faults hit as well", () => {
    const nics = [nic("rx_pfc_frames", "a", 7), nic("rx_unsupported_op_phy", "a", 1), nic("tx_pfc_frames", "c", 3)];
    const switches = [
      port("tx_pfc_frames", 10),
      port("rx_pfc_frames", 2, "c"),
      port("rx_pause_frames", 0, "c"),
      port("rx_mac_control_unknown", 1, "c"),
    ];
    const faults: Counter[] = [["lost", { device: "a", port: "sw" }, 2]];
    expect(account(switches, [...nics, ...faults])).toMatchObject({ sent: 13, received: 11, impaired: 2, missing: 0 });
  });
});

describe("fidelity", () => {
  it("is valid when the host kept up", () => {
    expect(judge({})).toMatchObject({
      valid: true,
      reasons: [],
      loop_gap_us: { p50: 50, p99: 50, max: 50 },
      host_drops: 0,
    });
  });

  it("takes the worse of the two workers", () => {
    const slow = calmOutcome({ loop_gap: { ...constant(50_000), p50: 60_000, p99: 80_000, max: 900_000 } });
    expect(judge({ outcomes: [slow, calmOutcome()] }).loop_gap_us).toEqual({ p50: 60, p99: 80, max: 900 });
    expect(judge({ outcomes: [calmOutcome(), slow] }).loop_gap_us).toEqual({ p50: 60, p99: 80, max: 900 });
  });

  it.each<[string, Parameters<typeof evidence>[0], RegExp]>([
    ["frames that the host lost", outcomes({ host_drops: 3 }), /^the host lost 3 frames/],
    [
      "frames that are missing",
      { nics: counterTable([["tx_packets", { device: "a" }, 4]]) },
      /^4 frames are not accounted for$/,
    ],
    [
      "frames too many",
      { nics: counterTable([["rx_packets", { device: "c" }, 4]]) },
      /^-4 frames are not accounted for$/,
    ],
    [
      "no descriptors at a NIC",
      { nics: counterTable([...kCarried, ["tx_no_descriptor", { device: "a" }, 2]]) },
      /^packet memory ran out 2 times$/,
    ],
    [
      "no descriptors for CNMs",
      { switches: counterTable([["cn_cp_unsent_cnms", { switch: "sw", port: "c", priority: "3" }, 2]]) },
      /^packet memory ran out 2 times$/,
    ],
    [
      "a gap beyond the allowance",
      outcomes({ loop_gap: { ...constant(50_000), max: 5_000_001 }, longest_gap_at: 30e6 }),
      /^the poll loop was away for 5.00 ms at 3 ms of 100 ms, more than the allowed lateness of 5.00 ms \(fidelity.lateness\)$/,
    ],
    ["samples that were lost", outcomes({ record_overflow: 8 }), /^8 samples were lost/],
    ["no frame at all", { nics: counterTable([]) }, /^nothing to judge: no frame was sent$/],
    [
      "a poll loop that was never seen to turn",
      outcomes({ loop_gap: constant(0, 0) }),
      /^a poll loop has no gaps to judge this host by$/,
    ],
    ["a worker that failed", outcomes({ failure: "out of memory" }), /^a worker failed: out of memory$/],
  ])("is not valid with %s", (_name, changes, reason) => {
    const { valid, reasons } = judge(changes);
    expect(valid).toBe(false);
    expect(reasons).toEqual([expect.stringMatching(reason)]);
  });

  it("says once of frames that the host lost that they are missing", () => {
    const missing = (count: number) =>
      judge({ ...outcomes({ host_drops: 3 }), nics: counterTable([["tx_packets", { device: "a" }, count]]) }).reasons;
    expect(missing(3)).toEqual([expect.stringMatching(/^the host lost 3 frames/)]);
    expect(missing(7)).toEqual([expect.any(String), "4 more frames are not accounted for"]);
  });

  it("counts a switch without descriptors as a drop and says why", () => {
    const switches = counterTable([["drop_no_descriptor", { switch: "sw", port: "a" }, 5]]);
    const nics = counterTable([["tx_packets", { device: "a" }, 5]]);
    expect(judge({ switches, nics }).reasons).toEqual(["packet memory ran out 5 times"]);
  });

  it("allows gaps up to the allowance", () => {
    expect(judge(outcomes({ loop_gap: { ...constant(50_000), max: 5_000_000 } })).valid).toBe(true);
  });

  it("bounds the 99th percentile by half the control loop at this scale, under DCQCN only", () => {
    const scenario = smallScenario();
    const half = (dcqcnOf(scenario).min_time_between_cnps * 10) / 2;
    const at = (p99: number) => outcomes({ loop_gap: { ...constant(50_000), p99 } });
    expect(judge({ scenario, ...at(half) }).valid).toBe(true);
    expect(judge({ scenario, ...at(half + 1) }).reasons).toEqual([
      expect.stringMatching(/^1% of the poll loop.s gaps exceed .* half of the control loop/),
    ]);
    // However short a profile's CNP interval is, feedback takes its time on any network.
    const mlx5 = smallScenario({ congestion: { profile: "mlx5" } });
    expect(dcqcnOf(mlx5).min_time_between_cnps).toBeLessThan(10_000);
    expect(judge({ scenario: mlx5, ...at(50_000) }).valid).toBe(true);
    expect(judge({ scenario: mlx5, ...at(50_001) }).valid).toBe(false);
    const none = smallScenario({ congestion: { algorithm: "none" } });
    expect(judge({ scenario: none, ...at(half + 1) }).valid).toBe(true);
  });

  it("bounds the time in gaps of more than half the control loop, however many short ones are beside them, under DCQCN only", () => {
    const scenario = smallScenario();
    const half = (dcqcnOf(scenario).min_time_between_cnps * 10) / 2;
    // A million gaps of 1 us on average are 1 s.
    const gaps = (value: number, count: number) =>
      outcomes({
        loop_gap: {
          ...constant(300, 1e6),
          mean: 1000,
          cdf: [
            [300, 1 - count / 1e6],
            [value, 1],
          ],
        },
      });
    const most = Math.floor(0.05e9 / (half + 1));
    expect(judge({ scenario, ...gaps(half + 1, most) }).valid).toBe(true);
    expect(judge({ scenario, ...gaps(half, 2 * most) }).valid).toBe(true);
    expect(judge({ scenario, ...gaps(half + 1, 2 * most) }).reasons).toEqual([
      expect.stringMatching(/^for 10.0% of the time the poll loop was in gaps of more than half of the control loop/),
    ]);
    const none = smallScenario({ congestion: { algorithm: "none" } });
    expect(judge({ scenario: none, ...gaps(half + 1, 2 * most) }).valid).toBe(true);
  });

  it("says when the longest gap was, of the worker that had it, and how long others had the CPU", () => {
    const late = calmOutcome({
      loop_gap: { ...constant(50_000), max: 900_000 },
      longest_gap_at: 40e6,
      cpu_wait: 3e6,
    });
    for (const both of [
      [late, calmOutcome({ longest_gap_at: 7e6 })],
      [calmOutcome({ longest_gap_at: 7e6 }), late],
    ])
      expect(judge({ outcomes: both })).toMatchObject({ loop_gap_max_at_s: 0.004, cpu_wait_ms: 3 });
  });

  it("bounds the time spent in long gaps", () => {
    // 1000 gaps of 1 ms on average are 1 s: 2% are 20 gaps of 1 ms, and a gap of just 1 ms is none of them.
    const gaps = (value: number, count: number) => ({
      scenario: smallScenario({ congestion: { algorithm: "none" } }),
      ...outcomes({
        cpu_wait: 15e6,
        loop_gap: {
          ...constant(50_000, 1000),
          mean: 1e6,
          cdf: [
            [50_000, 1 - count / 1000],
            [value, 1],
          ],
        },
      }),
    });
    expect(judge(gaps(1_000_001, 19)).valid).toBe(true);
    expect(judge(gaps(1_000_000, 100)).valid).toBe(true);
    expect(judge(gaps(2_000_000, 11)).reasons).toEqual([
      "the poll loop was away for 2.2% of the time, in gaps over 1.00 ms; other threads had its CPU for 1.5%",
    ]);
  });

  it("lists each refusal of the host once, and does not judge by it", () => {
    const refused = ["nice -20 refused"];
    const { valid, tuning } = judge({
      outcomes: [calmOutcome({ tuning: refused }), calmOutcome({ tuning: refused })],
    });
    expect({ valid, tuning }).toEqual({ valid: true, tuning: ["nice -20 refused"] });
  });
});

describe("a run that was ended early", () => {
  const scenario = smallScenario();
  const ended = { at: 60e6, why: "ended by SIGINT" };

  it("is not valid, says who ended it and when, and keeps what there was", () => {
    const recorder = recorderOf(scenario);
    const words = new Float64Array(2 * kRecordWords);
    // 20 MB have arrived at 20 ms, the end of the warm-up, and 60 MB at 60 ms.
    for (const [i, [at, bytes]] of [
      [200e6, 20e6],
      [600e6, 60e6],
    ].entries()) {
      words.set([at as number, RecordKind.receive, 2, 0, bytes as number, 0, 0], i * kRecordWords);
    }
    recorder.take(words, 2);
    const nics = counterTable([...kCarried, ["np_cnp_sent", { device: "c" }, 30]]);
    const result = composeResult(evidence({ scenario, recorder, nics, ended }));
    expect(result.fidelity).toMatchObject({ valid: false, reasons: ["ended by SIGINT, at 60 ms of 100 ms"] });
    expect(result).toMatchObject({ duration_s: 0.1, until_s: 0.06, totals: { feedback_per_s: 500 } });
    // 40 MB in the 40 ms that counted.
    expect(result.flows[0]?.goodput_bps).toBeCloseTo(8e9, -7);
    expect(recorder.series(endOf({ scenario, ended })).time_s.at(-1)).toBeCloseTo(0.06, 9);
  });

  it("has no rates where the warm-up was not over", () => {
    const { flows, until_s } = composeResult(evidence({ scenario, ended: { ...ended, at: 10e6 } }));
    expect([until_s, flows[0]?.goodput_bps]).toEqual([0.01, 0]);
  });
});

describe("composeResult", () => {
  it("keeps the contract, and takes each figure from its own place", () => {
    const scenario = smallScenario();
    const recorder = recorderOf(scenario);
    const records = Array.from({ length: 11 }, (_, i) => [
      i * 100e6,
      RecordKind.receive,
      2,
      0,
      i * 5e6,
      i * 5.5e6,
      0,
      0,
    ]);
    recorder.take(Float64Array.from(records.flat()), records.length * (kRecordWords / 8));
    const nics = counterTable([
      ["tx_packets", { device: "a" }, 50],
      ["rx_packets", { device: "c" }, 47],
      ["tx_packets", { device: "a", qpn: "0x000011", flow: "x/a" }, 50],
      ["cnp_handled", { device: "a", qpn: "0x000011", flow: "x/a" }, 4],
      ["rx_packets", { device: "c", qpn: "0x000011", flow: "x/a" }, 47],
      // Three are lost, but the last left no gap.
      ["lost", { device: "c", qpn: "0x000011", flow: "x/a" }, 2],
      ["lost", { device: "c", qpn: "0x000012", flow: "x/b" }, 9],
      ["ecn_marked", { device: "c", qpn: "0x000011", flow: "x/a" }, 6],
      ["np_cnp_sent", { device: "c" }, 4],
      ["rp_cnp_handled", { device: "a" }, 4],
      ["rx_prio_pause", { device: "a", priority: "3" }, 2],
    ]);
    const port = (name: string, value: number, labels = {}): Counter => [
      name,
      { switch: "sw", port: "c", ...labels },
      value,
    ];
    const switches = counterTable([
      port("drop_lossy_threshold", 3),
      port("drop_runt", 0),
      port("wred_ecn_marked_packets", 6, { priority: "3" }),
      port("pfc_tx_packets", 2, { priority: "3" }),
      port("pfc_tx_transitions", 1, { priority: "3" }),
    ]);
    const queue = { ...constant(1000, 5), switch: "sw", port: "c", priority: 3 };
    const empty = { ...constant(0, 5), switch: "sw", port: "a", priority: 6 };
    const outcomes = [calmOutcome({ queues: [queue, empty] }), calmOutcome()];
    const result = composeResult(evidence({ scenario, recorder, nics, switches, outcomes }));

    expect(validate(JSON.parse(JSON.stringify(result))), JSON.stringify(validate.errors)).toBe(true);
    expect(result).toMatchObject({
      scenario: "small",
      clock: "wire",
      scale: 10,
      duration_s: 0.1,
      warmup_s: 0.02,
      path_mtu: 1024,
    });
    expect(Object.keys(result.switches.sw?.queues ?? {})).toEqual(["c"]);
    const [flow] = result.flows;
    expect(flow).toMatchObject({ id: "x/a", packets: 50, received: 47, lost: 3, cnp_handled: 4, ecn_marked: 6 });
    // 5 MB in each 10 ms.
    expect(flow?.goodput_bps).toBeCloseTo(4e9, 0);
    expect(flow?.wire_bps).toBeCloseTo(4.4e9, 0);
    expect(result.totals.goodput_bps).toBeCloseTo(4e9, 0);
    expect(result.totals.jain).toBeCloseTo(0.5, 9);
    expect(result.switches.sw).toMatchObject({
      drops: { lossy_threshold: 3 },
      ecn_marked: 6,
      pfc_sent: { 3: 2 },
      pauses: { 3: 1 },
      queues: { c: { 3: { mean: 1000, max: 1000 } } },
    });
    expect(result.switches.sw?.drops).not.toHaveProperty("runt");
    expect(result.nics.a).toMatchObject({ rp_cnp_handled: 4, np_cnp_sent: 0, pfc_received: { 3: 2 } });
    expect(result.nics.c).toMatchObject({ rp_cnp_handled: 0, np_cnp_sent: 4, pfc_received: {} });
    expect(result.frames).toMatchObject({ sent: 50, received: 47, dropped: 3, missing: 0 });
  });

  it("says what was changed by hand while it ran, and nothing where nothing was", () => {
    expect(composeResult(evidence())).not.toHaveProperty("changes");
    const parameterChanges = [{ at: 12.5e6, set: ["switch.ecn.kmax=1MB"] }];
    const result = composeResult(evidence({ parameterChanges }));
    expect(result.changes).toEqual([{ at_s: 0.0125, set: ["switch.ecn.kmax=1MB"] }]);
  });

  it("divides by the part of the warm run in which a flow sends", () => {
    const scenario = smallScenario({ traffic: [{ id: "late", from: "a", to: "c", start: "60ms", stop: "80ms" }] });
    const recorder = recorderOf(scenario);
    const bytes = (i: number) => Math.max(0, Math.min(i, 8) - 6) * 1e6;
    const records = Array.from({ length: 11 }, (_, i) => [
      i * 100e6,
      RecordKind.receive,
      2,
      0,
      bytes(i),
      bytes(i),
      0,
      0,
    ]);
    recorder.take(Float64Array.from(records.flat()), records.length);
    expect(composeResult(evidence({ scenario, recorder })).flows[0]?.goodput_bps).toBeCloseTo(0.8e9, 0);
  });

  it("gives 0, not NaN, for a flow that is over before the warm-up is", () => {
    const scenario = smallScenario({ traffic: [{ id: "early", from: "a", to: "c", stop: "10ms" }] });
    expect(composeResult(evidence({ scenario })).flows[0]).toMatchObject({ goodput_bps: 0, wire_bps: 0 });
  });
});
