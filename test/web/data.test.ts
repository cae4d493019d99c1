/** What the page keeps of a run and what of it is drawn: bounded, thinned, with gaps where there was nothing. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Columns } from "../../web/src/data/columns.js";
import { type Curve, gather } from "../../web/src/data/gather.js";
import { Recording } from "../../web/src/data/recording.js";
import { parseResult } from "../../web/src/data/result_file.js";
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
    for (let i = 0; i < frames; i++) recording.append(syntheticFrame(session, i));
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
    const marks = recording.eventColumn("mark");
    const all = gather(
      [curve(recording, "max"), curve(recording, "sum", marks)],
      [0, 2000],
      Number.POSITIVE_INFINITY,
      5000,
    );
    const few = gather(
      [curve(recording, "max"), curve(recording, "sum", marks)],
      [0, 2000],
      Number.POSITIVE_INFINITY,
      90,
    );
    const [peaks, events] = few.ys as [number[], number[]];
    const [allPeaks, allEvents] = all.ys as [number[], number[]];
    expect(few.x.length).toBeLessThanOrEqual(90);
    expect(Math.max(...peaks)).toBe(Math.max(...allPeaks));
    const total = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
    expect(total(events)).toBe(total(allEvents));
  });

  it("has a gap where the stream was lost", () => {
    const recording = live(10);
    recording.interrupt();
    recording.append(syntheticFrame(session, 40));
    const [values] = gather([curve(recording, "max")], [0, 250], Number.POSITIVE_INFINITY, 1000).ys;
    expect(values?.map((value) => value === null)).toEqual([...Array(10).fill(false), true, false]);
  });

  it("lays runs with other times on one axis, each over its own span", () => {
    const short = Recording.live(session);
    const long = Recording.live(session);
    for (let i = 0; i < 10; i++) short.append({ ...syntheticFrame(session, i), t_ns: i * 2e6 });
    for (let i = 0; i < 30; i++) long.append({ ...syntheticFrame(session, i), t_ns: i * 3e6 });
    const { x, ys } = gather([curve(short, "max"), curve(long, "max")], [0, 100], Number.POSITIVE_INFINITY, 1000);
    expect(x).toEqual([...new Set([...x])].sort((a, b) => a - b));
    const [first, second] = ys as [(number | null)[], (number | null)[]];
    expect(x.filter((_, i) => first[i] !== null).at(-1)).toBe(18);
    expect(x.filter((_, i) => second[i] !== null).at(-1)).toBe(87);
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
