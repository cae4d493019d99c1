// Turns the scenario as written into the scenario in full: defaults merged, topology and traffic expanded. Judges only what
// cannot be expanded (check.ts does the rest).

import { resolve as resolvePath } from "node:path";
import { WeirError } from "../base/error.js";
import { filled } from "../base/fields.js";
import type { Findings } from "../base/findings.js";
import { merge } from "../base/merge.js";
import { hearsCnms } from "../congestion/flow_state.js";
import type { WrittenGroups } from "../congestion/qcn_points.js";
import { resolveCongestion, resolveGroups } from "../congestion/section.js";
import { kRdmaPriority } from "../wire/priority.js";
import { changeSchema } from "./change_schema.js";
import { linkDefaultsSchema } from "./device_schema.js";
import { type Expectation, parseExpectation } from "./expectations.js";
import { scenarioFaultSchema } from "./fault_schema.js";
import { machineOf } from "./machines.js";
import { resolveParts } from "./parts.js";
import { awaitsPrograms, resolvePrograms, resolveTcp } from "./programs.js";
import { dscpOf, resolveHost, resolveSwitch } from "./resolve_device.js";
import { failureSchema, kMostDefaultProbes, type ScenarioInput, scenarioSchema } from "./schema.js";
import { type WrittenTopology, writtenOut } from "./topologies.js";
import { Graph } from "./topology.js";
import { resolveTraffic } from "./traffic.js";
import type { TrafficContext } from "./traffic_entry.js";
import { resolveTransport } from "./transport.js";
import type { Flow, Link, Program, QueueProbe, Scenario, SwitchConfig } from "./types.js";

function resolveLinks(written: WrittenTopology["links"], defaults: ScenarioInput["topology"]["link"]): Link[] {
  return written.map((one) => {
    const { impairment, ...link } = filled(linkDefaultsSchema, defaults, one);
    const faulty = defaults?.impairment ?? ("impairment" in one ? one.impairment : undefined);
    return { ...link, from: one.from, to: one.to, ...(faulty && { impairment }) };
  });
}

/** Queues in which data waits at the port that faces each traffic destination. */
function defaultProbes(graph: Graph, flows: readonly Pick<Flow, "to" | "priority">[]): QueueProbe[] {
  const probes = new Map<string, QueueProbe>();
  for (const { to, priority } of flows) {
    if (probes.size === kMostDefaultProbes) break;
    const name = graph.neighbour(to);
    if (name === undefined || !graph.ports.has(name)) continue;
    probes.set(`${name}:${to}:${priority}`, { switch: name, port: to, priority });
  }
  return [...probes.values()];
}

/** A host of programs, as one to which others send. */
const receiver = ({ host }: Pick<Program, "host">) => ({ to: host, priority: kRdmaPriority });

function parseProbe(text: string): QueueProbe {
  const [name = "", port = "", priority = ""] = text.split(":");
  return { switch: name, port, priority: Number(priority) };
}

/** Turns QCN off at switches: nobody would listen to their CNMs. */
function switchQcnOff(switches: readonly SwitchConfig[], algorithm: string, found: Findings): void {
  for (const { qcn } of switches) {
    if (!qcn.enabled) continue;
    qcn.enabled = false;
    found.warn(`switch.qcn is on, but congestion.algorithm is ${algorithm}: switches send no CNMs`);
  }
}

/** A run of message graphs ends with them, and at the latest then, unless the scenario says when; ns. */
const kGraphDuration = 60e9;

export interface ResolveContext {
  /** Name of a scenario that has none. */
  fallbackName: string;
  /** Folder to which paths in the scenario are relative. */
  directory: string;
  /** Takes errors of parts that cannot be expanded. */
  found: Findings;
}

