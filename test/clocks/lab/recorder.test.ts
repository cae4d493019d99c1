/** Samples to series: scenario of 100 ms, a sample each 10 ms, at scale 10; wall time starts at 5 s. */
import { describe, expect, it } from "vitest";
import { kRecordWords, RecordKind } from "../../../src/native/types.js";
import type { Recorder } from "../../../src/result/recorder.js";
import { recorderOf, smallScenario } from "./evidence.js";

const kBegin = 5e9;
const kInterval = 100e6;
const kDuration = 100e6;
/** Devices of the NIC worker. */
const kHostA = 0;
const kHostC = 2;

type Sample = [sample: number, kind: number, device: number, index: number, ...values: number[]];

function recorder(): Recorder {
  return recorderOf(smallScenario(), { begin: kBegin, interval: kInterval });
}

function take(target: Recorder, ...samples: Sample[]): void {
  const words = new Float64Array(samples.length * kRecordWords);
  samples.forEach(([at, ...rest], i) => {
    words.set([kBegin + at * kInterval, ...rest], i * kRecordWords);
  });
  target.take(words, samples.length);
}

describe("Recorder", () => {
  it("gives rates in meant units, alpha as it is, and one value for each sample time", () => {
    const r = recorder();
    take(
      r,
      ...Array.from({ length: 11 }, (_, i): Sample => [i, RecordKind.transmit, kHostA, 0, 1e8 + i, 2e8 + i, i / 10]),
    );
    const series = r.series(kDuration);
    expect(series.interval_s).toBeCloseTo(0.01, 12);
    expect(series.time_s).toHaveLength(11);
    expect(series.time_s.at(-1)).toBeCloseTo(0.1, 12);
    const flow = series.flows["x/a"];
    expect(flow?.rate_bps).toEqual(Array.from({ length: 11 }, (_, i) => 1e9 + 10 * i));
    expect(flow?.target_rate_bps?.[3]).toBe(2e9 + 30);
    expect(flow?.alpha?.[7]).toBe(0.7);
    for (const list of Object.values(flow ?? {})) expect(list).toHaveLength(11);
    // The other flow had no sample: its lines are there, at zero.
    expect(series.flows["x/b"]?.rate_bps).toEqual(Array(11).fill(0));
  });

  it.each([
    ["dcqcn", ["rate_bps", "target_rate_bps", "alpha", "goodput_bps"]],
    ["qcn", ["rate_bps", "target_rate_bps", "goodput_bps"]],
    ["none", ["goodput_bps"]],
  ])("under %s has what the algorithm keeps of a flow: %s", (algorithm, fields) => {
    const r = recorderOf(smallScenario({ congestion: { algorithm } }), { begin: kBegin, interval: kInterval });
    take(r, [0, RecordKind.transmit, kHostA, 0, 1e8, 2e8, 0.5]);
    const { flows } = r.series(kDuration);
    const present = Object.entries(flows["x/a"] ?? {}).filter(([, samples]) => samples !== null);
    expect(present.map(([name]) => name)).toEqual(fields);
  });

  it("has windows as they are, packets at any scale", () => {
    const scenario = smallScenario({ transport: { type: "rc" }, congestion: { algorithm: "dctcp" } });
    const r = recorderOf(scenario, { begin: kBegin, interval: kInterval });
    take(r, [0, RecordKind.transmit, kHostA, 0, 1e8, 1e8, 0.5, 12]);
    expect(r.series(kDuration).flows["x/a"]).toMatchObject({ cwnd_packets: Array(11).fill(12) });
  });

  it("has the rate of HPCC beside its window, scaled as rates are", () => {
    const scenario = smallScenario({ transport: { type: "rc" }, congestion: { algorithm: "hpcc" } });
    const r = recorderOf(scenario, { begin: kBegin, interval: kInterval });
    take(r, [0, RecordKind.transmit, kHostA, 0, 1e8, 1e8, 0, 12]);
    const rates = Array(11).fill(1e9);
    expect(r.series(kDuration).flows["x/a"]).toMatchObject({
      cwnd_packets: Array(11).fill(12),
      rate_bps: rates,
      target_rate_bps: rates,
    });
  });

  it("passes on messages that are complete, in meant time since traffic began", () => {
    const messages: unknown[] = [];
    const completed = (...message: unknown[]) => void messages.push(message);
    const r = recorderOf(smallScenario(), { begin: kBegin, interval: kInterval, completed });
    take(r, [2, RecordKind.message, kHostC, 1, 4, 5000, kBegin + 70e6]);
    expect(messages).toEqual([[kHostC, 1, { message: 4, bytes: 5000, start: 7e6, end: 20e6 }]]);
  });

  it("tells flows apart by host and queue pair", () => {
    const r = recorder();
    take(r, [1, RecordKind.receive, kHostC, 0, 1000, 1100, 0], [1, RecordKind.receive, kHostC, 1, 2000, 2200, 0]);
    expect(r.flows.get("x/a")?.bytes).toEqual([0, 1000]);
    expect(r.flows.get("x/b")?.bytes).toEqual([0, 2000]);
    // Numbers that no queue pair has are none of ours.
    take(r, [2, RecordKind.receive, kHostC, 2, 9, 9, 9], [2, RecordKind.receive, 7, 0, 9, 9, 9]);
    expect(r.flows.get("x/a")?.bytes).toHaveLength(2);
  });

  it("makes goodput of growth, as bits of meant seconds", () => {
    const r = recorder();
    take(r, ...[0, 1, 2, 3].map((i): Sample => [i, RecordKind.receive, kHostC, 0, i * i * 1e6, 0, 0]));
    // 1, 3 and 5 MB in 10 ms each; then nothing more.
    expect(r.series(kDuration).flows["x/a"]?.goodput_bps?.slice(0, 6).map(Math.round)).toEqual([
      0, 0.8e9, 2.4e9, 4e9, 0, 0,
    ]);
  });

  it("keeps a level over samples that are missing, and lets a count grow once", () => {
    const r = recorder();
    take(r, [0, RecordKind.transmit, kHostA, 0, 1e8, 0, 0], [3, RecordKind.transmit, kHostA, 0, 3e8, 0, 0]);
    take(r, [0, RecordKind.queue, 0, 19, 500, 900, 4], [3, RecordKind.queue, 0, 19, 700, 1500, 10]);
    const series = r.series(kDuration);
    expect(series.flows["x/a"]?.rate_bps?.slice(0, 5)).toEqual([1e9, 1e9, 1e9, 3e9, 3e9]);
    expect(series.queues["sw:c:3"]?.bytes?.slice(0, 5)).toEqual([500, 500, 500, 700, 700]);
    expect(series.queues["sw:c:3"]?.max_bytes?.slice(0, 5)).toEqual([900, 900, 900, 1500, 1500]);
    expect(series.marks?.["sw:c:3"]?.slice(0, 5)).toEqual([0, 0, 0, 6, 0]);
  });

  it("puts queues and pauses under switch, peer and priority, and only probed queues", () => {
    const r = recorder();
    // Port 2 faces c; 2 * 8 + 3 is its priority 3. Port 0 faces a, whose queue nobody asked for.
    take(r, [0, RecordKind.queue, 0, 19, 1, 1, 0], [0, RecordKind.queue, 0, 3, 1, 1, 0]);
    take(r, ...[0, 1, 2].map((i): Sample => [i, RecordKind.pause, 0, 3, 2 * i]), [1, RecordKind.pause, 0, 11, 6]);
    const { queues, pauses } = r.series(kDuration);
    expect(Object.keys(queues)).toEqual(["sw:c:3"]);
    expect(pauses?.["sw:a:3"]?.slice(0, 4)).toEqual([0, 2, 2, 0]);
    expect(pauses?.["sw:b:3"]?.slice(0, 3)).toEqual([0, 6, 0]);
  });

  it("adds CNPs up by the host that sends them", () => {
    const r = recorder();
    take(
      r,
      ...[0, 1, 2].flatMap((i): Sample[] =>
        [0, 1].map((qp) => [i, RecordKind.receive, kHostC, qp, 0, 0, i * (qp + 1)]),
      ),
    );
    const { cnps } = r.series(kDuration) as { cnps?: Record<string, number[]> };
    expect(Object.keys(cnps ?? {})).toEqual(["c"]);
    expect(cnps?.c?.slice(0, 4)).toEqual([0, 3, 3, 0]);
  });

  it("reads delivered bytes between samples", () => {
    const r = recorder();
    take(r, ...[0, 1, 2].map((i): Sample => [i, RecordKind.receive, kHostC, 0, i * 1000, i * 1100, 0]));
    const { bytes, wireBytes } = r.delivered("x/a", 5e6, 15e6);
    expect(bytes).toBeCloseTo(1000, 6);
    expect(wireBytes).toBeCloseTo(1100, 6);
    expect(r.delivered("x/a", 0, 2.5e6).bytes).toBeCloseTo(250, 6);
    // Nothing is made up beyond the last sample.
    expect(r.delivered("x/a", 10e6, 90e6).bytes).toBeCloseTo(1000, 6);
    expect(r.delivered("x/b", 0, 90e6)).toEqual({ bytes: 0, wireBytes: 0 });
    expect(r.delivered("no such flow", 0, 1e6)).toEqual({ bytes: 0, wireBytes: 0 });
  });

  it("has nothing from before the start", () => {
    const r = recorder();
    take(r, [-1, RecordKind.transmit, kHostA, 0, 1, 1, 1]);
    expect(r.flows.get("x/a")?.rate).toEqual([]);
  });

  it.each([
    [0, false],
    [1, true],
  ])("takes a worker's end with %i as failure: %s", (value, failed) => {
    const r = recorder();
    take(r, [4, RecordKind.ended, 0, 0, value]);
    expect(r.failed).toBe(failed);
  });
});
