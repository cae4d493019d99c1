// Graph questions about a scenario. Pure functions; the scenario is valid, or (for check.ts) has valid names at least.
import type { Link, PinnedRoute } from "./types.js";

/** Fields of a scenario that these functions need. */
export interface Network {
  hosts: readonly { name: string }[];
  switches: readonly { name: string }[];
  links: readonly Link[];
  routes: readonly PinnedRoute[];
}

export interface SwitchPort {
  /** Port number: ports are numbered in the order of the links. */
  index: number;
  /** Name of the host or switch at the other end; it also names the port. */
  peer: string;
  link: Link;
}

/** The ports of every switch, by switch name. */
export function switchPorts(network: Network): Map<string, SwitchPort[]> {
  const ports = new Map<string, SwitchPort[]>(network.switches.map((s) => [s.name, []]));
  for (const link of network.links) {
    for (const [end, peer] of [
      [link.from, link.to],
      [link.to, link.from],
    ] as const) {
      const list = ports.get(end);
      list?.push({ index: list.length, peer, link });
    }
  }
  return ports;
}

/** Stands for a host that cannot be reached, in place of a distance or of a group's position. */
export const kUnreachable = 0xffff;

/** Next hops of one switch. */
export interface NextHopGroups {
  /** Distinct groups, each of the ports on shortest paths, ascending. */
  groups: number[][];
  /** Position of the group of each host, in order; kUnreachable: there is none. */
  groupOfHost: Uint16Array;
}

/**
 * Answers many questions about one network, which must not change meanwhile. Links that are `down` are in it, with their ports, but no path
 * crosses them.
 */
export class Graph {
  readonly ports: ReadonlyMap<string, SwitchPort[]>;
  private readonly names: readonly string[];
  private readonly numbers: ReadonlyMap<string, number>;
  /** Number of the switch at each port of each switch; -1: a host, or nothing that can be reached. */
  private readonly peers: readonly (readonly number[])[];
  private readonly hostLinks = new Map<string, Link>();
  private readonly pinned = new Map<string, PinnedRoute>();
  private readonly distancesTo = new Map<number, Uint16Array>();

  constructor(
    private readonly network: Network,
    private readonly down: ReadonlySet<Link> = new Set(),
  ) {
    this.ports = switchPorts(network);
    this.names = [...this.ports.keys()];
    this.numbers = new Map(this.names.map((name, i) => [name, i]));
    this.peers = this.names.map((name) =>
      (this.ports.get(name) ?? []).map(({ peer, link }) => (down.has(link) ? -1 : (this.numbers.get(peer) ?? -1))),
    );
    const hosts = new Set(network.hosts.map((host) => host.name));
    for (const link of network.links) {
      if (down.has(link)) continue;
      for (const end of [link.from, link.to]) {
        if (hosts.has(end) && !this.hostLinks.has(end)) this.hostLinks.set(end, link);
      }
    }
    for (const route of network.routes) {
      const key = `${route.from} ${route.to}`;
      if (!this.pinned.has(key)) this.pinned.set(key, route);
    }
  }

  /** The one link of a host. */
  hostLink(host: string): Link | undefined {
    return this.hostLinks.get(host);
  }

  /** The device at the other end of a host's link. */
  neighbour(host: string): string | undefined {
    const link = this.hostLinks.get(host);
    return link?.from === host ? link.to : link?.from;
  }

  /** The pinned path from one host to another, if there is one. */
  pinnedPath(from: string, to: string): readonly string[] | undefined {
    return this.pinned.get(`${from} ${to}`)?.via;
  }

  /** Number of switches that a frame from one host to another crosses; 0: it does not get there. */
  switchesOnPath(from: string, to: string): number {
    const pinned = this.pinnedPath(from, to);
    if (pinned !== undefined) return pinned.length;
    const [first, last] = [this.attachment(from), this.attachment(to)];
    const hops = first < 0 || last < 0 ? kUnreachable : (this.distances(last)[first] ?? kUnreachable);
    return hops === kUnreachable ? 0 : hops + 1;
  }