/** The scenario in full, and its network as a graph. */
export function resolveScenario(input: ScenarioInput, context: ResolveContext): { scenario: Scenario; graph: Graph } {
  const { topology } = input;
  const top = filled(scenarioSchema, input);
  const written = writtenOut(topology);
  const links = resolveLinks(written.links, topology.link);
  const named = (devices: [string, unknown][]) => devices.map(([name]) => ({ name }));
  const routes = topology.routes ?? [];
  const graph = new Graph({ hosts: named(written.hosts), switches: named(written.switches), links, routes });
  const switches = written.switches.map(([name, overrides]) => {
    const ports = (graph.ports.get(name) ?? []).map(({ peer, link }) => ({
      name: peer,
      rate: link.rate,
      delay: link.delay,
      mtu: link.mtu,
    }));
    return resolveSwitch(name, merge<object>(top.switch, overrides) as typeof top.switch, ports);
  });
  const byName = new Map(switches.map((s) => [s.name, s]));
  const slowest = slowestHostRate(named(written.hosts), graph);
  const groups = (own: WrittenGroups) => resolveGroups(top.congestion, own, slowest);
  const hosts = written.hosts.map(([name, overrides]) => {
    const { qcn, trimming } = byName.get(graph.neighbour(name) ?? "") ?? {};
    const host = resolveHost(
      name,
      merge<object>(top.host, overrides) as typeof top.host,
      graph.hostLink(name)?.rate ?? 0,
      groups,
      qcn ?? {},
      trimming?.enabled ? trimming.dscp : undefined,
    );
    return overrides?.machine === undefined ? host : { ...host, machine: overrides.machine };
  });
  const machines = new Map(hosts.map((host) => [host.name, machineOf(host)]));
  const ends = top.traffic.some(({ pattern }) => pattern === "graph" || pattern === "collective");
  const duration = input.duration ?? (ends ? kGraphDuration : top.duration);
  const traffic: TrafficContext = {
    hosts: hosts.map((host) => host.name),
    machineOf: (host) => machines.get(host) ?? host,
    rateOf: (host) => graph.hostLink(host)?.rate ?? 0,
    dscpOf: (host, priority) => dscpOf(byName.get(graph.neighbour(host) ?? "")?.dscp_map, priority),
    seed: top.seed,
    duration,
    transport: top.transport.type,
    directory: context.directory,
    found: context.found,
  };
  const { flows, graphs } = resolveTraffic(top.traffic, traffic);
  const tcp = resolveTcp(top.traffic, traffic);
  const programs = resolvePrograms(top.traffic, traffic);
  // Where its traffic ends the run, `duration` is a limit, of which no part says when anything is steady.
  const endsItself = graphs.length > 0 || (flows.length === 0 && awaitsPrograms({ programs }));
  const located = (file: string) => resolvePath(context.directory, file);
  const congestion = resolveCongestion(top.congestion, slowest, located, context.found);
  if (!hearsCnms(congestion.algorithm)) switchQcnOff(switches, congestion.algorithm, context.found);
  const scenario: Scenario = {
    name: input.name ?? context.fallbackName,
    description: top.description,
    scale: top.scale,
    seed: top.seed,
    duration,
    warmup: input.warmup ?? (endsItself ? 0 : Math.round(duration / 5)),
    hosts,
    switches,
    links,
    routes,
    ecmp_seed: topology.ecmp_seed ?? top.seed,
    congestion,
    transport: resolveTransport(top.transport),
    flows,
    graphs,
    tcp,
    programs,
    changes: top.changes.map((change) => filled(changeSchema, change)).sort((a, b) => a.at - b.at),
    failures: top.failures.map((failure) => filled(failureSchema, failure)),
    faults: top.faults.map((fault) => filled(scenarioFaultSchema, fault)),
    probes: {
      ...top.probes,
      queues: top.probes.queues?.map(parseProbe) ?? defaultProbes(graph, [...flows, ...tcp, ...programs.map(receiver)]),
    },
    expect: resolveExpectations(top.expect, context.found),
    parts: resolveParts(top.parts, { switches, hosts, links, graph }, context.found),
    fidelity: top.fidelity,
  };
  return { scenario, graph };
}

/** Parses expectations; texts that are none are problems. */
function resolveExpectations(texts: readonly string[], found: Findings): Expectation[] {
  return texts.flatMap((text, i) => {
    try {
      return [parseExpectation(text)];
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      found.problem(["expect", i], error.message, error.hint);
      return [];
    }
  });
}

/** Slowest rate of a host's link, bit/s; percentages in a profile are of this, so that no NIC is asked for more than it has. */
export function slowestHostRate(hosts: readonly { name: string }[], graph: Graph): number {
  return hosts.reduce((least, { name }) => Math.min(least, graph.hostLink(name)?.rate ?? 0), Number.POSITIVE_INFINITY);
}
