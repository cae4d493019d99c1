/** The past of a run: in order, without doubles and holes, bounded, and as fine as there is room for. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { History, type Mark } from "../../../src/watch/dashboard/history.js";
import type { Frame, Sample, History as Told } from "../../../src/watch/dashboard/protocol.js";
import { frameOf } from "./fake_source.js";

const kMs = 1e6;

/** A history and frames of `flows` flows into it, so many wall ms apart. */
function setting(flows = 1) {
  let now = 0;
  let t_ns = 0;
  const history = new History(() => now);
  const take = (changes: Partial<Frame> = {}, ms = 50) => {
    now += ms;
    const since_ns = t_ns;
    t_ns += ms * kMs;
    const each = <T>(value: T): T[] => Array.from({ length: flows }, () => value);
    const frame = frameOf({
      ...{ since_ns, t_ns },
      flows: { rate: each(39_400_000_000), target: each(40e9), alpha: each(0.123456), throughput: each(t_ns) },
      queues: { bytes: [1], peak: [t_ns] },
      events: [{ kind: "mark", where: "sw:r:3", count: 1 }],
      ...changes,
    });
    history.take(frame);
    return frame;
  };
  return { history, take };
}

/** All parts from `mark` on. */
function parts(history: History, mark?: Mark): { told: Told; length: number; mark: Mark }[] {
  const all = [];
  for (let part = history.part(mark, false); part !== undefined; part = history.part(part.mark, false)) {
    all.push({ told: JSON.parse(part.text) as Told, length: part.text.length, mark: part.mark });
  }
  return all;
}

const samplesOf = (history: History, mark?: Mark): Sample[] => parts(history, mark).flatMap(({ told }) => told.samples);
const marksOf = (samples: readonly Sample[]) => samples.reduce((sum, { events }) => sum + (events.mark ?? 0), 0);
/** Each begins where the one before ends. */
const whole = (samples: readonly Sample[]) =>
  samples.every(({ since_ns, t_ns }, i) => since_ns < t_ns && since_ns === (samples[i - 1]?.t_ns ?? since_ns));

describe("a history", () => {
  it("has nothing before the first frame", () => {
    const { history } = setting();
    expect(history.mark).toBeUndefined();
    expect(history.part(undefined, false)).toBeUndefined();
  });

  it("has what charts need of each frame, and no more digits than they show", () => {
    const { history, take } = setting();
    take({
      events: [
        { kind: "mark", where: "sw:r:3", count: 4 },
        { kind: "mark", where: "sw:q:3", count: 2 },
        { kind: "drop", where: "sw:r:headroom_full", count: 1 },
      ],
    });
    expect(samplesOf(history)).toEqual([
      {
        since_ns: 0,
        t_ns: 50 * kMs,
        flows: { rate: [39_400_000_000], target: [40e9], alpha: [0.1235], throughput: [50 * kMs] },
        queues: { peak: [50 * kMs] },
        events: { mark: 6, drop: 1 },
      },
    ]);
    expect(history.mark).toEqual({ run: 1, t_ns: 50 * kMs });
  });

  it("is of one run only", () => {
    const { history, take } = setting();
    take();
    const mark = history.mark;
    take({ run: 2, since_ns: 0, t_ns: 7 });
    expect(samplesOf(history, mark).map(({ t_ns }) => t_ns)).toEqual([7]);
    expect(parts(history)[0]?.told.run).toBe(2);
  });

  it("keeps single frames of ten minutes where they are small, and lets the oldest go", () => {
    const { history, take } = setting();
    for (let i = 0; i < 12_500; i++) take();
    const samples = samplesOf(history);
    expect(samples).toHaveLength(12_000);
    expect(samples.at(-1)?.t_ns).toBe(12_500 * 50 * kMs);
    expect(whole(samples)).toBe(true);
    expect(marksOf(samples)).toBe(12_000);
  });

  it("puts frames together where they are large, so that ten minutes fit in 8 MB", () => {
    const { history, take } = setting(256);
    for (let i = 0; i < 12_500; i++) take();
    const samples = samplesOf(history);
    const kept = ((samples.at(-1)?.t_ns ?? 0) - (samples[0]?.since_ns ?? 0)) / 1e9;
    expect(kept).toBeGreaterThan(570);
    expect(kept).toBeLessThan(630);
    expect(parts(history).reduce((sum, { length }) => sum + length, 0)).toBeLessThan(8.1e6);
    expect(whole(samples)).toBe(true);
    // A frame has one mark and takes 50 ms.
    expect(marksOf(samples)).toBe(Math.round(kept * 20));
    const [one] = samples as [Sample];
    expect(one.queues.peak[0]).toBe(one.t_ns);
    const frames = (one.t_ns - one.since_ns) / (50 * kMs);
    expect(one.flows.throughput[0]).toBeCloseTo(one.t_ns - ((frames - 1) / 2) * 50 * kMs, -4);
  });

  it("has of a sample that is still open what it has", () => {
    const { history, take } = setting(256);
    take();
    take();
    take();
    expect(samplesOf(history).map(({ since_ns, t_ns }) => [since_ns / kMs, t_ns / kMs])).toEqual([
      [0, 50],
      [50, 150],
    ]);
  });

  it("is handed out in parts of bounded size, or just the newest part", () => {
    const { history, take } = setting(100);
    for (let i = 0; i < 2000; i++) take();
    const all = parts(history);
    expect(all.length).toBeGreaterThan(3);
    for (const { length } of all) expect(length).toBeLessThan(300_000);
    const newest = JSON.parse(history.part(undefined, true)?.text ?? "") as Told;
    expect(newest.samples.at(-1)?.t_ns).toBe(history.mark?.t_ns);
    expect(newest.samples).toEqual(samplesOf(history).slice(-newest.samples.length));
  });

  it("gives to who has a part of it the rest, once: whatever was put together meanwhile", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 40 }), fc.boolean()), { maxLength: 12 }),
        (flows, steps) => {
          const { history, take } = setting(flows);
          // As on the page, samples that are known in part are replaced.
          let had: Sample[] = [];
          let mark: Mark | undefined;
          let frames = 0;
          for (const [count, slow] of steps) {
            for (let i = 0; i < count; i++, frames++) take({}, slow ? 1000 : 50);
            for (const sample of samplesOf(history, mark)) {
              had = [...had.filter(({ t_ns }) => t_ns <= sample.since_ns), sample];
            }
            mark = history.mark;
          }
          expect(whole(had)).toBe(true);
          expect(marksOf(had)).toBe(frames);
        },
      ),
    );
  });
});
