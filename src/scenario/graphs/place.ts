/** Where ranks are: on the NICs of hosts, and so on machines, of which ranks of one reach each other inside. */
import { type Full, filled } from "../../base/fields.js";
import type { TrafficContext, TrafficEntry } from "../traffic_entry.js";
import { type GraphFields, graphDefaultsSchema } from "./job_schema.js";

/** @returns the host of each rank; undefined, with a problem, when ranks have no place. */
export function placedRanks(ranks: number, fields: GraphFields, entry: TrafficEntry): readonly string[] | undefined {
  const { place, per_host: perHost }: Full<typeof graphDefaultsSchema> = filled(graphDefaultsSchema, fields);
  if (Array.isArray(place)) return listed(ranks, place, entry);
  const hosts = entry.hosts("hosts", fields.hosts);
  if (hosts === undefined) return undefined;
  if (ranks > hosts.length * perHost) {
    const most = Math.ceil(ranks / hosts.length);
    entry.problem(
      ["per_host"],
      `${ranks} ranks, and room for ${hosts.length * perHost} on ${hosts.length} hosts with ${perHost} each`,
      `per_host: ${most}, or more hosts`,
    );
    return undefined;
  }
  const machines = [...byMachine(hosts, entry.context).values()];
  if (place === "round-robin") {
    // A NIC of each machine, and then another one of each.
    const most = Math.max(...machines.map(({ length }) => length));
    const turns = Array.from({ length: most }, (_, nic) => machines.flatMap((nics) => nics.slice(nic, nic + 1))).flat();
    return Array.from({ length: ranks }, (_, rank) => turns[rank % turns.length] as string);
  }
  const order = (place === "random" ? entry.random.shuffled(machines) : machines).flat();
  return Array.from({ length: ranks }, (_, rank) => order[Math.floor(rank / perHost)] as string);
}

/** Hosts by the names of their machines, both in the order in which they come. */
function byMachine(hosts: readonly string[], { machineOf }: Pick<TrafficContext, "machineOf">): Map<string, string[]> {
  const machines = new Map<string, string[]>();
  for (const host of hosts) {
    const machine = machineOf(host);
    const nics = machines.get(machine);
    if (nics === undefined) machines.set(machine, [host]);
    else nics.push(host);
  }
  return machines;
}

function listed(ranks: number, place: readonly string[], entry: TrafficEntry): readonly string[] | undefined {
  if (place.length !== ranks) {
    entry.problem(
      ["place"],
      `names ${place.length} hosts, and there are ${ranks} ranks`,
      "name the host of each rank, in order",
    );
    return undefined;
  }
  return place.every((name, i) => entry.known(["place", i], name)) ? place : undefined;
}

/** Ranks as collectives have them: those of a machine, a node, follow each other, in the order of their NICs. */
export interface Nodes {
  order: readonly number[];
  /** Number of machines, and most ranks of one. */
  count: number;
  most: number;
  /** Ranks of each machine; undefined: not all have as many. */
  perNode: number | undefined;
  /** NICs of each that have ranks; 1 where they differ, or have not as many ranks each. */
  nics: number;
}

/** @param hosts Of all ranks. */
export function nodesOf(hosts: readonly string[], context: Pick<TrafficContext, "hosts" | "machineOf">): Nodes {
  const numbers = new Map(context.hosts.map((host, i) => [host, i]));
  const machines = new Map<string, number[]>();
  for (const [rank, host] of hosts.entries()) {
    const machine = context.machineOf(host);
    const known = machines.get(machine);
    if (known === undefined) machines.set(machine, [rank]);
    else known.push(rank);
  }
  const nicOf = (rank: number) => numbers.get(hosts[rank] as string) ?? 0;
  // Sorting is stable: ranks of one NIC stay in their order.
  const nodes = [...machines.values()].map((ranks) => ranks.sort((a, b) => nicOf(a) - nicOf(b)));
  const sizes = new Set(nodes.map(({ length }) => length));
  const ranksOfNics = nodes.map((ranks) => {
    const counts = new Map<number, number>();
    for (const rank of ranks) counts.set(nicOf(rank), (counts.get(nicOf(rank)) ?? 0) + 1);
    return [...counts.values()];
  });
  const alike = sizes.size === 1 && new Set(ranksOfNics.flat()).size === 1;
  const [most = 1] = [...sizes].sort((a, b) => b - a);
  return {
    order: nodes.flat(),
    count: nodes.length,
    most,
    perNode: sizes.size === 1 ? most : undefined,
    nics: alike ? (ranksOfNics[0]?.length ?? 1) : 1,
  };
}
