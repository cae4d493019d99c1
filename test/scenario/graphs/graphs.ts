/** Graphs for tests. */
import fc from "fast-check";
import { WeirError } from "../../../src/base/error.js";
import { type ExpandCollective, joined } from "../../../src/scenario/graphs/expand.js";
import {
  GraphBuilder,
  kAny,
  kCalculate,
  kReceive,
  kSend,
  type MessageGraph,
} from "../../../src/scenario/graphs/graph.js";

const kRanks = 3;
const kTags = [0, 1, 0x7fff_ffff, 0x8000_0000, kAny - 1];

const operation = fc.record({
  rank: fc.nat(kRanks - 1),
  kind: fc.constantFrom(kSend, kReceive, kCalculate),
  peer: fc.nat(kRanks - 1),
  any: fc.boolean(),
  tag: fc.constantFrom(...kTags),
  size: fc.oneof(fc.nat(100), fc.constant(1e15)),
  processor: fc.nat(255),
});
const edge = fc.record({ from: fc.nat(), to: fc.nat(), startOnly: fc.boolean() });

/** Graphs with operations of all kinds; messages have no counterparts, and dependencies may be in circles. */
export const anyGraph = fc
  .record({ operations: fc.array(operation, { maxLength: 30 }), edges: fc.array(edge, { maxLength: 30 }) })
  .map(({ operations, edges }): MessageGraph => {
    const graph = new GraphBuilder("any", kRanks);
    for (const { rank, kind, peer, any, tag, size, processor } of operations) {
      if (kind === kSend) graph.send(rank, peer, size, tag, { processor });
      else if (kind === kReceive) graph.receive(rank, any ? kAny : peer, size, any ? kAny : tag, { processor });
      else graph.calculate(rank, size, { processor });
    }
    for (const { from, to, startOnly } of operations.length === 0 ? [] : edges) {
      const waiting = from % operations.length;
      const ofRank = operations.flatMap(({ rank }, i) => (rank === operations[waiting]?.rank ? [i] : []));
      const awaited = ofRank[to % ofRank.length] as number;
      if (startOnly) graph.irequires(waiting, awaited);
      else graph.requires(waiting, awaited);
    }
    return graph.build();
  });

/** All of a graph that formats can carry, as plain arrays. */
export function columns(graph: MessageGraph) {
  const { ranks, first, kind, peer, tag, size, processor, firstDependency, dependencies } = graph;
  const plain = { first, kind, peer, tag, size, processor, firstDependency, dependencies };
  return { ranks, ...Object.fromEntries(Object.entries(plain).map(([name, column]) => [name, [...column]])) };
}

/** Operations of each rank in words, with what they wait for. */
export function words(graph: MessageGraph): string[][] {
  return Array.from({ length: graph.ranks }, (_, rank) => {
    const first = graph.first[rank] as number;
    return Array.from({ length: (graph.first[rank + 1] as number) - first }, (_, n) => {
      const i = first + n;
      const verb = ["send", "receive", "calculate"][graph.kind[i] as number];
      const peer = graph.peer[i] === kAny ? "any" : graph.peer[i];
      const tag = graph.tag[i] === kAny ? "any" : graph.tag[i];
      const message = graph.kind[i] === kCalculate ? "" : ` ${peer} tag ${tag}`;
      const waits = [
        ...graph.dependencies.subarray(graph.firstDependency[i] as number, graph.firstDependency[i + 1] as number),
      ].map((entry) => `${entry >= 2 ** 31 ? "start of " : ""}${(entry % 2 ** 31) - first}`);
      const after = waits.length === 0 ? "" : ` after ${waits.join(", ")}`;
      return `${verb} ${graph.size[i]}${message}${graph.processor[i] ? ` on ${graph.processor[i]}` : ""}${after}`;
    });
  });
}

/** Message of the error that `action` throws, which has to be one for the user. */
export function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if ((error as Error).name !== "WeirError" && (error as Error).name !== "ScenarioError") throw error;
    return (error as Error).message;
  }
  return "";
}

/** A collective of one step: each rank sends all to the next of the list, and receives from the one before. */
export const simpleExpand: ExpandCollective = (graph, { ranks, bytes, algorithm }, after) => {
  if (algorithm === "binomial") throw new WeirError("algorithm binomial: unknown");
  const tag = graph.newTag();
  return ranks.map((rank, i) => {
    const next = ranks[(i + 1) % ranks.length] as number;
    const before = ranks[(i + ranks.length - 1) % ranks.length] as number;
    const both = [graph.send(rank, next, bytes, tag), graph.receive(rank, before, bytes, tag)];
    const earlier = after[i];
    if (earlier !== undefined) for (const operation of both) graph.requires(operation, earlier);
    return joined(graph, rank, both) as number;
  });
};
