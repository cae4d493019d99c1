/** Charts and their curves: of one finished run, and of several over each other. */
import { describe, expect, it } from "vitest";
import { pageRuns } from "../../src/result/report/page_data.js";
import type { Result, Series } from "../../src/result/result.js";
import type { SavedSource } from "../../src/result/saved_run.js";
import { areBanded } from "../../web/src/charts/bands.js";
import { laneHeightWithin, lanePeak } from "../../web/src/charts/lanes.js";
import type { Panel } from "../../web/src/charts/panel.js";
import { panelsOf } from "../../web/src/charts/panels.js";
import { gather } from "../../web/src/data/gather.js";
import { Recording } from "../../web/src/data/recording.js";
import { sampleResult, sampleSeries } from "../result/report/sample.js";

interface Run {
  label: string;
  result: Result;
  series: Series;
  source?: SavedSource | undefined;
}

const run = (label: string, result = sampleResult(2), series = sampleSeries(result.flows.length, 50)): Run => ({
  ...{ label, result, series },
});

function panels(...runs: Run[]): Panel[] {
  return panelsWith({}, ...runs);
}

function panelsWith({ hidden = [], banded = false }: { hidden?: number[]; banded?: boolean }, ...runs: Run[]): Panel[] {
  const finished = pageRuns(runs.map((one) => ({ source: undefined, ...one }))).map((one, i) => ({
    ...one,
    key: String(i),
    recording: Recording.finished(one.result),
  }));
  const recordings = finished.map(({ recording }) => recording);
  const flowIds = [...new Set(recordings.flatMap(({ flows }) => flows))];
  return panelsOf({
    ...{ recordings, finished, flowIds, flows: new Set(flowIds) },
    ...{ hidden: new Set(hidden), banded, eventsPer: "per ms" as const },
    queueThresholds: () => [],
    congestionControl: "none",
  });
}

const idsOf = (all: readonly Panel[]) => all.map(({ id }) => id);
const panel = (all: readonly Panel[], id: string) => all.find((one) => one.id === id) as Panel;
const drawn = ({ lines }: Panel) =>
  gather(
    lines.flatMap(({ curve }) => curve ?? []),
    [0, 1e6],
    Number.POSITIVE_INFINITY,
    1e6,
  );
const source = (kmin: number): SavedSource => ({
  text: "",
  set: [],
  scenario: { switches: [{ name: "sw", ecn: { enabled: true, priorities: [3], kmin, kmax: 200_000 } }] },
});

