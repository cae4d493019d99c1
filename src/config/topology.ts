// Graph questions about a scenario. Pure functions; the scenario is valid, or (for check.ts) has valid names at least.
import type { Link, PinnedRoute } from "./types.js";

/** What these functions need of a scenario. */
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

/** The one link of a host. */
export function hostLink(network: Network, host: string): Link | undefined {
  return network.links.find((link) => link.from === host || link.to === host);
}

/** One entry of a switch's pinned table: frames from `from` to `to` leave at `port`. */
export interface PinnedEntry {
  from: string;
  to: string;
  port: number;
}

export interface SwitchRoutes {
  /** Destination host -> ports on shortest paths, ascending. Unreachable hosts are absent. */
  groups: Map<string, number[]>;
  pinned: PinnedEntry[];
}

/** The forwarding tables of every switch, by switch name: next-hop groups on all shortest paths, and pinned routes. */
export function routes(network: Network): Map<string, SwitchRoutes> {
  const ports = switchPorts(network);
  const tables = new Map<string, SwitchRoutes>(
    network.switches.map((s) => [s.name, { groups: new Map(), pinned: [] }]),
  );
  for (const host of network.hosts) {
    const distance = distances(network, ports, host.name);
    for (const [name, list] of ports) {
      const own = distance.get(name);
      if (own === undefined) continue;
      const group = list.filter((port) => distance.get(port.peer) === own - 1).map((port) => port.index);
      tables.get(name)?.groups.set(host.name, group);
    }
  }
  for (const { from, to, via } of network.routes) {
    via.forEach((name, i) => {
      const next = via[i + 1] ?? to;
      const port = ports.get(name)?.find((p) => p.peer === next);
      if (port !== undefined) tables.get(name)?.pinned.push({ from, to, port: port.index });
    });
  }
  return tables;
}

/** Hops to `host`, over switches only: hosts do not forward. */
function distances(network: Network, ports: Map<string, SwitchPort[]>, host: string): Map<string, number> {
  const distance = new Map([[host, 0]]);
  const link = hostLink(network, host);
  let frontier = link === undefined ? [] : [link.from === host ? link.to : link.from];
  for (let hops = 1; frontier.length > 0; hops++) {
    const next: string[] = [];
    for (const name of frontier) {
      if (distance.has(name)) continue;
      distance.set(name, hops);
      for (const port of ports.get(name) ?? []) {
        if (ports.has(port.peer)) next.push(port.peer);
      }
    }
    frontier = next;
  }
  return distance;
}

/** How many switches a frame from one host to another crosses. */
export function switchesOnPath(network: Network, from: string, to: string): number {
  const pinned = network.routes.find((route) => route.from === from && route.to === to);
  if (pinned !== undefined) return pinned.via.length;
  const link = hostLink(network, from);
  const first = link === undefined ? undefined : link.from === from ? link.to : link.from;
  return distances(network, switchPorts(network), to).get(first ?? "") ?? 0;
}

/** The switches that frames from one host to another may cross: the pinned path, or all shortest ones. */
export function switchesBetween(network: Network, from: string, to: string): string[] {
  const pinned = network.routes.find((route) => route.from === from && route.to === to);
  if (pinned !== undefined) return pinned.via;
  const ports = switchPorts(network);
  const distance = distances(network, ports, to);
  const link = hostLink(network, from);
  const found = new Set<string>();
  const pending = link === undefined ? [] : [link.from === from ? link.to : link.from];
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const own = distance.get(name);
    if (own === undefined || found.has(name) || !ports.has(name)) continue;
    found.add(name);
    for (const port of ports.get(name) ?? []) {
      if (distance.get(port.peer) === own - 1) pending.push(port.peer);
    }
  }
  return [...found];
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
