/** Rates that change while a switch runs, by a clock of the test's own. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RateSchedule } from "../../src/daemon/rate_schedule.js";

const change = (at: number, rate: number) => ({ at: at * 1e6, port: "a", priority: 3, rate });

describe("a schedule of rates", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** A schedule, with the changes that it has made, each with its time in ms. */
  function schedule() {
    const made: [number, number[]][] = [];
    const start = Date.now();
    const now = () => (Date.now() - start) * 1e6;
    const rates = new RateSchedule(now, (changes) => made.push([Date.now() - start, changes.map(({ rate }) => rate)]));
    return { made, rates };
  }

  it("makes each change at its time, those of one moment together, and none of those that hold from the start", () => {
    const { made, rates } = schedule();
    rates.begin([change(0, 1), change(10, 2), change(10, 3), change(25.5, 4)]);
    vi.advanceTimersByTime(9);
    expect(made).toEqual([]);
    vi.advanceTimersByTime(1000);
    expect(made).toEqual([
      [10, [2, 3]],
      [26, [4]],
    ]);
    expect(rates.since).toBe(1009e6);
  });

  it("begins anew with others, and stops", () => {
    const { made, rates } = schedule();
    rates.begin([change(10, 1), change(20, 2)]);
    vi.advanceTimersByTime(15);
    rates.begin([change(10, 3), change(20, 4)]);
    vi.advanceTimersByTime(12);
    rates.stop();
    vi.advanceTimersByTime(100);
    expect(made).toEqual([
      [10, [1]],
      [25, [3]],
    ]);
  });

  it("waits longer than a timer can", () => {
    const { made, rates } = schedule();
    const days = 40 * 86_400_000;
    rates.begin([change(days, 1)]);
    vi.advanceTimersByTime(days - 1);
    expect(made).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(made).toEqual([[days, [1]]]);
  });
});
