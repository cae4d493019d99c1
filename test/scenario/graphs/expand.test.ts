import { describe, expect, it } from "vitest";
import { readAicb } from "../../../src/scenario/graphs/aicb.js";
import { addCollective, algorithmsOf } from "../../../src/scenario/graphs/collectives/add.js";
import {
  checkExpanded,
  joined,
  kMostAwaited,
  kMostExpanded,
  leastOperations,
} from "../../../src/scenario/graphs/expand.js";
import { GraphBuilder } from "../../../src/scenario/graphs/graph.js";
import { readOwnGraph } from "../../../src/scenario/graphs/own.js";
import { refusal, words } from "./graphs.js";

describe("what collectives become", () => {
  it("has a limit, which counts what is there already", () => {
    const graph = new GraphBuilder("big.txt", 1);
    checkExpanded(graph, kMostExpanded);
    graph.calculate(0, 1);
    expect(refusal(() => checkExpanded(graph, kMostExpanded))).toBe(
      "big.txt: becomes more than 20000000 operations, and no more are taken",
    );
  });

  it("has at least so many operations, by every algorithm", () => {
    const operations = ["allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "barrier"] as const;
    for (const operation of operations) {
      for (const algorithm of [undefined, ...algorithmsOf(operation)]) {
        for (const count of [1, 2, 3, 8, 13]) {
          for (const bytes of [0, 1, 2, 5, 1000]) {
            const ranks = Array.from({ length: count }, (_, rank) => rank);
            const request = { operation, ranks, bytes, ...(algorithm && { algorithm }) };
            const graph = new GraphBuilder("g", count);
            addCollective(graph, request);
            expect(leastOperations(request)).toBeLessThanOrEqual(graph.operations);
          }
        }
      }
    }
  });

  it("is counted exactly where it is most: rings and all-to-all", () => {
    const ranks = { length: 8 };
    expect(leastOperations({ operation: "allreduce", ranks, bytes: 64 })).toBe(2 * 14 * 8 + 8);
    expect(leastOperations({ operation: "alltoall", ranks, bytes: 64 })).toBe(2 * 7 * 8 + 8);
  });

  it("is refused before anything is made", () => {
    const refused = (ranks: number, request: object, id = "") =>
      refusal(() =>
        readOwnGraph(
          "o.yaml",
          () => expect.unreachable(),
          `ranks: ${ranks}\noperations:\n- ${JSON.stringify(request)}\n${id}`,
        ),
      );
    const many = "o.yaml: becomes more than 20000000 operations";
    expect(refused(2500, { collective: "allreduce", size: 1 })).toContain(many);
    expect(refused(5000, { collective: "alltoall", size: "1MB" })).toContain(many);
    expect(refused(1_000_000, { collective: "broadcast", size: 1 }, "- { collective: barrier }\n".repeat(6))).toContain(
      many,
    );
    const aicb = (ranks: number, layers: number) =>
      refusal(() =>
        readAicb(
          "a.txt",
          () => expect.unreachable(),
          { ranks },
          `MICRO\n${layers}\n${"l -1 0 NONE 0 0 NONE 0 9 ALLREDUCE 8 0\n".repeat(layers)}`,
        ),
      );
    expect(aicb(2500, 1)).toContain("a.txt: becomes more than 20000000 operations");
    expect(aicb(800, 20)).toContain("a.txt: becomes more than 20000000 operations");
  });

  it("is not more because a name is there several times, and has a limit of dependencies", () => {
    const text = (names: string[]) =>
      `ranks: 3\noperations:\n- { id: b, collective: broadcast, size: 1 }\n- { collective: broadcast, size: 1, after: [${names.join()}] }\n`;
    const once = readOwnGraph("o.yaml", addCollective, text(["b"]));
    expect(readOwnGraph("o.yaml", addCollective, text(["b", "b", "b"])).dependencies).toEqual(once.dependencies);
    const graph = new GraphBuilder("g", 1);
    graph.requires(graph.calculate(0, 1), graph.calculate(0, 1));
    checkExpanded(graph, 0, kMostAwaited - 1);
    expect(refusal(() => checkExpanded(graph, 0, kMostAwaited))).toContain(
      "g: becomes more than 40000000 dependencies",
    );
  });

  it("is joined by an operation of its own only where there are several", () => {
    const graph = new GraphBuilder("g", 1);
    expect(joined(graph, 0, [])).toBeUndefined();
    const a = graph.calculate(0, 1);
    expect(joined(graph, 0, [a])).toBe(a);
    expect(joined(graph, 0, [a, graph.calculate(0, 2)])).toBe(2);
    expect(words(graph.build())).toEqual([["calculate 1", "calculate 2", "calculate 0 after 0, 1"]]);
  });
});
