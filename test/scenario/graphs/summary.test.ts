import { describe, expect, it } from "vitest";
import { GraphBuilder, kAny } from "../../../src/scenario/graphs/graph.js";
import { summarize } from "../../../src/scenario/graphs/summary.js";

describe("summaries", () => {
  it("count operations, bytes and time, by phase, and for the ranks that have most", () => {
    const graph = new GraphBuilder("g", 3);
    graph.enterPhase("forward");
    graph.send(0, 1, 100, 0);
    graph.receive(1, 0, 200, 0);
    graph.calculate(1, 7);
    graph.enterPhase("");
    graph.send(2, 1, 300, 0);
    graph.receive(1, kAny, 300, 0);
    graph.calculate(2, 9);
    expect(summarize(graph.build())).toEqual({
      ranks: 3,
      operations: 6,
      sends: 2,
      receives: 2,
      calculations: 2,
      bytes: 400,
      calculation: 16,
      dependencies: 0,
      most: {
        operations: { rank: 1, value: 3 },
        bytes: { rank: 2, value: 300 },
        calculation: { rank: 2, value: 9 },
      },
      depth: 1,
      criticalCalculation: 9,
      phases: [
        { name: "", operations: 3, bytes: 300, calculation: 9 },
        { name: "forward", operations: 3, bytes: 100, calculation: 7 },
      ],
    });
  });

  it("have no phases where there are none", () => {
    expect(summarize(new GraphBuilder("g", 1).build())).toMatchObject({ phases: [], depth: 0, criticalCalculation: 0 });
  });

  it("follow the longest chain over dependencies and messages", () => {
    const graph = new GraphBuilder("g", 2);
    const before = graph.calculate(0, 50);
    const send = graph.send(0, 1, 8, 0);
    graph.requires(send, before);
    const receive = graph.receive(1, 0, 8, 0);
    const after = graph.calculate(1, 20);
    graph.requires(after, receive);
    // It need only have started: that is before the message comes.
    const beside = graph.calculate(1, 60);
    graph.irequires(beside, receive);
    // The longest chain: before, send, receive, after.
    expect(summarize(graph.build())).toMatchObject({ depth: 4, criticalCalculation: 70 });
    graph.requires(graph.calculate(1, 5), beside);
    expect(summarize(graph.build())).toMatchObject({ depth: 4, criticalCalculation: 70 });
    graph.requires(graph.calculate(1, 15), beside);
    expect(summarize(graph.build())).toMatchObject({ criticalCalculation: 75 });
  });

  it("grow with the length of a chain from rank to rank", () => {
    const ranks = 50;
    const graph = new GraphBuilder("g", ranks);
    // Ranks in descending order, so that none is known when its successor is added.
    for (let rank = ranks - 1; rank >= 0; rank--) {
      const calculation = graph.calculate(rank, 3);
      if (rank > 0) graph.requires(calculation, graph.receive(rank, rank - 1, 1, 0));
      if (rank < ranks - 1) graph.requires(graph.send(rank, rank + 1, 1, 0), calculation);
    }
    expect(summarize(graph.build())).toMatchObject({ depth: 3 * ranks - 2, criticalCalculation: 3 * ranks });
  });
});
