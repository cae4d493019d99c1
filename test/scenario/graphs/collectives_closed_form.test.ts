import { describe, expect, it } from "vitest";
import { addCollective, algorithmsOf, type CollectiveRequest } from "../../../src/scenario/graphs/collectives/add.js";
import { closedFormTime } from "../../../src/scenario/graphs/collectives/closed_form.js";
import { GraphBuilder } from "../../../src/scenario/graphs/graph.js";
import { kCollectiveOperations } from "../../../src/scenario/graphs/job_schema.js";
import { execute } from "./collectives_interpreter.js";

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

/** When a graph with nothing else ends. */
function executed(request: CollectiveRequest, latency: number, perByte: number): number {
  const graph = new GraphBuilder("test", request.ranks.length);
  addCollective(graph, request);
  return execute(graph.build(), latency, perByte).reduce((a, b) => Math.max(a, b), 0);
}

const kCases = kCollectiveOperations.flatMap((operation) =>
  algorithmsOf(operation).map((algorithm) => ({ operation, algorithm })),
);

describe.each(kCases)("the closed form of $operation by $algorithm", ({ operation, algorithm }) => {
  const withNodes = algorithm === "tree" || algorithm.startsWith("two-level");

  it("is the time of the graph on an ideal network, exactly, for 2 to 33 ranks", () => {
    for (let n = 2; n <= 33; n++) {
      const nodes = withNodes ? upTo(n + 1).filter((d) => d > 0 && n % d === 0) : [1];
      for (const perNode of nodes) {
        for (const [unit, channels, cut] of [
          [1, 1, 1],
          [1_000, 1, 1],
          [50, 2, 3],
        ] as const) {
          // Divides among ranks, a power of two of them, and trees, channels and pieces.
          const parts = 2 * n * 2 ** Math.floor(Math.log2(n)) * channels * cut;
          const bytes = unit * parts;
          const request = {
            operation,
            algorithm,
            ranks: upTo(n),
            bytes,
            channels,
            perNode,
            chunk: Math.ceil(bytes / cut),
          };
          const time = closedFormTime(request, { latency: 700, perByte: 3 });
          expect({ n, perNode, channels, time }).toEqual({ n, perNode, channels, time: executed(request, 700, 3) });
        }
      }
    }
  });

  it("is no less than the time where the data does not divide", () => {
    for (let n = 2; n <= 17; n++) {
      const request: CollectiveRequest = {
        operation,
        algorithm,
        ranks: upTo(n),
        bytes: 10_007,
        channels: 3,
        chunk: 500,
      };
      const bound = closedFormTime(request, { latency: 20, perByte: 1 });
      const time = executed(request, 20, 1);
      expect(time).toBeLessThanOrEqual(bound);
      // Parts are a byte longer at most, and a message has up to a part of each rank.
      expect(bound - time).toBeLessThanOrEqual(2 * n * n);
    }
  });
});

describe("the closed form", () => {
  const allreduce = (change: Partial<CollectiveRequest>): CollectiveRequest => ({
    ...{ operation: "allreduce", ranks: upTo(8), bytes: 8_000 },
    ...change,
  });
  const network = { latency: 100, perByte: 2 };

  it.each<[string, CollectiveRequest, number]>([
    ["a ring all-reduce: 2 (n - 1) messages of S/n", allreduce({}), 14 * (100 + 2_000)],
    ["two trees of three levels", allreduce({ algorithm: "tree" }), 6 * (100 + 8_000)],
    ["halving and doubling", allreduce({ algorithm: "halving-doubling" }), 2 * (300 + 14_000)],
    ["two levels", allreduce({ algorithm: "two-level-ring", perNode: 4 }), 2 * (100 + 4_000) + 2 * (100 + 2_000)],
    ["direct", allreduce({ algorithm: "direct" }), 2 * (100 + 2_000)],
    ["PAT", allreduce({ operation: "allgather", algorithm: "pat" }), 300 + 14_000],
    [
      "PAT, a block at a time",
      allreduce({ operation: "allgather", algorithm: "pat", chunk: 1_000 }),
      7 * (100 + 2_000),
    ],
    ["an all-to-all, all at once", allreduce({ operation: "alltoall" }), 100 + 2_000],
    ["an all-to-all, three at a time", allreduce({ operation: "alltoall", inFlight: 3 }), 3 * (100 + 2_000)],
    [
      "an all-to-all by PXN: inside, and then along the rail",
      allreduce({ operation: "alltoall", algorithm: "pxn", perNode: 4, nics: 2 }),
      2 * (100 + 2_000),
    ],
    ["a ring broadcast", allreduce({ operation: "broadcast" }), 7 * (100 + 16_000)],
    ["a binomial tree", allreduce({ operation: "broadcast", algorithm: "binomial" }), 3 * (100 + 16_000)],
    ["a barrier", allreduce({ operation: "barrier", bytes: 0 }), 300],
    ["one rank", allreduce({ ranks: [4] }), 0],
  ])("of %s", (_, request, time) => {
    expect(closedFormTime(request, network)).toBe(time);
  });

  it("follows steps of an all-to-all of unequal sizes", () => {
    const sizes = upTo(6).map((i) => upTo(6).map((j) => (i * 7 + j * 13) % 90));
    for (const inFlight of [1, 2, 5, 9]) {
      const request: CollectiveRequest = { operation: "alltoall", ranks: upTo(6), bytes: 0, sizes, inFlight };
      expect(closedFormTime(request, network)).toBe(executed(request, 100, 2));
    }
  });
});
