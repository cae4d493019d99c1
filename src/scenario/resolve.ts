// Turns the scenario as written into the scenario in full: defaults merged, topology and traffic expanded. Judges only what
// cannot be expanded (check.ts does the rest).

import { resolve as resolvePath } from "node:path";
import { WeirError } from "../base/error.js";
import { type Full, filled } from "../base/fields.js";
import type { Findings } from "../base/findings.js";
import { merge } from "../base/merge.js";
import { hearsCnms } from "../congestion/flow_state.js";
import type { SwitchQcn, WrittenGroups } from "../congestion/qcn_points.js";
import { resolveCongestion, resolveGroups } from "../congestion/section.js";
import { type hostSchema, linkDefaultsSchema, type switchSchema } from "./device_schema.js";
import { type Expectation, parseExpectation } from "./expectations.js";
import { scenarioFaultSchema } from "./fault_schema.js";
import { resolveDscpMap } from "./features/classification.js";
import { resolvePfc } from "./features/pfc.js";
import { resolveReceiveBuffer } from "./features/receive_buffer.js";
import { resolveScheduler } from "./features/scheduler.js";
import { resolveTrimming } from "./features/trimming.js";
import type { NamedPort } from "./headroom.js";
import { machineOf } from "./machines.js";
import { resolveParts } from "./parts.js";
import { portHeadroom } from "./port_headroom.js";
import { profilesOf, resolveProfile } from "./port_profiles.js";
import { resolvePrograms, resolveTcp } from "./programs.js";
import {
  changeSchema,
  failureSchema,
  kMostDefaultProbes,
  type ScenarioInput,
  scenarioSchema,
  type transportSchema,
} from "./schema.js";
import { staticThresholdBound } from "./thresholds.js";
import { type WrittenTopology, writtenOut } from "./topologies.js";
import { Graph } from "./topology.js";
import { resolveTraffic } from "./traffic.js";
import type { TrafficContext } from "./traffic_entry.js";
import type { Flow, HostConfig, Link, QueueProbe, Scenario, SwitchConfig, Transport } from "./types.js";

const kGoBackNWindow = 2048;
/** Packets in flight that a receiver can tell apart in a selective acknowledgement. */
export const kMostSelectiveWindow = 256;

/** DSCP that is customary for each priority: CS and AFx1 classes, EF for 5. */
const kCustomaryDscp = [0, 10, 18, 26, 34, 46, 48, 56];

/** The `switch` section in full. */
export function resolveSwitch(
  name: string,
  input: Full<typeof switchSchema>,
  ports: readonly NamedPort[],
): SwitchConfig {
  const { port_profiles: profiles } = input;
  const dscp_map = resolveDscpMap(input.dscp_map);
  const chosen = profilesOf(profiles, ports);
  const profileOf = (port: string) => profiles[chosen.get(port) ?? ""];
  const { headroom: asked, priorities } = input.buffer;
  const { usual: headroom, own, besides: more } = portHeadroom(asked, ports, (port) => profileOf(port)?.buffer);
  const besides = priorities * more;
  const longest = Math.max(0, ...ports.map(({ mtu }) => mtu));
  const { threshold = staticThresholdBound({ ...input.buffer, headroom, besides }, ports.length) } = input.buffer;
  const { xon_offset = 2 * longest } = input.buffer;
  const buffer = { ...input.buffer, headroom, threshold, xon_offset, besides, automatic: asked === "auto" };
  const usual = { ecn: input.ecn, buffer, qcn: input.qcn };
  return {
    ...input,
    name,
    buffer,
    profiled: new Map(
      ports
        .filter((port) => chosen.has(port.name) || own.has(port.name))
        .map(({ name: port }) => [
          port,
          resolveProfile(chosen.get(port), profileOf(port) ?? {}, own.get(port) ?? headroom, usual),
        ]),
    ),
    pfc: resolvePfc(input.pfc),
    trimming: resolveTrimming(input.trimming, dscp_map),
    qcn: { ...input.qcn, ports: input.qcn.ports ?? {} },
    scheduler: resolveScheduler(input.scheduler),
    dscp_map,
  };
}

export function resolveTransport(transport: Full<typeof transportSchema>): Transport {
  const { window = transport.recovery === "go-back-n" ? kGoBackNWindow : kMostSelectiveWindow } = transport;
  return { ...transport, window };
}

/**
 * The `host` section in full; `rate` is that of the host's link, bit/s, `points` and `trimmed` (a DSCP) are those of its switch.
 * `groups` resolves parameters of reaction points.
 */
export function resolveHost(
  name: string,
  input: Full<typeof hostSchema>,
  rate: number,
  groups: (written: WrittenGroups) => HostConfig["qcn"]["groups"],
  points: Partial<Pick<SwitchQcn, "priorities" | "notification">>,
  trimmed?: number,
): HostConfig {
  const { initial_rate = rate } = input;
  const { reaction_point_groups, ...qcn } = input.qcn;
  const { priorities = [...(points.priorities ?? [])], notification = points.notification ?? "l2" } = qcn;
  return {
    ...input,
    name,
    initial_rate,
    trimmed_dscp: input.trimmed_dscp ?? trimmed,
    receive_buffer: resolveReceiveBuffer(input.receive_buffer),
    qcn: {
      ...qcn,
      priorities,
      notification,
      cn_tag: qcn.cn_tag && notification === "l2",
      groups: groups(reaction_point_groups),
    },
  };
}

function resolveLinks(written: WrittenTopology["links"], defaults: ScenarioInput["topology"]["link"]): Link[] {
  return written.map((one) => {
    const { impairment, ...link } = filled(linkDefaultsSchema, defaults, one);
    const faulty = defaults?.impairment ?? ("impairment" in one ? one.impairment : undefined);
    return { ...link, from: one.from, to: one.to, ...(faulty && { impairment }) };
  });
}

/** A DSCP that `map` gives `priority`: the customary one, if it is among them. */
export function dscpOf(map: readonly number[] | undefined, priority: number): number {
  const customary = kCustomaryDscp[priority] ?? 0;
  const lowest = map?.indexOf(priority) ?? -1;
  return lowest < 0 || map?.[customary] === priority ? customary : lowest;
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
  const located = (file: string) => resolvePath(context.directory, file);
  const congestion = resolveCongestion(top.congestion, slowest, located, context.found);
  if (!hearsCnms(congestion.algorithm)) switchQcnOff(switches, congestion.algorithm, context.found);
  const scenario: Scenario = {
    name: input.name ?? context.fallbackName,
    description: top.description,
    scale: top.scale,
    seed: top.seed,
    duration,
    warmup: input.warmup ?? (graphs.length > 0 ? 0 : Math.round(duration / 5)),
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
    programs: resolvePrograms(top.traffic, traffic),
    changes: top.changes.map((change) => filled(changeSchema, change)).sort((a, b) => a.at - b.at),
    failures: top.failures.map((failure) => filled(failureSchema, failure)),
    faults: top.faults.map((fault) => filled(scenarioFaultSchema, fault)),
    probes: { ...top.probes, queues: top.probes.queues?.map(parseProbe) ?? defaultProbes(graph, [...flows, ...tcp]) },
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
