/** The part of a lab's session that does not change while it is open: topology, flows, and which queues are shown. */

import { queueThresholds } from "../../result/thresholds.js";
import { Fabric } from "../../scenario/fabric.js";
import { Graph } from "../../scenario/topology.js";
import type { Scenario } from "../../scenario/types.js";
import type { QueueDescription, Session } from "./protocol.js";

/** Queues that are shown. */
const kMostQueues = 64;

export function topologyOf({ hosts, switches, links }: Scenario): Session["topology"] {
  return {
    nodes: [
      ...hosts.map(({ name }) => ({ name, kind: "host" as const })),
      ...switches.map(({ name }) => ({ name, kind: "switch" as const })),
    ],
    links: links.map(({ from, to, rate }) => ({ from, to, rate_bps: rate })),
  };
}

export function flowsOf({ flows }: Scenario): Session["flows"] {
  return flows.map(({ id, from, to, priority }) => ({ id, from, to, priority }));
}

/**
 * The scenario's probes, then those on the paths of its flows, first the ones that most flows may cross: 64 at most. They are the
 * same whatever the parameters are.
 */
export function queueNames(scenario: Scenario): string[] {
  const probed = scenario.probes.queues.map((q) => `${q.switch}:${q.port}:${q.priority}`);
  const crossed = [...crossedQueues(scenario)].sort(([, a], [, b]) => b - a).map(([name]) => name);
  return [...new Set([...probed, ...crossed])].slice(0, kMostQueues);
}

export function describeQueues(scenario: Pick<Scenario, "switches">, names: readonly string[]): QueueDescription[] {
  const thresholds = queueThresholds(scenario, names);
  return names.map((name) => {
    const [device = "", port = "", priority = ""] = name.split(":");
    const { kmin = null, kmax = null, qeq = null } = thresholds[name] ?? {};
    return { name, switch: device, port, priority: Number(priority), kmin, kmax, qeq };
  });
}

/** Returns the queues that data may wait in, with the number of flows that cross each. */
function crossedQueues(scenario: Scenario): Map<string, number> {
  const [graph, fabric] = [new Graph(scenario), new Fabric(scenario)];
  const queues = new Map<string, number>();
  const known = new Map<string, string[]>();
  for (const { from, to, priority } of scenario.flows) {
    const pair = `${from} ${to}`;
    const ports = known.get(pair) ?? portsOnPath(graph, fabric, from, to);
    known.set(pair, ports);
    for (const port of ports) queues.set(`${port}:${priority}`, (queues.get(`${port}:${priority}`) ?? 0) + 1);
  }
  return queues;
}

/** Returns "switch:peer" of all ports that frames between two hosts may leave by. */
function portsOnPath(graph: Graph, fabric: Fabric, from: string, to: string): string[] {
  const pinned = graph.pinnedPath(from, to);
  if (pinned !== undefined) return pinned.map((name, i) => `${name}:${pinned[i + 1] ?? to}`);
  return graph.switchesBetween(from, to).flatMap((name) => {
    const device = fabric.device(name);
    const peers = fabric.peers(device);
    return fabric.portsTowards(fabric.host(to), device).map((port) => `${name}:${peers[port]}`);
  });
}
