import { describe, expect, it } from "vitest";
import { aggregationOf, nearOffsets, patGather, patReduce } from "../../../src/scenario/graphs/collectives/pat.js";
import { doubleTree } from "../../../src/scenario/graphs/collectives/tree.js";

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

/** What ncclGetDtree() of NCCL 5067397c answers, its src/graph/trees.cc compiled as it is: the parent of each rank. */
const kParents = {
  13: [
    [-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8],
    [9, -1, 3, 5, 3, 9, 7, 5, 7, 1, 11, 0, 11],
  ],
  14: [
    [-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12],
    [1, 5, 3, 1, 3, 13, 7, 9, 7, 5, 11, 9, 11, -1],
  ],
};

describe("double binary trees", () => {
  it.each([13, 14] as const)("of %d ranks are NCCL's", (n) => {
    for (const tree of [0, 1] as const) {
      expect(upTo(n).map((rank) => doubleTree(n, tree, rank).parent ?? -1)).toEqual(kParents[n][tree]);
    }
  });

  it("have children that know their parent, and all ranks below one root", () => {
    for (let n = 1; n <= 100; n++) {
      for (const tree of [0, 1] as const) {
        const places = upTo(n).map((rank) => doubleTree(n, tree, rank));
        const below = places.flatMap(({ children }, rank) => children.map((child) => [child, rank]));
        expect(below).toHaveLength(n - 1);
        for (const [child, rank] of below) expect(places[child as number]?.parent).toBe(rank);
        expect(places.filter(({ parent }) => parent === undefined)).toHaveLength(1);
      }
    }
  });

  it("have no rank inside both, but for one where they are odd", () => {
    for (let n = 2; n <= 100; n++) {
      const inside = (tree: 0 | 1, rank: number) => doubleTree(n, tree, rank).children.length > 0;
      // Roots have one child and little to do: they do not count.
      const both = upTo(n).filter(
        (rank) => inside(0, rank) && inside(1, rank) && doubleTree(n, 0, rank).parent !== undefined,
      );
      expect(both.length).toBeLessThanOrEqual(1);
    }
  });
});

/**
 * Offsets in the order in which PatAGAlgorithm and PatRSAlgorithm of NCCL 5067397c (src/include/collectives.h, run as they are)
 * send them: ranks, blocks that fit into a message, and messages.
 */
const kGathered: readonly [number, number, number[][]][] = [
  [5, 1, [[4], [2], [3], [1]]],
  [5, 2, [[4], [2], [3], [1]]],
  [8, 1, [[4], [6], [7], [5], [2], [3], [1]]],
  [8, 2, [[4], [2, 6], [3, 7], [1, 5]]],
  [8, 4, [[4], [2, 6], [1, 3, 5, 7]]],
  [13, 1, [[8], [12], [10], [11], [9], [4], [6], [7], [5], [2], [3], [1]]],
  [13, 2, [[8], [4, 12], [6], [7], [5], [2, 10], [3, 11], [1, 9]]],
];
const kReduced: readonly [number, number, number[][]][] = [
  [5, 1, [[4], [3], [2], [1]]],
  [5, 2, [[3], [2], [1], [4]]],
  [8, 1, [[7], [6], [5], [4], [3], [2], [1]]],
  [8, 2, [[3, 7], [2, 6], [1, 5], [4]]],
  [8, 4, [[1, 3, 5, 7], [2, 6], [4]]],
  [13, 2, [[7], [6], [5], [4, 12], [3, 11], [2, 10], [1, 9], [8]]],
];

describe("PAT", () => {
  const sent = (steps: ReturnType<typeof patGather>) =>
    steps.filter(({ kind }) => kind === "send").map(({ move }) => move.offsets);

  it.each(kGathered)("gathers of %d ranks, %d blocks in a message, in NCCL's order", (ranks, chunk, offsets) => {
    expect(sent(patGather(ranks, aggregationOf(ranks, chunk, 1)))).toEqual(offsets);
  });

  it.each(kReduced)("reduces of %d ranks, %d blocks in a message, in NCCL's order", (ranks, chunk, offsets) => {
    expect(sent(patReduce(ranks, aggregationOf(ranks, chunk, 1)))).toEqual(offsets);
  });

  it("visits each offset once, and behind those above it", () => {
    for (let span = 1; span <= 1_024; span *= 2) {
      const seen = new Set([0]);
      for (const offset of nearOffsets(span)) {
        expect(seen.has(offset & (offset - 1))).toBe(true);
        expect(seen.size).toBe(seen.add(offset).size - 1);
      }
      expect(seen.size).toBe(span);
    }
  });
});
