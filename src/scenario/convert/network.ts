/** Results of converters, from another simulator's files: a network of numbered nodes, and flows between its hosts. */

export interface Converted {
  network: Network;
  /** Flows; undefined when no file of them was given. */
  flows: Flows | undefined;
}

export interface Network {
  /** Nodes that are hosts, each with one link; the rest of those that have links are switches. */
  hosts: readonly number[];
  /** Hosts of several links, and in `hosts` and `links` in place of each its NICs: nodes that no file numbers. */
  machines: ReadonlyMap<number, readonly number[]>;
  switches: readonly number[];
  links: readonly NetworkLink[];
  /** Sentences on everything that is read in another way than the file's owner may think. */
  notes: readonly string[];
}

export interface NetworkLink {
  from: number;
  to: number;
  /** Rate, bit/s. */
  rate: number;
  /** Propagation delay, ns. */
  delay: number;
  /** Probability that a frame is lost. */
  loss: number;
}

export interface Flows {
  flows: readonly NetworkFlow[];
  notes: readonly string[];
}

export interface NetworkFlow {
  from: number;
  to: number;
  priority: number;
  bytes: number;
  /** Start, ns. */
  start: number;
}

/** Names that a scenario has for nodes: `h3` and `s320`, by their numbers, and `h3-1` for the first NIC of a host. */
export const hostName = (node: number) => `h${node}`;
export const switchName = (node: number) => `s${node}`;
export const nicName = (host: number, nic: number) => `${hostName(host)}-${nic + 1}`;

/** Names of all nodes of a network. */
export function namesOf({ switches, machines }: Pick<Network, "switches" | "machines">): (node: number) => string {
  const names = new Map(switches.map((node) => [node, switchName(node)]));
  for (const [host, nics] of machines) for (const [i, nic] of nics.entries()) names.set(nic, nicName(host, i));
  return (node) => names.get(node) ?? hostName(node);
}

/** Hosts as a file of flows numbers them. */
export function endpoints({ hosts, machines }: Pick<Network, "hosts" | "machines">): number[] {
  const nics = new Set([...machines.values()].flat());
  return [...hosts.filter((host) => !nics.has(host)), ...machines.keys()];
}

export const counted = (n: number, one: string, several = `${one}s`) => `${n} ${n === 1 ? one : several}`;
