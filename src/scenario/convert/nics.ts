/**
 * Flows of hosts with several links, which are machines with a NIC for each. Files name a host; in HPCC's simulator (RdmaHw::GetNicIdxOfQp,
 * and the tables of its switches) a hash of addresses and ports picks one of the links on shortest paths, at either end.
 */
import { endpoints, type Flows, type Network } from "./network.js";

/** NICs of both ends of a flow. */
interface Pair {
  from: number;
  to: number;
}

/** The flows from NIC to NIC: for each a pair of those that are nearest to each other, by a hash. */
export function betweenNics(network: Network, { flows, notes }: Flows): Flows {
  const { machines } = network;
  if (machines.size === 0) return { flows, notes };
  const nearest = new Nearest(network);
  /** Flows so far of one host to another; what a source port is in the simulator. */
  const counts = new Map<string, number>();
  return {
    flows: flows.map((flow) => {
      const key = `${flow.from} ${flow.to}`;
      const pairs = nearest.pairs(flow.from, flow.to);
      const before = counts.get(key) ?? 0;
      counts.set(key, before + 1);
      return { ...flow, ...pairs[mixed(flow.from, flow.to, before) % pairs.length] };
    }),
    notes: [
      ...notes,
      "flows name hosts: which NICs of a machine one goes between is by a hash of both hosts and its number, among the nearest",
    ],
  };
}

class Nearest {
  private readonly neighbours = new Map<number, number[]>();
  private readonly distances = new Map<number, ReadonlyMap<number, number>>();
  private readonly known = new Map<string, readonly Pair[]>();
  private readonly nicsOf: ReadonlyMap<number, readonly number[]>;

  constructor(network: Network) {
    const add = (node: number, peer: number) => {
      const known = this.neighbours.get(node);
      if (known === undefined) this.neighbours.set(node, [peer]);
      else known.push(peer);
    };
    for (const { from, to } of network.links) {
      add(from, to);
      add(to, from);
    }
    this.nicsOf = new Map(endpoints(network).map((host) => [host, network.machines.get(host) ?? [host]]));
  }

  /** The pairs between which there are fewest links. */
  pairs(from: number, to: number): readonly Pair[] {
    const key = `${from} ${to}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const all = (this.nicsOf.get(from) ?? []).flatMap((one) =>
      (this.nicsOf.get(to) ?? []).map((other) => ({
        pair: { from: one, to: other },
        links: this.from(this.neighbours.get(one)?.[0] ?? one).get(other) ?? Number.POSITIVE_INFINITY,
      })),
    );
    const least = Math.min(...all.map(({ links }) => links));
    const found = all.filter(({ links }) => links === least).map(({ pair }) => pair);
    this.known.set(key, found);
    return found;
  }

  /** Links from a switch to each other node: those of one link lead nowhere else. */
  private from(node: number): ReadonlyMap<number, number> {
    const known = this.distances.get(node);
    if (known !== undefined) return known;
    const distance = new Map([[node, 0]]);
    // Nodes that are added during the loop are visited by it, too.
    for (const [at, links] of distance) {
      for (const peer of this.neighbours.get(at) ?? []) if (!distance.has(peer)) distance.set(peer, links + 1);
    }
    this.distances.set(node, distance);
    return distance;
  }
}

/** Of FNV-1a, by numbers in place of bytes, with its upper bits mixed into the lower ones. */
function mixed(...numbers: readonly number[]): number {
  let hash = 2_166_136_261;
  for (const number of numbers) {
    hash = Math.imul(hash ^ number, 16_777_619);
    hash ^= hash >>> 15;
  }
  return hash >>> 0;
}
