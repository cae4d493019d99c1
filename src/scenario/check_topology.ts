// Is the network one that can be built? Names, links, connectedness, pinned routes, loops.
import type { Problem } from "../base/error.js";
import { nearest } from "../base/fields.js";
import { findLoop, type Graph, unreachable } from "./topology.js";
import { MOST_HOSTS, MOST_PORTS, MOST_SWITCHES } from "./topology_schema.js";
import type { Link, Scenario } from "./types.js";

/** `unknown host xy`, with the nearest known name as the hint. */
export function unknownName(path: Problem["path"], kind: string, name: string, known: readonly string[]): Problem {
  const meant = nearest(name, known);
  const some = known.length > 12 ? `${known.slice(0, 12).join(", ")}, ...` : known.join(", ");
  return { path, message: `unknown ${kind} ${name}`, hint: meant ? `did you mean ${meant}?` : `known: ${some}` };
}

export function checkTopology(scenario: Scenario, graph: Graph): Problem[] {
  const problems = [...checkNames(scenario), ...checkLinks(scenario)];
  // What follows needs a graph without dangling ends to say anything useful.
  if (problems.length > 0) return problems;
  problems.push(...checkHosts(scenario, graph));
  // A host without a link has been named already.
  const lost = problems.length > 0 ? [] : unreachable(scenario);
  if (lost.length > 0) {
    const first = scenario.hosts[0]?.name;
    problems.push({
      path: ["topology", "links"],
      message: `${lost.join(", ")} cannot be reached from ${first}`,
      hint: "add links until every host and switch is connected",
    });
  }
  problems.push(...checkRoutes(scenario, graph), ...checkLearning(scenario));
  return problems;
}

function checkNames({ hosts, switches }: Scenario): Problem[] {
  const problems: Problem[] = [];
  const seen = new Map<string, string>();
  for (const [section, kind, devices, most] of [
    ["hosts", "host", hosts, MOST_HOSTS],
    ["switches", "switch", switches, MOST_SWITCHES],
  ] as const) {
    if (devices.length > most) {
      problems.push({
        path: ["topology", section],
        message: `${devices.length} are too many`,
        hint: `at most ${most}`,
      });
    }
    for (const { name } of devices) {
      const other = seen.get(name);
      if (other !== undefined) {
        const message = other === kind ? `${kind} ${name} is there twice` : `${name} is a host and a switch`;
        problems.push({ path: ["topology", section], message, hint: "every device needs a name of its own" });
      }
      seen.set(name, kind);
    }
  }
  if (hosts.length === 0) problems.push({ path: ["topology", "hosts"], message: "there are no hosts" });
  return problems;
}

function checkLinks({ hosts, switches, links }: Scenario): Problem[] {
  const problems: Problem[] = [];
  const names = [...hosts, ...switches].map((device) => device.name);
  const known = new Set(names);
  const seen = new Set<string>();
  links.forEach(({ from, to }, i) => {
    const path = ["topology", "links", i];
    for (const end of [from, to]) {
      if (!known.has(end)) problems.push(unknownName(path, "host or switch", end, names));
    }
    if (from === to) {
      problems.push({ path, message: `${from} is linked to itself`, hint: "a link joins two devices" });
    }
    const key = [from, to].sort().join(" ");
    if (seen.has(key)) {
      problems.push({
        path,
        message: `${from} -- ${to} is there twice`,
        hint: "there can be one link between two devices",
      });
    }
    seen.add(key);
  });
  return problems;
}

function checkHosts(scenario: Scenario, graph: Graph): Problem[] {
  const problems: Problem[] = [];
  const path = ["topology", "links"];
  const links = new Map<string, Link[]>(scenario.hosts.map(({ name }) => [name, []]));
  for (const link of scenario.links) {
    links.get(link.from)?.push(link);
    links.get(link.to)?.push(link);
  }
  for (const [name, own] of links) {
    if (own.length === 0) {
      problems.push({ path, message: `host ${name} has no link`, hint: `add "${name} -- SWITCH" to topology.links` });
    } else if (own.length > 1) {
      const message = `host ${name} has ${own.length} links`;
      problems.push({ path, message, hint: "a host has one link; use a switch to join more" });
    } else if (own[0]?.rate === 0) {
      const i = scenario.links.indexOf(own[0]);
      const message = `host ${name} needs a link with a rate: a NIC paces on it`;
      problems.push({ path: [...path, i, "rate"], message, hint: "only links between switches can be unlimited" });
    }
  }
  for (const [name, ports] of graph.ports) {
    if (ports.length <= MOST_PORTS) continue;
    problems.push({ path, message: `switch ${name} has ${ports.length} ports`, hint: `at most ${MOST_PORTS}` });
  }
  return problems;
}

function checkRoutes(scenario: Scenario, graph: Graph): Problem[] {
  const problems: Problem[] = [];
  const hosts = scenario.hosts.map((host) => host.name);
  const { ports } = graph;
  const seen = new Set<string>();
  scenario.routes.forEach(({ from, to, via }, i) => {
    const path = ["topology", "routes", i];
    const ends = problems.length;
    for (const [field, name] of [
      ["from", from],
      ["to", to],
    ] as const) {
      if (!hosts.includes(name)) problems.push(unknownName([...path, field], "host", name, hosts));
    }
    if (from === to) problems.push({ path, message: `${from} is both ends` });
    if (seen.has(`${from} ${to}`)) problems.push({ path, message: `there is already a route from ${from} to ${to}` });
    seen.add(`${from} ${to}`);
    if (problems.length > ends) return;
    const whole = [from, ...via, to];
    for (let hop = 0; hop + 1 < whole.length; hop++) {
      const [a = "", b = ""] = whole.slice(hop, hop + 2);
      const name = via[hop] ?? "";
      const where = [...path, "via", Math.min(hop, via.length - 1)];
      if (hop < via.length && !ports.has(name)) {
        problems.push(unknownName(where, "switch", name, [...ports.keys()]));
        return;
      }
      if (hop < via.length && via.indexOf(name) !== hop) {
        problems.push({ path: where, message: `${name} is on the way twice`, hint: "a route visits a switch once" });
        return;
      }
      const linked = hop === 0 ? graph.neighbour(a) === b : ports.get(a)?.some((port) => port.peer === b);
      if (!linked) {
        const hint = "via lists every switch from the one of the source to the one of the destination";
        problems.push({ path: where, message: `${whole.join(" -> ")} is not a path: no link ${a} -- ${b}`, hint });
        return;
      }
    }
  });
  return problems;
}

function checkLearning(scenario: Scenario): Problem[] {
  const learning = scenario.switches.find((s) => s.forwarding === "learning");
  const loop = learning === undefined ? undefined : findLoop(scenario);
  if (learning === undefined || loop === undefined) return [];
  return [
    {
      path: ["switch", "forwarding"],
      message: `learning on ${learning.name}, but ${[...loop, loop[0]].join(" -- ")} is a loop: flooded frames would go round for ever`,
      hint: "use forwarding: static, or remove the loop",
    },
  ];
}
