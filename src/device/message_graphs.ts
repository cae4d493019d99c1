/** Message graphs as the native core has them. */
import type { NativeGraphConnections, NativeMessageGraph, NativePlacedGraph } from "../native/graph_configuration.js";
import { kCalculate, type MessageGraph } from "../scenario/graphs/graph.js";
import type { GraphJob } from "../scenario/graphs/graph_job.js";

/**
 * A graph whose streams are flows, on the wire: these are queue pairs of its senders' NICs then (queuePairOf: flow -> place), and
 * calculations last `scale` times as long.
 */
export function onWire(graph: NativePlacedGraph, placeOf: (flow: number) => number, scale: number): NativePlacedGraph {
  const { operations, begins, connections } = graph;
  const size = operations.size.map((size, i) => (operations.kind[i] === kCalculate ? Math.round(size * scale) : size));
  return {
    ...graph,
    operations: { ...operations, size },
    begins: begins.map((at) => Math.round(at * scale)),
    connections: { ...connections, stream: connections.stream.map(placeOf) },
  };
}

export function operationsOf(graph: MessageGraph): NativeMessageGraph {
  const { first, kind, peer, tag, size, processor, firstDependency, dependencies } = graph;
  return { first, kind, peer, tag, size, processor, first_dependency: firstDependency, dependencies };
}

/** Pairs of ranks of all jobs, as combined() numbers them, and their flows. */
export function connectionsOf(jobs: readonly GraphJob[]): NativeGraphConnections {
  const count = jobs.reduce((sum, { pairs }) => sum + pairs.length / 2, 0);
  const connections = { stream: new Uint32Array(count), from: new Uint32Array(count), to: new Uint32Array(count) };
  let [at, rank] = [0, 0];
  for (const { pairs, firstFlow, graph } of jobs) {
    for (let i = 0; i < pairs.length; i += 2, at++) {
      connections.stream[at] = firstFlow + i / 2;
      connections.from[at] = rank + (pairs[i] as number);
      connections.to[at] = rank + (pairs[i + 1] as number);
    }
    rank += graph.ranks;
  }
  return connections;
}
