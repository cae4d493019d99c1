import type { MessageGraph } from "./graph.js";

/** A message graph on the hosts of a scenario. */
export interface GraphJob {
  /** Id of its traffic entry. */
  id: string;
  graph: MessageGraph;
  /** Name of the host of each rank. */
  hosts: readonly string[];
  /** Name of the machine of each rank: ranks of one reach each other inside. */
  machines: readonly string[];
  /** When its ranks begin, ns. */
  start: number;
  /** Sends of at most so many bytes end when they start. */
  eager: number;
  /** Longer ones wait for their receives, bytes; undefined: none does. */
  rendezvous: number | undefined;
  /** Link of each rank within its machine: bit/s, 0 without limit, and ns. */
  inside_rate: number;
  inside_latency: number;
  /** Ranks of each of its flows, from and to, which stand together among the flows of the scenario. */
  pairs: Uint32Array;
  /** Position of its first flow; set when all traffic is known. */
  firstFlow: number;
}
