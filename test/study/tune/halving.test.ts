import { describe, expect, it } from "vitest";
import { halve, mostCandidates, type Round, roundSeeds, runsOf } from "../../../src/study/tune/halving.js";

/** Searches among objectives of each candidate with each seed; returns the runs. */
async function search(objectives: readonly (readonly number[])[], unmet: readonly number[] = []) {
  const rounds: Round[] = [];
  const found = await halve(objectives.length, objectives[0]?.length ?? 0, async (round) => {
    rounds.push(round);
    return round.candidates.map((one) =>
      round.seeds.map((seed) => ({ unmet: unmet[one] ?? 0, objective: objectives[one]?.[seed] ?? 0 })),
    );
  });
  return { rounds, ...found };
}

describe("successive halving", () => {
  it("gives rounds one seed, one, two, four, and the rest", () => {
    expect(roundSeeds(1)).toEqual([[0]]);
    expect(roundSeeds(5)).toEqual([[0], [1], [2, 3], [4]]);
  });

  it("takes as many candidates as the runs are enough for", () => {
    // 28, 14 and 7 x 2.
    expect(runsOf(28, 4)).toBe(56);
    expect(mostCandidates(56, 4)).toBe(28);
    expect(mostCandidates(55, 4)).toBe(27);
    expect(mostCandidates(3, 4)).toBe(1);
  });

  it("drops the worse half, and never what it compares to", async () => {
    const same = (value: number) => [value, value, value, value];
    const { rounds, best, before, after } = await search([9, 4, 5, 1, 7, 2, 8, 6].map(same));
    expect(rounds).toEqual([
      { candidates: [0, 1, 2, 3, 4, 5, 6, 7], seeds: [0] },
      { candidates: [0, 3, 5, 1], seeds: [1] },
      { candidates: [0, 3], seeds: [2, 3] },
    ]);
    expect(best).toBe(3);
    expect([before, after].map((scores) => scores.map(({ objective }) => objective))).toEqual([same(9), same(1)]);
  });

  it("goes by expectations first, and keeps what is there where nothing is better", async () => {
    expect((await search([[5], [1], [7]], [1, 2, 0])).best).toBe(2);
    expect((await search([[5], [5], [6]])).best).toBe(0);
  });
});
