import { expect, it } from "vitest";
import { graphProgress } from "../../src/result/graph_progress.js";
import { GraphBuilder, type MessageGraph } from "../../src/scenario/graphs/graph.js";

/** Rank 0 calculates and sends, rank 1 receives; between them a calculation of no length. */
function pair(): MessageGraph {
  const graph = new GraphBuilder("pair", 2);
  graph.calculate(0, 100);
  graph.calculate(0, 0);
  graph.send(0, 1, 8, 0);
  graph.receive(1, 0, 8, 0);
  return graph.build();
}
const times = (...ended: number[]) => ({ ended: Float64Array.from(ended) });

it("says when each receive and calculation had ended, from the start of the graph, and when on the ideal network", () => {
  expect(graphProgress(pair(), times(1100, 1100, 1900, 1500), times(100, 100, 300, 200), 1000)).toEqual({
    steps: 2,
    reached_s: [100e-9, 500e-9],
    ideal_s: [100e-9, 200e-9],
  });
});

it("ends where not all has ended", () => {
  const { reached_s, steps } = graphProgress(pair(), times(1100, 1100, -1, -1), times(100, 100, 300, 200), 1000);
  expect([steps, reached_s]).toEqual([2, [100e-9]]);
});

it("has at most 200 steps, of which the last is the last end", () => {
  const graph = new GraphBuilder("many", 1);
  for (let i = 0; i < 1001; i++) graph.calculate(0, 1);
  const ends = times(...Array.from({ length: 1001 }, (_, i) => 1001 - i));
  const { steps, reached_s } = graphProgress(graph.build(), ends, ends, 0);
  expect(steps).toBe(200);
  expect(reached_s).toHaveLength(200);
  // Of 1001 ends the first part of 200 has six.
  expect([reached_s[0], reached_s.at(-1)]).toEqual([6e-9, 1001e-9]);
});

it("has none of a graph without receives and calculations", () => {
  expect(graphProgress(new GraphBuilder("none", 1).build(), times(), times(), 0)).toEqual({
    steps: 0,
    reached_s: [],
    ideal_s: [],
  });
});
