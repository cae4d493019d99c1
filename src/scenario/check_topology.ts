// Checks that the network can be built: names, links, connectedness, pinned routes, loops.
import type { Findings } from "../base/findings.js";
import { findLoop, type Graph, unreachable } from "./topology.js";
import { kMostHosts, kMostPorts, kMostSwitches } from "./topology_schema.js";
import type { Link, PinnedRoute, Scenario } from "./types.js";

const kLinks = ["topology", "links"];

/** Returns whether the network can be built. */
export function checkTopology(scenario: Scenario, graph: Graph, all: Findings): boolean {
  const found = all.part();
  checkNames(scenario, found);
  checkMachines(scenario, found);
  checkLinks(scenario, found);
  // The checks below need a graph without dangling ends to say anything useful.
  if (found.problems.length > 0) return false;
  checkHosts(scenario, graph, found);
  // Hosts without a link have been named already.
  const lost = found.problems.length > 0 ? [] : unreachable(scenario);
  if (lost.length > 0) {
    const message = `${lost.join(", ")} cannot be reached from ${scenario.hosts[0]?.name}`;
    found.problem(kLinks, message, "add links until every host and switch is connected");
  }
  checkRoutes(scenario, graph, found);
  checkLearning(scenario, found);
  checkRouting(scenario, found);
  return found.problems.length === 0;
}

function checkNames({ hosts, switches }: Scenario, found: Findings): void {
  const seen = new Map<string, string>();
  for (const [section, kind, devices, most] of [
    ["hosts", "host", hosts, kMostHosts],
    ["switches", "switch", switches, kMostSwitches],
  ] as const) {
    const path = ["topology", section];
    if (devices.length > most) found.problem(path, `${devices.length} are too many`, `at most ${most}`);
    for (const { name } of devices) {
      const other = seen.get(name);
      if (other !== undefined) {
        const message = other === kind ? `${kind} ${name} is there twice` : `${name} is a host and a switch`;
        found.problem(path, message, "every device needs a name of its own");
      }
      seen.set(name, kind);
    }
  }
  if (hosts.length === 0) found.problem(["topology", "hosts"], "there are no hosts");
}

/** A machine of one name with a host would be told as that host. */
function checkMachines({ hosts }: Scenario, found: Findings): void {
  const byName = new Map(hosts.map((host) => [host.name, host]));
  const seen = new Set<string>();
  for (const { name, machine } of hosts) {
    if (machine === undefined || seen.has(machine)) continue;
    const other = byName.get(machine);
    if (other === undefined || other.machine === machine) continue;
    seen.add(machine);
    const message = `${machine}, of which ${name} is a NIC, is also a host that is not`;
    found.problem(["topology", "hosts", name, "machine"], message, `another name, or machine: ${machine} of that host`);
  }
}

function checkLinks({ hosts, switches, links }: Scenario, found: Findings): void {
  const names = [...hosts, ...switches].map((device) => device.name);
  const known = new Set(names);
  const seen = new Set<string>();
  links.forEach(({ from, to }, i) => {
    const path = [...kLinks, i];
    for (const end of [from, to]) {
      if (!known.has(end)) found.unknown(path, "host or switch", end, names);
    }
    if (from === to) found.ofNames(path, `${from} is linked to itself`, "a link joins two devices");
    const key = [from, to].sort().join(" ");
    if (seen.has(key)) {
      found.ofNames(path, `${from} -- ${to} is there twice`, "there can be one link between two devices");
    }
    seen.add(key);
  });
}

