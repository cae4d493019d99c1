import { describe, expect, it } from "vitest";
import { checkExpanded, joined, kMostExpanded } from "../../../src/scenario/graphs/expand.js";
import { GraphBuilder } from "../../../src/scenario/graphs/graph.js";
import { refusal, words } from "./graphs.js";

describe("what collectives become", () => {
  it("has a limit, which counts what is there already", () => {
    const graph = new GraphBuilder("big.txt", 1);
    checkExpanded(graph, kMostExpanded);
    graph.calculate(0, 1);
    expect(refusal(() => checkExpanded(graph, kMostExpanded))).toBe(
      "big.txt: becomes more than 50000000 operations, and no more are taken",
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