describe("of one run", () => {
  it("have what its algorithm has, in ms, Gb/s and KB, with the thresholds of its queues", () => {
    const one = run("a", sampleResult(4));
    const all = panels({ ...one, source: source(5000) });
    expect(idsOf(all)).toEqual(["rate", "throughput", "alpha", "queue", "cdf", "events", "places-pfc"]);
    const { x, ys } = drawn(panel(all, "throughput"));
    expect(x.at(-1)).toBeCloseTo(4.9, 6);
    expect(ys[2]?.[7]).toBeCloseTo((one.series.flows["incast.3"]?.goodput_bps?.[7] as number) / 1e9, 3);
    expect(Math.max(...(drawn(panel(all, "queue")).ys[0] as number[]))).toBeGreaterThan(100);
    expect(panel(all, "queue").thresholds?.()).toEqual([
      { label: "Kmin 5 KB", value: 5 },
      { label: "Kmax 200 KB", value: 200 },
    ]);
    const rates = panel(all, "rate").lines.map(({ faint }) => faint === true);
    expect(rates).toEqual([false, false, false, false, true, true, true, true]);
    expect(panel(panels(run("b", sampleResult(20))), "rate").lines).toHaveLength(20);
  });

  it("have windows instead of rates with DCTCP, and neither without congestion control", () => {
    const series = sampleSeries(2, 50);
    series.flows = Object.fromEntries(
      Object.entries(series.flows).map(([id, { alpha, goodput_bps }]) => [
        id,
        { alpha, goodput_bps, cwnd_packets: series.time_s.map((_, i) => 10 + i) },
      ]),
    );
    const of = (congestion_control: Result["congestion_control"]) =>
      panels(run("a", { ...sampleResult(2), congestion_control }, series));
    const windows = of("dctcp");
    expect(idsOf(windows).slice(0, 4)).toEqual(["throughput", "window", "alpha", "queue"]);
    expect(drawn(panel(windows, "window")).ys[1]?.[3]).toBe(13);
    expect(idsOf(of("none")).slice(0, 2)).toEqual(["throughput", "queue"]);
  });

  it("draw the measured distribution of a queue, or that of its samples", () => {
    const result = sampleResult(1);
    const measured: [number, number][] = [
      [1000, 0.25],
      [64_000, 1],
    ];
    const sampled = panel(panels(run("a", result)), "cdf").fixed;
    expect(sampled?.x).toHaveLength(51);
    expect(sampled?.ys[0]?.[0]).toBe(0);
    expect(sampled?.ys[0]?.at(-1)).toBe(1);
    Object.assign(result.switches.sw ?? {}, { queue_cdf: { r: { "3": measured } } });
    expect(panel(panels(run("a", result)), "cdf").fixed).toEqual({
      x: [0, 1, 64],
      unit: "KB",
      ys: [[0, 0.25, 1]],
      until: 64,
    });
  });

  it("end the axis of a distribution a little beyond what is usual, and say what is longer", () => {
    const cdf = (...points: [number, number][]) => {
      const result = sampleResult(1);
      Object.assign(result.switches.sw ?? {}, { queue_cdf: { r: { "3": points } } });
      return panel(panels(run("a", result)), "cdf");
    };
    const burst = cdf([1000, 0.25], [80_000, 0.992], [1_188_000, 1]);
    expect(burst.fixed?.until).toBe(100);
    expect(burst.note).toBe(
      "Fraction of the time at or below a length; beyond the axis for 0.8 % of it, up to 1188 KB",
    );
    // Twice as long is no burst, and neither is what takes its time.
    expect(cdf([80_000, 0.992], [160_000, 1]).fixed?.until).toBe(160);
    expect(cdf([80_000, 0.98], [1_188_000, 1]).fixed?.until).toBe(1188);
  });

  it("know what was changed by hand", () => {
    const changes = [{ at_s: 0.0025, set: ["switch.ecn.kmax=1MB"] }];
    const [one] = pageRuns([{ ...run("a", { ...sampleResult(1), changes }), source: undefined }]);
    expect(one && Recording.finished(one.result).changes).toEqual([{ at: 2.5, set: ["switch.ecn.kmax=1MB"] }]);
  });

  it("tell where events happened, and leave out what there is nothing of", () => {
    const pauses = panel(panels(run("a")), "places-pfc");
    expect(pauses.lines.map(({ label }) => label)).toEqual(["sw:h1:3", "sw:h2:3"]);
    const calm = sampleSeries(2, 50);
    Object.assign(calm, { pauses: {}, marks: { "sw:r:3": calm.time_s.map(() => 0) }, cnps: {} });
    expect(idsOf(panels(run("a", sampleResult(2), calm)))).not.toContain("events");
  });

  it("have no lane of CNPs, which are counted by flow, where programs are all the traffic", () => {
    const ofPrograms = { ...sampleSeries(2, 50), flows: {}, cnps: {} };
    expect(panel(panels(run("a", sampleResult(2), ofPrograms)), "events").lanes).toEqual(["Marks", "PFC", "Drops"]);
  });

  it("have a time of their own for places of events that all came at the start", () => {
    const series = sampleSeries(2, 500);
    const places = (last: number) => {
      const counts = series.time_s.map((_, i) => (i <= last ? 1 : 0));
      return panel(
        panels(run("a", sampleResult(2), { ...series, pauses: { one: counts, two: counts } })),
        "places-pfc",
      );
    };
    expect(places(40).span).toEqual([0, 5]);
    expect(places(40).note).toContain("At the start alone");
    expect(places(200).span).toBeUndefined();
  });
});