function checkHosts(scenario: Scenario, graph: Graph, found: Findings): void {
  const links = new Map<string, Link[]>(scenario.hosts.map(({ name }) => [name, []]));
  for (const link of scenario.links) {
    links.get(link.from)?.push(link);
    links.get(link.to)?.push(link);
  }
  for (const [name, own] of links) {
    if (own.length === 0) {
      found.problem(kLinks, `host ${name} has no link`, `add "${name} -- SWITCH" to topology.links`);
    } else if (own.length > 1) {
      const message = `host ${name} has ${own.length} links`;
      found.problem(kLinks, message, "a host has one link; use a switch to join more");
    } else if (own[0]?.rate === 0) {
      const message = `host ${name} needs a link with a rate: a NIC paces on it`;
      const path = [...kLinks, scenario.links.indexOf(own[0]), "rate"];
      found.problem(path, message, "only links between switches can be unlimited");
    }
  }
  for (const [name, ports] of graph.ports) {
    if (ports.length <= kMostPorts) continue;
    found.problem(kLinks, `switch ${name} has ${ports.length} ports`, `at most ${kMostPorts}`);
  }
}

function checkRoutes(scenario: Scenario, graph: Graph, all: Findings): void {
  const hosts = scenario.hosts.map((host) => host.name);
  const seen = new Set<string>();
  for (const [i, route] of scenario.routes.entries()) {
    const { from, to } = route;
    const path = ["topology", "routes", i];
    const found = all.part();
    for (const [field, name] of Object.entries({ from, to })) {
      if (!hosts.includes(name)) found.unknown([...path, field], "host", name, hosts);
    }
    if (from === to) found.ofNames(path, `${from} is both ends`);
    if (seen.has(`${from} ${to}`)) found.problem(path, `there is already a route from ${from} to ${to}`);
    seen.add(`${from} ${to}`);
    if (found.problems.length === 0) checkPath(route, [...path, "via"], graph, found);
  }
}

/** Checks a pinned path up to the first hop that does not exist. */
function checkPath(
  { from, to, via }: PinnedRoute,
  path: readonly (string | number)[],
  graph: Graph,
  found: Findings,
): void {
  const { ports } = graph;
  const whole = [from, ...via, to];
  for (let hop = 0; hop + 1 < whole.length; hop++) {
    const [a = "", b = ""] = whole.slice(hop, hop + 2);
    const name = via[hop] ?? "";
    const where = [...path, Math.min(hop, via.length - 1)];
    const linked = hop === 0 ? graph.neighbour(a) === b : ports.get(a)?.some((port) => port.peer === b);
    if (hop < via.length && !ports.has(name)) {
      found.unknown(where, "switch", name, [...ports.keys()]);
    } else if (hop < via.length && via.indexOf(name) !== hop) {
      found.problem(where, `${name} is on the way twice`, "a route visits a switch once");
    } else if (!linked) {
      const hint = "via lists every switch from the one of the source to the one of the destination";
      found.problem(where, `${whole.join(" -> ")} is not a path: no link ${a} -- ${b}`, hint);
    }
    if (found.problems.length > 0) return;
  }
}

function checkLearning(scenario: Scenario, found: Findings): void {
  const learning = scenario.switches.find((s) => s.forwarding === "learning");
  const loop = learning === undefined ? undefined : findLoop(scenario);
  if (learning === undefined || loop === undefined) return;
  const message = `learning on ${learning.name}, but ${[...loop, loop[0]].join(" -- ")} is a loop: flooded frames would go round for ever`;
  found.problem(["switch", "forwarding"], message, "use forwarding: static, or remove the loop");
}

function checkRouting({ routes, switches }: Scenario, found: Findings): void {
  const path = ["switch", "forwarding"];
  const routed = switches.filter(({ forwarding }) => forwarding === "routed");
  if (routed.length === 0) return;
  const bridge = switches.find(({ forwarding }) => forwarding !== "routed");
  if (bridge !== undefined) {
    const message = `${routed[0]?.name} routes, and ${bridge.name} does not`;
    found.problem(path, message, "set forwarding: routed for all switches, or for none");
  }
  if (routes.length > 0) {
    const message = "routes of the topology are paths between Ethernet addresses";
    found.problem(["topology", "routes"], message, "leave them out, or use forwarding: static");
  }
}
