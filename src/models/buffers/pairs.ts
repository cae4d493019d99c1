/**
 * Which (ingress, egress) pairs of ports the traffic of a scenario uses at each switch, by priority: along pinned paths and on all
 * shortest ones. Without traffic any port may send to any other at each lossless priority.
 */
import { Graph } from "../../scenario/topology.js";
import type { Scenario } from "../../scenario/types.js";

/** Ports are named by what is at the other end. */
export interface PortPair {
  switch: string;
  ingress: string;
  egress: string;
  priority: number;
}

export function portPairs(scenario: Scenario): PortPair[] {
  const graph = new Graph(scenario);
  const found = new Map<string, PortPair>();
  const add = (pair: PortPair) =>
    void found.set(`${pair.switch} ${pair.ingress} ${pair.egress} ${pair.priority}`, pair);
  if (scenario.flows.length === 0) addAll(scenario, graph, add);
  else addTraffic(scenario, graph, add);
  return [...found.values()];
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

function addTraffic({ flows, hosts, switches }: Scenario, graph: Graph, add: Add): void {
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
    // Hosts of one switch share what is between: few of the many pairs of hosts are looked at in full.
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

/** Ways from one switch to another, on all shortest paths. */
interface Transit {
  /** At the switches between the two. */
  between: Omit<PortPair, "priority">[];
  /** Where frames leave the first switch. */
  firstHops: string[];
  /** Where they come into the last. */
  lastHops: string[];
}

/** Answers from memory where it was asked before; `host` is any behind the last switch. */
function transits(hosts: Scenario["hosts"], switches: Scenario["switches"], graph: Graph) {
  const hostNumbers = new Map(hosts.map(({ name }, i) => [name, i]));
  const tables = new Map(graph.nextHopGroups().map((table, i) => [switches[i]?.name, table]));
  const nextHops = (at: string, host: string): string[] => {
    const table = tables.get(at);
    const group = table?.groups[table.groupOfHost[hostNumbers.get(host) ?? -1] ?? -1] ?? [];
    return group.flatMap((port) => graph.ports.get(at)?.[port]?.peer ?? []);
  };
  const known = new Map<string, Transit>();
  return (start: string, end: string, host: string): Transit => {
    const key = `${start} ${end}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    const found: Transit = { between: [], firstHops: nextHops(start, host), lastHops: [] };
    known.set(key, found);
    const seen = new Set<string>();
    const pending = found.firstHops.map((at) => ({ at, ingress: start }));
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
