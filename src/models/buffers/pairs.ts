/**
 * (ingress, egress) pairs of ports that the traffic of a scenario uses at each switch, by priority: along pinned paths and on all
 * shortest ones. Without traffic any port may send to any other at each lossless priority.
 */
import { Graph } from "../../scenario/topology.js";
import type { Link, Scenario } from "../../scenario/types.js";

/** A pair of ports, which are named by the device at the other end. */
export interface PortPair {
  switch: string;
  ingress: string;
  egress: string;
  priority: number;
}

/** @param down Links around which routes go. */
export function portPairs(scenario: Scenario, down?: ReadonlySet<Link>): PortPair[] {
  const graph = new Graph(scenario, down);
  const found = new Map<string, PortPair>();
  const add = (pair: PortPair) =>
    void found.set(`${pair.switch} ${pair.ingress} ${pair.egress} ${pair.priority}`, pair);
  if (scenario.flows.length === 0) addAll(scenario, graph, add);
  else addTraffic(scenario, graph, add);
  return [...found.values()];
}

/** Pairs by routes alone, between switches: hosts may send each other anything at lossless priorities. */
export function routedPairs(scenario: Scenario, down?: ReadonlySet<Link>): PortPair[] {
  const { hosts, switches, routes } = scenario;
  const graph = new Graph(scenario, down);
  const pinned = new Set(routes.flatMap(({ from, to }) => [from, to]));
  // Hosts of one switch go the same ways, but for pinned paths.
  const alike = new Map(hosts.map(({ name }) => [pinned.has(name) ? name : graph.neighbour(name), name]));
  const some = [...alike.values()];
  const waysTo = routedWays(hosts, switches, graph);
  const between = some.flatMap((to) => {
    const paths = new Map(some.map((from) => [from, graph.pinnedPath(from, to)]));
    const starts = some.flatMap((from) => (paths.get(from) === undefined ? (graph.neighbour(from) ?? []) : []));
    return [...waysTo(starts, graph.neighbour(to), to).between, ...[...paths.values()].flatMap(pairsOfPath)];
  });
  const found = new Map(between.map((pair) => [`${pair.switch} ${pair.ingress} ${pair.egress}`, pair]));
  const priorities = [...new Set(switches.flatMap(({ pfc }) => pfc.priorities))];
  return [...found.values()].flatMap((pair) => priorities.map((priority) => ({ ...pair, priority })));
}

/** Pairs at the switches of a path, without its ends. */
function pairsOfPath(path: readonly string[] = []): Way[] {
  return path.slice(1, -1).map((name, i) => ({ switch: name, ingress: path[i] ?? "", egress: path[i + 2] ?? "" }));
}

type Add = (pair: PortPair) => void;

function addAll({ switches }: Scenario, { ports }: Graph, add: Add): void {
  for (const s of switches) {
    const peers = (ports.get(s.name) ?? []).map(({ peer }) => peer);
    for (const priority of s.pfc.priorities) {
      for (const ingress of peers) {
        for (const egress of peers) if (egress !== ingress) add({ switch: s.name, ingress, egress, priority });
      }
    }
  }
}

type Routed = Pick<Scenario, "hosts" | "switches"> & {
  flows: readonly Pick<Scenario["flows"][number], "from" | "to" | "priority">[];
};

function addTraffic({ flows, hosts, switches }: Routed, graph: Graph, add: Add): void {
  const transitOf = transits(hosts, switches, graph);
  const seen = new Set<string>();
  const first = (key: string) => !seen.has(key) && seen.add(key);
  for (const { from, to, priority } of flows) {
    const pinned = graph.pinnedPath(from, to);
    if (pinned !== undefined) {
      pinned.forEach((name, i) => {
        add({ switch: name, ingress: pinned[i - 1] ?? from, egress: pinned[i + 1] ?? to, priority });
      });
      continue;
    }
    const [start, end] = [graph.neighbour(from), graph.neighbour(to)];
    if (start === undefined || end === undefined) continue;
    if (start === end) {
      add({ switch: start, ingress: from, egress: to, priority });
      continue;
    }
    // Hosts of one switch share the ways between switches: few of the many pairs of hosts are looked at in full.
    const { between, firstHops, lastHops } = transitOf(start, end, to);
    if (first(`from ${from} ${end} ${priority}`)) {
      for (const egress of firstHops) add({ switch: start, ingress: from, egress, priority });
    }
    if (first(`to ${start} ${to} ${priority}`)) {
      for (const ingress of lastHops) add({ switch: end, ingress, egress: to, priority });
    }
    if (first(`between ${start} ${end} ${priority}`)) for (const pair of between) add({ ...pair, priority });
  }
}

type Way = Omit<PortPair, "priority">;

/** Ways from one switch, or several, to another, on all shortest paths. */
interface Transit {
  /** Ways at the switches between them. */
  between: Way[];
  /** Next devices of frames that leave the first switch. */
  firstHops: string[];
  /** Devices from which frames come into the last one. */
  lastHops: string[];
}

/** Answers repeated questions from memory; `host` is any behind the last switch. */
function transits(hosts: Scenario["hosts"], switches: Scenario["switches"], graph: Graph) {
  const waysTo = routedWays(hosts, switches, graph);
  const known = new Map<string, Transit>();
  return (start: string, end: string, host: string): Transit => {
    const key = `${start} ${end}`;
    const found = known.get(key) ?? waysTo([start], end, host);
    known.set(key, found);
    return found;
  };
}

function routedWays(hosts: Scenario["hosts"], switches: Scenario["switches"], graph: Graph) {
  const hostNumbers = new Map(hosts.map(({ name }, i) => [name, i]));
  const tables = new Map(graph.nextHopGroups().map((table, i) => [switches[i]?.name, table]));
  const nextHops = (at: string, host: string): string[] => {
    const table = tables.get(at);
    const group = table?.groups[table.groupOfHost[hostNumbers.get(host) ?? -1] ?? -1] ?? [];
    return group.flatMap((port) => graph.ports.get(at)?.[port]?.peer ?? []);
  };
  return (starts: readonly string[], end: string | undefined, host: string): Transit => {
    const outside = starts.filter((start) => start !== end);
    const pending = outside.flatMap((start) => nextHops(start, host).map((at) => ({ at, ingress: start })));
    const found: Transit = { between: [], firstHops: pending.map(({ at }) => at), lastHops: [] };
    const seen = new Set<string>();
    for (let step = pending.pop(); step !== undefined; step = pending.pop()) {
      const { at, ingress } = step;
      if (seen.has(`${at} ${ingress}`)) continue;
      seen.add(`${at} ${ingress}`);
      if (at === end) {
        found.lastHops.push(ingress);
        continue;
      }
      for (const egress of nextHops(at, host)) {
        found.between.push({ switch: at, ingress, egress });
        pending.push({ at: egress, ingress: at });
      }
    }
    return found;
  };
}
