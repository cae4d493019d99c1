/** Weir's ideal network, with the same way between all ranks. */
import { operationsOf } from "../../../src/device/message_graphs.js";
import { loadAddon } from "../../../src/native/addon.js";
import type { OperationTimes, SimulationAddon } from "../../../src/native/simulation_types.js";
import { kSend, type MessageGraph } from "../../../src/scenario/graphs/graph.js";

export interface Way {
  /** ns. */
  latency: number;
  /** bit/s; 0: bytes take no time. */
  rate: number;
  /** Largest send that ends when it starts, bytes. By default all are. */
  eager?: number;
}

/** Rank r is alone on host r. Times are ns; an operation that never ends has a negative one. */
export function idealRun(graph: MessageGraph, { latency, rate, eager = 1e15 }: Way): OperationTimes {
  const pairs = new Set<number>();
  for (let rank = 0; rank < graph.ranks; rank++) {
    for (let i = graph.first[rank] as number; i < (graph.first[rank + 1] as number); i++) {
      if (graph.kind[i] === kSend) pairs.add(rank * graph.ranks + (graph.peer[i] as number));
    }
  }
  const from = Uint32Array.from(pairs, (pair) => Math.floor(pair / graph.ranks));
  const to = Uint32Array.from(pairs, (pair) => pair % graph.ranks);
  const network = new (loadAddon<SimulationAddon>().IdealNetwork)({
    operations: operationsOf(graph),
    eager,
    inside_rate: 0,
    inside_latency: 0,
    machine_of_rank: Uint32Array.from({ length: graph.ranks }, (_, rank) => rank),
    ways: {
      from,
      to,
      latency: new Float64Array(pairs.size).fill(latency),
      rate: new Float64Array(pairs.size).fill(rate),
    },
  });
  try {
    network.run(Number.MAX_SAFE_INTEGER);
    return network.operations();
  } finally {
    network.close();
  }
}

/** When the last operation of each rank ends, ns; 0 for ranks that have none. */
export function rankEnds(graph: MessageGraph, { ended }: OperationTimes): number[] {
  return Array.from({ length: graph.ranks }, (_, rank) =>
    ended.subarray(graph.first[rank], graph.first[rank + 1]).reduce((last, at) => Math.max(last, at), 0),
  );
}
