/** Counts of statements over experiments and clocks. */
import { describe, expect, it } from "vitest";
import type { Cause, Clock } from "../experiment.js";
import { causeLines, type Judged, totalOf, totalText } from "../total.js";
import type { Ruling } from "../verdict.js";

const kAlgorithm: Cause = { id: "jump", by: "algorithm", what: "It jumps.", proof: "equation 5" };
const kUs: Cause = { id: "slow", by: "us", what: "It is slow.", proof: "nobody looked" };

function judged(quote: string, ...verdicts: [Clock, Ruling, Cause?][]): Judged["statements"][number] {
  return {
    quote,
    verdicts: verdicts.map(([clock, ruling, cause]) => ({ clock, ruling, ...(cause && { cause }) })),
  };
}

const of = (...statements: Judged["statements"]): Judged => ({ paper: "A", statements });

describe("a total", () => {
  it("counts a sentence once, whatever experiments judge it, and as short where one of its cases is", () => {
    const all = [
      of(judged("Stable.", ["sim", "holds"])),
      of(judged("Stable.", ["sim", "falls short", kAlgorithm])),
      of(judged("Stable.", ["sim", "not judged"])),
    ];
    expect(totalOf(all)).toMatchObject({ statements: 1, hold: 0, algorithm: 1, us: 0, not_judged: 0 });
    expect(totalOf([all[0] as Judged, all[2] as Judged])).toMatchObject({ statements: 1, hold: 1, not_judged: 0 });
    // The same words of another paper are another statement.
    expect(totalOf([...all, { ...(all[0] as Judged), paper: "B" }])).toMatchObject({ statements: 2, hold: 1 });
  });

  it("is of all clocks or of one; ours is ours on any of them", () => {
    const all = [of(judged("Fast.", ["sim", "falls short", kUs], ["model", "falls short", kAlgorithm]))];
    expect(totalOf(all)).toMatchObject({ algorithm: 0, us: 1 });
    expect(totalOf(all, "model")).toMatchObject({ algorithm: 1, us: 0 });
    expect(totalOf(all, "wire")).toMatchObject({ statements: 0 });
  });

  it("has what holds Weir against itself apart", () => {
    const own = (...verdicts: [Clock, Ruling][]) => ({ ...judged("Alike.", ...verdicts), itself: true });
    const total = totalOf([of(judged("Fast.", ["sim", "holds"]), own(["wire", "agrees"], ["sim", "not judged"]))]);
    expect(total).toMatchObject({ statements: 1, hold: 1, itself: { agree: 1, differ: 0, not_judged: 0 } });
    expect(totalText(total)).toBe(
      "1 statement: 1 hold, 0 fall short by the algorithm, 0 by us, 0 not judged; 1 compared with Weir itself: 1 agree, 0 differ, 0 not judged",
    );
  });

  it("tells each cause once, with its proof", () => {
    const all = [
      of(judged("Fast.", ["sim", "falls short", kAlgorithm]), judged("Fair.", ["sim", "falls short", kAlgorithm])),
      of(judged("Fast.", ["sim", "falls short", kAlgorithm]), judged("Small.", ["sim", "falls short", kUs])),
    ];
    expect(causeLines(all)).toEqual([
      "jump (by the algorithm, 2 statements): It jumps. Proof: equation 5.",
      "slow (by us, 1 statement): It is slow. Why it is ours: nobody looked.",
    ]);
  });
});
