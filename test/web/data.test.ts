/** The page keeps a run's samples, and draws some of them: bounded, thinned, with gaps where there was nothing. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sampleOf } from "../../src/watch/dashboard/sample.js";
import { Columns } from "../../web/src/data/columns.js";
import { type Curve, gather } from "../../web/src/data/gather.js";
import { Recording } from "../../web/src/data/recording.js";
import { parseResult } from "../../web/src/data/result_file.js";
import { Meter } from "../../web/src/topology/meter.js";
import { syntheticFrame, syntheticResult, syntheticSession } from "../browser/synthetic.js";

describe("columns", () => {
  it("keep the last samples, however many come", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 700 }), fc.integer({ min: 0, max: 3000 }), (limit, count) => {
        const columns = new Columns(2, limit);
        for (let i = 0; i < count; i++) columns.append(i, (set) => set(1, i * 2));
        const kept = Array.from({ length: Math.min(limit, count) }, (_, i) => Math.max(0, count - limit) + i);
        expect([...columns.time]).toEqual(kept);
        expect([...columns.column(1)]).toEqual(kept.map((i) => i * 2));
        expect([...columns.column(0)].every(Number.isNaN)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });
});

describe("gathering", () => {
  const session = syntheticSession(2);
  const live = (frames: number) => {
    const recording = Recording.live(session);
    for (let i = 0; i < frames; i++) recording.append(sampleOf(syntheticFrame(session, i)));
    return recording;
  };
  const curve = (recording: Recording, fold: Curve["fold"], column = recording.queueColumn(0)): Curve => ({
    recording,
    columns: [column],
    across: "max",
    fold,
  });

  it("takes what is in view, and one sample more on either side", () => {
    const { x, ys } = gather([curve(live(100), "max")], [25, 50], Number.POSITIVE_INFINITY, 1000);
    expect(x.at(0)).toBe(23.75);
    expect(x.at(-1)).toBe(51.25);
    expect(ys[0]).toHaveLength(x.length);
  });

  it("leaves out what came after the view was paused", () => {
    const { x } = gather([curve(live(100), "max")], [0, 250], 50, 1000);
    expect(x.at(-1)).toBe(50);
  });

  it("thins so that no peak and no event is lost", () => {
    const recording = live(1000);
    const curves = [curve(recording, "max"), curve(recording, "per ms", recording.eventColumn("mark"))];
    const [all, few] = [5000, 90].map((most) => gather(curves, [0, 2000], Number.POSITIVE_INFINITY, most));
    expect(few?.x.length).toBeLessThanOrEqual(90);
    const most = (gathered = few) => Math.max(...((gathered?.ys[0] ?? []) as number[]));
    expect(most(few)).toBe(most(all));
    const total = (gathered = few) => {
      const { x = [], ys = [] } = gathered ?? {};
      return ys[1]?.reduce((sum: number, value, i) => sum + (value ?? 0) * ((x[i] as number) - (x[i - 1] ?? 0)), 0);
    };
    expect(total(few)).toBeCloseTo(total(all) ?? 0, 6);
    expect(total(all)).toBeGreaterThan(10_000);
  });

  it("says the same of events and throughput however long the samples are", () => {
    const recording = Recording.live(session);
    const frame = { ...syntheticFrame(session, 0), flows: { rate: [], target: [], alpha: [], throughput: [8e9] } };
    const during = (from: number, to: number, count: number) =>
      recording.append({ ...sampleOf(frame), since_ns: from * 1e6, t_ns: to * 1e6, events: { mark: count } });
    during(0, 1000, 200);
    for (let at = 1000; at < 2000; at += 50) during(at, at + 50, 10);
    const curves = [
      curve(recording, "per s", recording.eventColumn("mark")),
      curve(recording, "per ms", recording.eventColumn("mark")),
      curve(recording, "mean", recording.flowColumn(0, "throughput")),
    ];
    for (const most of [1000, 5]) {
      const { ys } = gather(curves, [0, 2000], Number.POSITIVE_INFINITY, most);
      const [perSecond, perMs, mean] = ys.map((values) => new Set(values.map((v) => v && Number(v.toPrecision(9)))));
      perSecond?.delete(null);
      expect(perSecond).toEqual(new Set([200]));
      expect(perMs?.has(0.2)).toBe(true);
      expect(mean?.has(8)).toBe(true);
    }
    expect(recording.meanThroughput(0)).toBeCloseTo(8, 6);
  });

  it("has a gap where frames are missing", () => {
    const recording = live(10);
    recording.append(sampleOf(syntheticFrame(session, 40)));
    const { x, ys } = gather([curve(recording, "max")], [0, 250], Number.POSITIVE_INFINITY, 1000);
    expect(ys[0]?.map((value) => value === null)).toEqual([true, ...Array(10).fill(false), true, false]);
    expect(x.slice(-3)).toEqual([12.5, 50, 51.25]);
  });

  it("has everything once, whatever part of the past comes again", () => {
    const recording = live(10);
    const { since_ns } = syntheticFrame(session, 7);
    const [known, inPart, next] = [9, 11, 12].map((i) => sampleOf(syntheticFrame(session, i)));
    expect(known && recording.append(known)).toBe(false);
    // The frames 7 to 11, put together.
    expect(inPart && recording.append({ ...inPart, since_ns, events: { mark: 100 } })).toBe(true);
    expect(next && recording.append({ ...next, events: { mark: 1 } })).toBe(true);
    const { x, ys } = gather(
      [curve(recording, "per ms", recording.eventColumn("mark"))],
      [8, 250],
      Number.POSITIVE_INFINITY,
      1000,
    );
    expect(x).toEqual([7.5, 8.75, 15, 16.25]);
    expect(ys[0]?.slice(2)).toEqual([100 / 6.25, 1 / 1.25]);
  });

  it("keeps what there is when a switch's queues become more, and not when they are others", () => {
    const recording = live(10);
    expect(recording.extend(["sw:r:4"])).toBe(false);
    expect(recording.extend(["sw:r:3", "sw:r:4"])).toBe(true);
    recording.append({ ...sampleOf(syntheticFrame(session, 10)), queues: { peak: [1000, 2000] } });
    const { ys } = gather(
      [0, 1].map((queue) => curve(recording, "max", recording.queueColumn(queue))),
      [0, 250],
      Number.POSITIVE_INFINITY,
      1000,
    );
    expect(ys[0]?.filter((value) => value !== null)).toHaveLength(11);
    expect(ys[1]?.filter((value) => value !== null)).toEqual([2]);
  });

  it("lays runs with other times on one axis, each over its own span", () => {
    const short = Recording.live(session);
    const long = Recording.live(session);
    for (let i = 0; i < 10; i++)
      short.append({ ...sampleOf(syntheticFrame(session, i)), since_ns: (i - 1) * 2e6, t_ns: i * 2e6 });
    for (let i = 0; i < 30; i++)
      long.append({ ...sampleOf(syntheticFrame(session, i)), since_ns: (i - 1) * 3e6, t_ns: i * 3e6 });
    const { x, ys } = gather([curve(short, "max"), curve(long, "max")], [0, 100], Number.POSITIVE_INFINITY, 1000);
    expect(x).toEqual([...new Set([...x])].sort((a, b) => a - b));
    const [first, second] = ys as [(number | null)[], (number | null)[]];
    expect(x.filter((_, i) => first[i] !== null).at(-1)).toBe(18);
    expect(x.filter((_, i) => second[i] !== null).at(-1)).toBe(87);
  });
});

describe("the load of links", () => {
  const session = syntheticSession(1);
  const link = { forward_bps: 0, backward_bps: 0, forward_pauses: 0, backward_pauses: 0, marks: 1 };

  it.each([
    ["a lab's frames, at scale 40", 40, 1.25e6, 20],
    ["a daemon's", 1, 50e6, 20],
    ["a NIC's with many queue pairs", 1, 200e6, 5],
  ])("counts marks of the last second: %s", (_, scale, step, marks) => {
    const meter = new Meter(scale);
    for (let i = 0; i < 50; i++) {
      meter.take({ ...syntheticFrame(session, 0), since_ns: i * step, t_ns: (i + 1) * step, links: [link] });
    }
    expect(meter.load(0).marks).toBe(marks);
  });

  it("is the mean over a quarter of a second, by time", () => {
    const meter = new Meter(1);
    const during = (since_ms: number, t_ms: number, forward_bps: number) =>
      meter.take({
        ...syntheticFrame(session, 0),
        ...{ since_ns: since_ms * 1e6, t_ns: t_ms * 1e6, links: [{ ...link, forward_bps }] },
      });
    during(0, 1000, 7e9);
    during(1000, 1100, 1e9);
    expect(meter.load(0).forward_bps).toBeCloseTo((7e9 * 1000 + 1e9 * 100) / 1100, 0);
    during(1100, 1400, 3e9);
    expect(meter.load(0).forward_bps).toBe(3e9);
  });
});

describe("files", () => {
  it("of any content give a result or a sentence, and never throw", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const read = parseResult(text, "x.json");
        expect("result" in read || read.error.startsWith("x.json: ")).toBe(true);
      }),
    );
  });

  it("with one field of any other kind, too", () => {
    const good = syntheticResult("x");
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(good)), fc.jsonValue(), (field, value) => {
        const read = parseResult(JSON.stringify({ ...good, [field]: value }), "x.json");
        if ("result" in read) expect(() => Recording.finished(read.result)).not.toThrow();
        else expect(read.error).toContain("not a result of weir");
      }),
    );
  });
});