describe("of several runs", () => {
  it("have each queue that all have, and flows in the same colour in all runs", () => {
    const all = panels(run("wire"), run("sim"));
    expect(idsOf(all)).toEqual(["rate", "throughput", "goodput", "alpha", "queue", "cdf", "events"]);
    const looks = panel(all, "goodput").lines.map(({ label, color, dash }) => [label, color, dash.length]);
    expect(looks).toEqual([
      ["incast.1, wire", "c0", 0],
      ["incast.2, wire", "c1", 0],
      ["incast.1, sim", "c0", 2],
      ["incast.2, sim", "c1", 2],
    ]);
    expect(panel(all, "queue").title).toBe("Queue depth, sw:r:3");
    expect(panel(all, "queue").lines.map(({ label, color, edge }) => [label, color, edge])).toEqual([
      ["wire, highest", "c0", "high"],
      ["wire, lowest", "c0", "low"],
      ["wire", "c0", undefined],
      ["sim, highest", "c1", "high"],
      ["sim, lowest", "c1", "low"],
      ["sim", "c1", undefined],
    ]);
    expect(panel(all, "cdf").lines.map(({ label }) => label)).toEqual(["wire", "sim"]);
  });

  it("are a mean and a band of each where flows are many", () => {
    expect([areBanded(2, 3, null), areBanded(2, 4, null), areBanded(1, 40, null), areBanded(9, 1, null)]).toEqual([
      false,
      true,
      false,
      false,
    ]);
    expect([areBanded(2, 2, false), areBanded(2, 40, true), areBanded(1, 4, false)]).toEqual([true, false, false]);
    const one = run("a", sampleResult(4));
    const rates = panel(panelsWith({ banded: true }, one, run("b", sampleResult(4))), "rate");
    expect(rates.lines.map(({ label }) => label)).toEqual([
      "a, highest",
      "a, lowest",
      "a",
      "b, highest",
      "b, lowest",
      "b",
    ]);
    expect(rates.note).toBe("Mean of 4 flows, shaded from the lowest to the highest; colour: run");
    const { ys } = drawn(rates);
    const values = Object.values(one.series.flows).map(({ rate_bps }) => (rate_bps?.[7] as number) / 1e9);
    expect(ys[0]?.[7]).toBeCloseTo(Math.max(...values), 3);
    expect(ys[1]?.[7]).toBeCloseTo(Math.min(...values), 3);
    expect(ys[2]?.[7]).toBeCloseTo(values.reduce((a, b) => a + b) / 4, 3);
  });

  it("have queues that go from the least to the greatest in each part of the time", () => {
    const one = run("a", sampleResult(1));
    const queue = panel(panels(one, run("b", sampleResult(1))), "queue");
    const { ys } = gather(
      queue.lines.flatMap(({ curve }) => curve ?? []),
      [0, 1e6],
      Number.POSITIVE_INFINITY,
      10,
    );
    const own = (one.series.queues["sw:r:3"]?.max_bytes ?? []).slice(5, 10).map((bytes) => bytes / 1000);
    expect(ys[0]?.[1]).toBeCloseTo(Math.max(...own), 2);
    expect(ys[1]?.[1]).toBeCloseTo(Math.min(...own), 2);
    expect(ys[2]?.[1]).toBeCloseTo(own.reduce((a, b) => a + b) / 5, 2);
  });

  it("have what the algorithm of any of them has", () => {
    const of = (congestion_control: Result["congestion_control"]) =>
      run(congestion_control ?? "", { ...sampleResult(2), congestion_control });
    const lanes = (...runs: Run[]) => panel(panels(...runs), "events").lanes;
    expect(lanes(of("qcn"))).toEqual(["Marks", "CNMs", "PFC", "Drops"]);
    expect(lanes(of("none"), of("qcn"))).toEqual(["Marks", "CNPs", "CNMs", "PFC", "Drops"]);
    expect(idsOf(panels(of("none"), of("qcn")))).toContain("rate");
  });

  it("keep their colours and dashes when one is hidden", () => {
    const all = panelsWith({ hidden: [0] }, run("wire"), run("sim"));
    expect(idsOf(all)).toEqual(idsOf(panels(run("wire"), run("sim"))));
    for (const { id, lines, fixed } of all) {
      expect(
        lines.every(({ label }) => label.includes("sim")),
        id,
      ).toBe(true);
      expect(fixed?.ys ?? lines, id).toHaveLength(lines.length);
    }
    expect(panel(all, "cdf").lines.map(({ color }) => color)).toEqual(["c1"]);
    expect(panel(all, "goodput").lines.map(({ dash }) => dash.length)).toEqual([2, 2]);
  });

  it("draw the longest queues where there are many, and the longest of each run where they share none", () => {
    const series = sampleSeries(1, 50);
    const { bytes = [] } = series.queues["sw:r:3"] ?? {};
    series.queues = Object.fromEntries(
      Array.from({ length: 8 }, (_, i) => [`sw:h${i}:3`, { bytes: bytes.map((length) => length * (i + 1)) }]),
    );
    const all = panels(run("a", sampleResult(1), series), run("b", sampleResult(1), series));
    const queues = all.filter(({ id }) => id.startsWith("queue"));
    expect(queues.map(({ title }) => title.split(", ")[1])).toEqual([7, 6, 5, 4, 3, 2].map((i) => `sw:h${i}:3`));
    expect(queues[0]?.note).toContain("6 of 8 queues, the longest");
    const apart = panels(run("a", sampleResult(1), series), run("b", sampleResult(1)));
    expect(panel(apart, "queue").title).toBe("Queue depth, longest queue");
  });

  it("say where thresholds differ", () => {
    const all = panels({ ...run("a"), source: source(5000) }, { ...run("b"), source: source(8000) });
    expect(panel(all, "queue").thresholds?.()).toEqual([
      { label: "Kmin 5 KB (lowest of 2)", value: 5 },
      { label: "Kmax 200 KB", value: 200 },
    ]);
  });
});

describe("lanes of events", () => {
  it("are as high as the largest after the warm-up in view, and tell the start", () => {
    const x = [1, 2, 3, 4];
    expect(lanePeak(x, [[400, 7, 9, null]], 1)).toEqual({ peak: 9, start: 400 });
    expect(lanePeak(x, [[400, 0, 0, 0]], 1)).toEqual({ peak: 400, start: undefined });
    expect(lanePeak(x, [[4, 7, 9, 8]], 1)).toEqual({ peak: 9, start: undefined });
    expect(lanePeak(x, [[4, 7, 9, 8]], 9)).toEqual({ peak: 9, start: undefined });
    expect(lanePeak([], [[]], 1)).toEqual({ peak: 0, start: undefined });
  });

  it("cut the start where the next lane begins, and nothing else", () => {
    const cut = laneHeightWithin(400, { peak: 9, start: 400 }) as number;
    expect(cut).toBeGreaterThan(3);
    expect(cut).toBeLessThan(3 / 0.8);
    expect(laneHeightWithin(9, { peak: 9, start: 400 })).toBe(3);
    expect(laneHeightWithin(9, { peak: 9, start: undefined })).toBe(3);
    expect(laneHeightWithin(null, { peak: 9, start: undefined })).toBeNull();
  });
});