  /** Switches that frames from one host to another may cross: those of the pinned path, or of all shortest ones. */
  switchesBetween(from: string, to: string): readonly string[] {
    const pinned = this.pinnedPath(from, to);
    if (pinned !== undefined) return pinned;
    const [first, last] = [this.attachment(from), this.attachment(to)];
    if (first < 0 || last < 0) return [];
    const distance = this.distances(last);
    const found = new Set<number>();
    const pending = distance[first] === kUnreachable ? [] : [first];
    for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
      if (found.has(at)) continue;
      found.add(at);
      for (const peer of this.peers[at] ?? []) {
        if (peer >= 0 && (distance[peer] ?? 0) + 1 === distance[at]) pending.push(peer);
      }
    }
    return [...found].map((at) => this.names[at] ?? "");
  }

  /** Next-hop groups of every switch, in order, on all shortest paths. */
  nextHopGroups(): NextHopGroups[] {
    const { hosts } = this.network;
    const attachments = hosts.map(({ name }) => this.attachment(name));
    const distinct = [...new Set(attachments)].filter((at) => at >= 0);
    const tables = this.peers.map(() => ({
      groups: [] as number[][],
      groupOfHost: new Uint16Array(hosts.length).fill(kUnreachable),
    }));
    tables.forEach(({ groups, groupOfHost }, at) => {
      const positions = new Map<string, number>();
      const positionOf = (group: number[]): number => {
        const key = group.join();
        const known = positions.get(key);
        if (known !== undefined) return known;
        positions.set(key, groups.length);
        return groups.push(group) - 1;
      };
      const towards = new Map<number, number>();
      for (const last of distinct) {
        const distance = this.distances(last);
        const own = distance[at] ?? kUnreachable;
        if (last === at || own === kUnreachable) continue;
        const group: number[] = [];
        this.peers[at]?.forEach((peer, port) => {
          if (peer >= 0 && distance[peer] === own - 1) group.push(port);
        });
        towards.set(last, positionOf(group));
      }
      attachments.forEach((last, host) => {
        const position = towards.get(last);
        if (position !== undefined) groupOfHost[host] = position;
      });
    });
    this.addOwnHosts(tables);
    return tables;
  }

  /** Adds the last hop: ports to hosts. */
  private addOwnHosts(tables: readonly NextHopGroups[]): void {
    const hostNumbers = new Map(this.network.hosts.map(({ name }, i) => [name, i]));
    [...this.ports.values()].forEach((ports, at) => {
      for (const { peer, index, link } of ports) {
        const host = hostNumbers.get(peer);
        const table = tables[at];
        if (host !== undefined && table !== undefined && !this.down.has(link))
          table.groupOfHost[host] = table.groups.push([index]) - 1;
      }
    });
  }

  /** Number of the switch that a host is linked to; -1: none. */
  private attachment(host: string): number {
    return this.numbers.get(this.neighbour(host) ?? "") ?? -1;
  }

  /** Hops from every switch to switch number `target`: hosts behind the same switch share them. */
  private distances(target: number): Uint16Array {
    const known = this.distancesTo.get(target);
    if (known !== undefined) return known;
    const distance = new Uint16Array(this.peers.length).fill(kUnreachable);
    distance[target] = 0;
    const frontier = [target];
    for (const at of frontier) {
      for (const peer of this.peers[at] ?? []) {
        if (peer < 0 || distance[peer] !== kUnreachable) continue;
        distance[peer] = (distance[at] ?? 0) + 1;
        frontier.push(peer);
      }
    }
    this.distancesTo.set(target, distance);
    return distance;
  }
}

/** The names on one loop of switches, or undefined when there is none. */
export function findLoop(network: Network): string[] | undefined {
  const ports = switchPorts(network);
  const parent = new Map<string, string>();
  for (const { name: root } of network.switches) {
    if (parent.has(root)) continue;
    parent.set(root, root);
    const pending = [root];
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      for (const { peer } of ports.get(name) ?? []) {
        if (!ports.has(peer) || parent.get(name) === peer) continue;
        if (parent.has(peer)) return loopOf(parent, name, peer);
        parent.set(peer, name);
        pending.push(peer);
      }
    }
  }
  return undefined;
}

/** The loop closed by the link a -- b that is not in the tree `parent`. */
function loopOf(parent: Map<string, string>, a: string, b: string): string[] {
  const up = (name: string): string[] => {
    const path = [name];
    for (let at = name; parent.get(at) !== at; ) {
      at = parent.get(at) ?? at;
      path.push(at);
    }
    return path;
  };
  const fromA = up(a);
  const fromB = up(b);
  const meet = fromA.findIndex((name) => fromB.includes(name));
  return [...fromA.slice(0, meet + 1), ...fromB.slice(0, fromB.indexOf(fromA[meet] ?? "")).reverse()];
}

/** Devices that cannot be reached from the first one; empty in a connected network. */
export function unreachable(network: Network): string[] {
  const names = [...network.hosts, ...network.switches].map((device) => device.name);
  const neighbours = new Map<string, string[]>(names.map((name) => [name, []]));
  for (const { from, to } of network.links) {
    neighbours.get(from)?.push(to);
    neighbours.get(to)?.push(from);
  }
  const seen = new Set<string>();
  const pending = names.slice(0, 1);
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    pending.push(...(neighbours.get(name) ?? []));
  }
  return names.filter((name) => !seen.has(name));
}
