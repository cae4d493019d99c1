import { describe, expect, it } from "vitest";
import { checkGraph } from "../../../src/scenario/graphs/check.js";
import { readOwnGraph } from "../../../src/scenario/graphs/own.js";
import { refusal, simpleExpand, words } from "./graphs.js";

const graph = (...operations: string[]) =>
  `ranks: 3\noperations:\n${operations.map((o) => `  - { ${o} }`).join("\n")}\n`;
const load = (...operations: string[]) => readOwnGraph("g.yaml", simpleExpand, graph(...operations));
const refused = (...operations: string[]) => refusal(() => load(...operations));

describe("graphs of our own form", () => {
  it("have messages and calculations with units, and what they wait for by id", () => {
    const loaded = load(
      "id: a, rank: 0, send: 1MB, to: 1, tag: 5",
      "id: b, rank: 1, receive: 1MB, from: 0, tag: 5, after: c, after_start: d",
      "id: c, rank: 1, calculate: 10us, processor: 2",
      "id: d, rank: 1, receive: 9, from: any, tag: any, after: [c], phase: last",
      "rank: 2, send: 9, to: 1",
    );
    expect(words(loaded)).toEqual([
      ["send 1000000 1 tag 5"],
      ["receive 1000000 0 tag 5 after 1, start of 2", "calculate 10000 on 2", "receive 9 any tag any after 1"],
      ["send 9 1 tag 0"],
    ]);
    expect([...loaded.line]).toEqual([3, 4, 5, 6, 7]);
    expect(loaded.phases).toEqual(["", "last"]);
    expect([...loaded.phase]).toEqual([0, 0, 0, 1, 0]);
    checkGraph(loaded);
  });

  it("have collectives, each rank of which waits for its own, and is waited for", () => {
    const loaded = load(
      "id: c, rank: 1, calculate: 1us",
      "id: all, collective: allreduce, ranks: [2, 1], size: 64, after: [c, later]",
      "id: later, rank: 2, calculate: 2us",
      "rank: 2, calculate: 3us, after: all",
      "collective: barrier",
    );
    checkGraph(loaded);
    // The simple expansion of these tests sends to the next rank of its list, and receives from the one before.
    expect(words(loaded)).toEqual([
      ["send 0 1 tag 2147483649", "receive 0 2 tag 2147483649", "calculate 0 after 0, 1"],
      [
        "calculate 1000",
        "calculate 0 after 0",
        "send 64 2 tag 2147483648 after 1",
        "receive 64 2 tag 2147483648 after 1",
        "calculate 0 after 2, 3",
        "send 0 2 tag 2147483649",
        "receive 0 0 tag 2147483649",
        "calculate 0 after 5, 6",
      ],
      [
        "calculate 0 after 4",
        "send 64 1 tag 2147483648 after 0",
        "receive 64 1 tag 2147483648 after 0",
        "calculate 0 after 1, 2",
        "calculate 2000",
        "calculate 3000 after 3",
        "send 0 0 tag 2147483649",
        "receive 0 1 tag 2147483649",
        "calculate 0 after 6, 7",
      ],
    ]);
  });

  it.each([
    [
      "rank: 0",
      "message graph g.yaml:3:5: operations.0: needs one of send, receive, calculate, collective, and has none",
    ],
    ["rank: 0, send: 1, calculate: 1", "has send and calculate"],
    ["rank: 3, send: 1, to: 0", "g.yaml:3:7: operations.0.rank: 3 is no rank"],
    ["rank: 0, send: 1, to: 4", "operations.0.to: 4 is no rank"],
    ["rank: 0, receive: 1, from: 5", "operations.0.from: 5 is no rank"],
    ["rank: 0, receive: 1, from: bob", "operations.0.from: bob is neither a rank nor any"],
    ["rank: 0, receive: 1, from: 0, tag: -1", "operations.0.tag: -1 is too small"],
    ["rank: 0, send: 1, to: any", "operations.0.to: expected a number, not any"],
    ["rank: 0, send: 1", "operations.0.to: is missing"],
    ["rank: 0, send: 1m, to: 1", "operations.0.send: 1m: unknown size unit"],
    ["rank: 0, send: 2e15, to: 1", "operations.0.send: 2000000000000000 is out of range"],
    ["rank: 0, send: 1, to: 1, tags: 1", "operations.0.tags: unknown field"],
    ["rank: 0, calculate: 1us, after: x", "g.yaml:3:32: operations.0.after: no operation has the id x"],
    ["rank: 0, calculate: 1, id: x }\n  - { id: x, rank: 1, calculate: 1", "operations.1.id: x is there twice"],
    [
      "rank: 0, calculate: 1, id: x }\n  - { rank: 1, calculate: 1, after: x",
      "operations.1.after: x is of another rank",
    ],
    ["collective: allreduce", "operations.0.size: is missing"],
    ["collective: sing, size: 1", "operations.0.collective: sing is not one of allreduce"],
    ["collective: allgather, size: 1, ranks: [0, 3]", "operations.0.ranks.1: 3 is no rank"],
    ["collective: allgather, size: 1, ranks: [0, 0]", "operations.0.ranks: a rank is there twice"],
    ["collective: broadcast, size: 1, ranks: [0, 1], root: 2", "operations.0.root: 2 is none of the ranks"],
    ["collective: allreduce, size: 1, algorithm: binomial", "operations.0: algorithm binomial"],
  ])("refuse { %s }", (operation, message) => {
    expect(refused(operation)).toContain(message);
  });

  it("are refused as a whole with their place", () => {
    expect(refusal(() => readOwnGraph("g.yaml", simpleExpand, "ranks: 0\noperations: []"))).toContain(
      "g.yaml:1:1: ranks:",
    );
    expect(refusal(() => readOwnGraph("g.yaml", simpleExpand, "ranks: 2\noperations: [4]"))).toContain(
      "operations.0: expected a mapping, not 4",
    );
    expect(refusal(() => readOwnGraph("g.yaml", simpleExpand, "a: ["))).toContain("message graph g.yaml:");
  });
});
