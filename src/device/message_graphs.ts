/** Message graphs as the native core has them. */
import type { NativeGraphConnections, NativeMessageGraph, NativePlacedGraph } from "../native/traffic_configuration.js";
import { wallTime } from "../native/wall.js";
import { kCalculate, type MessageGraph } from "../scenario/graphs/graph.js";
import type { GraphJob } from "../scenario/graphs/graph_job.js";

/** A graph on the wire, where calculations last `scale` times as long: to the core their times are sizes, as those of messages. */
export function onWire({ operations, ...graph }: NativePlacedGraph, scale: number): NativePlacedGraph {
  const size = operations.size.map((size, i) => (operations.kind[i] === kCalculate ? wallTime(size, scale) : size));
  return { ...graph, operations: { ...operations, size } };
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
