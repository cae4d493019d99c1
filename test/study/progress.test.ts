import { describe, expect, it } from "vitest";
import { PointsProgress } from "../../src/study/progress.js";
import { memoryStream } from "../cli/memory_stream.js";

/** A stream that remembers, and a clock in ms that is set by hand. */
function setup(total: number, isTTY: boolean) {
  const { stream, writes: written } = memoryStream({ isTTY });
  const clock = { now: 1000 };
  return {
    progress: new PointsProgress(stream, new Map(Array.from({ length: total }, (_, i) => [i, 1])), () => clock.now),
    written,
    clock,
  };
}

describe("progress of a sweep", () => {
  it("is a line every ten seconds where there is no terminal, with the time left at the pace so far", () => {
    const { progress, written, clock } = setup(100, false);
    progress.end(0, false);
    expect(written).toEqual([]);
    clock.now += 10_000;
    progress.end(1, true);
    progress.end(2, false);
    clock.now += 10_000;
    progress.update(3, 0.5);
    expect(written).toEqual(
      ["2 of 100 points, 1 failed, 10.0 s, 8:10 min left\n"].concat(
        "3 of 100 points, 1 failed, 20.0 s, 9:11 min left\n",
      ),
    );
  });

  it("counts what of running points is done", () => {
    const { progress, written, clock } = setup(2, false);
    progress.update(0, 0.25);
    clock.now += 10_000;
    progress.update(1, 0.75);
    expect(written).toEqual(["0 of 2 points, 10.0 s, 10.0 s left\n"]);
  });

  it("tells the time left by how long points take", () => {
    const { stream, writes } = memoryStream({ isTTY: false });
    const clock = { now: 1000 };
    const weights = new Map([
      [0, 30],
      [7, 1],
      [8, 1],
    ]);
    const progress = new PointsProgress(stream, weights, () => clock.now);
    clock.now += 20_000;
    progress.end(7, false);
    clock.now += 10_000;
    progress.update(0, 0.3);
    expect(writes).toEqual(["1 of 3 points, 20.0 s, 10:20 min left\n", "1 of 3 points, 30.0 s, 1:06 min left\n"]);
  });

  it("is one line on a terminal, out of the way of rows", () => {
    const { progress, written, clock } = setup(10, true);
    clock.now += 200;
    progress.end(0, false);
    expect(written.join("")).toContain("1 of 10 points");
    const before = written.length;
    progress.clear();
    progress.end(1, false);
    expect(written.slice(before).join("")).toContain("2 of 10 points");
    const drawn = written.length;
    progress.close();
    // The line is erased, and nothing else happens.
    expect(written.slice(drawn).join("")).not.toContain("points");
    expect(written.length).toBeGreaterThan(drawn);
  });
});
