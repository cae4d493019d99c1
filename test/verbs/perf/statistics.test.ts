import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BandwidthMarks, latencyOf, SampleWindow } from "../../../src/verbs/perf/statistics.js";

/** perftest's definition, in full: the least of (completed[j] - posted[i]) / (j - i + 1). */
function peakOf(posted: number[], completed: number[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < posted.length; i++) {
    for (let j = i; j < completed.length; j++) {
      least = Math.min(least, ((completed[j] as number) - (posted[i] as number)) / (j - i + 1));
    }
  }
  return 1 / least;
}

describe("the peak of the bandwidth", () => {
  it("is that of the best window", () => {
    // Two messages in 10 ms, then four within 4 ms, all posted as the one before completes.
    const posted = [0, 5, 10, 11, 12, 13];
    const completed = [5, 10, 11, 12, 13, 14];
    const marks = new BandwidthMarks(6);
    posted.forEach((time, i) => {
      marks.posted(i, i + 1, time);
      marks.completed(i, i + 1, completed[i] as number);
    });
    expect(marks.peak()).toBe(1);
  });

  it("is perftest's for any order of events, and never above it when messages are many", () => {
    const steps = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(steps, fc.constantFrom(40, 4000), (gaps, announced) => {
        const posted: number[] = [];
        const completed: number[] = [];
        const marks = new BandwidthMarks(announced);
        let now = 0;
        for (const gap of gaps) {
          marks.posted(posted.length, posted.length + 1, now);
          posted.push(now);
          now += gap;
          marks.completed(completed.length, completed.length + 1, now);
          completed.push(now);
        }
        const exact = peakOf(posted, completed);
        if (announced === 40) expect(marks.peak()).toBeCloseTo(exact, 9);
        else expect(marks.peak()).toBeLessThanOrEqual(exact * (1 + 1e-9));
      }),
    );
  });

  it("is 0 when nothing was moved", () => {
    expect(new BandwidthMarks(10).peak()).toBe(0);
  });
});

describe("a run for a time", () => {
  it("counts what completes in its middle half", () => {
    const window = new SampleWindow(1000, 4);
    expect(window.end).toBe(5000);
    for (const [messages, now] of [
      [10, 1500],
      [20, 2000],
      [70, 3000],
      [90, 3900],
      [100, 4010],
      [500, 4900],
    ] as const) {
      window.count(messages, now);
    }
    expect(window.sample()).toEqual({ messages: 80, time: 2010, peak: 0 });
  });

  it("has counted nothing when nothing has completed", () => {
    expect(new SampleWindow(0, 1).sample()).toEqual({ messages: 0, time: 0, peak: 0 });
  });
});

describe("latency", () => {
  it("is half of the time between two messages of one end, without the first interval", () => {
    const latency = latencyOf([0, 5000, 5020, 5050, 5070, 5110]);
    expect(latency).toMatchObject({ min: 10, max: 20, average: 13.75, typical: 12.5 });
    // Latencies are 10, 15, 10, 20.
    expect(latency.deviation).toBeCloseTo(Math.sqrt((3.75 ** 2 + 1.25 ** 2 + 3.75 ** 2 + 6.25 ** 2) / 4), 9);
    expect(latency.p99).toBeGreaterThan(19);
  });

  it("is 0 without messages", () => {
    expect(latencyOf([1, 2])).toMatchObject({ min: 0, p99: 0 });
  });
});
