/**
 * What LogGOPSim's txt2bin (spcl/LogGOPSim 76451de) made of schedules of our own, which stand beside its files: processors, any
 * source and any tag, tags and sizes beyond 2^31 and 2^32, operations that wait for later ones; two channels; twenty ranks.
 */
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readGoalBinary } from "../../../src/scenario/graphs/goal_binary.js";
import { readGoalText } from "../../../src/scenario/graphs/goal_text.js";
import type { MessageGraph } from "../../../src/scenario/graphs/graph.js";
import { columns } from "./graphs.js";

const fixture = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));

/** The binary form lists dependencies from the other end, so in another order. */
function inOrder(graph: MessageGraph) {
  for (let i = 0; i < graph.kind.length; i++)
    graph.dependencies.subarray(graph.firstDependency[i], graph.firstDependency[i + 1]).sort();
  return columns(graph);
}

it.each([
  ["processors", 3, 11],
  ["ring", 4, 100],
  ["barrier", 20, 220],
])("%s.bin of txt2bin is read as its text", (name, ranks, operations) => {
  const graph = readGoalBinary(fixture(`${name}.bin`));
  expect([graph.ranks, graph.kind.length]).toEqual([ranks, operations]);
  expect(inOrder(graph)).toEqual(inOrder(readGoalText(fixture(`${name}.goal`))));
});
