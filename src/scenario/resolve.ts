// From the scenario as written to the scenario in full: defaults merged, topology and traffic expanded. Judges only what
// cannot be expanded (check.ts does the rest).

import { WeirError } from "../base/error.js";
import { type Full, filled } from "../base/fields.js";
import type { Findings } from "../base/findings.js";
import { merge } from "../base/merge.js";
import { hearsCnms } from "../congestion/flow_state.js";
import { resolveCongestion } from "../congestion/section.js";
import { type hostSchema, linkDefaultsSchema, type switchSchema } from "./device_schema.js";
import { type Expectation, parseExpectation } from "./expectations.js";
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
import type { Flow, HostConfig, Link, QueueProbe, Scenario, SwitchConfig, Transport } from "./types.js";

const kGoBackNWindow = 2048;
/** Packets in flight that a receiver can tell apart in a selective acknowledgement. */
export const kMostSelectiveWindow = 256;

export const kPriorities = [0, 1, 2, 3, 4, 5, 6, 7] as const;
/** DSCP that is customary for each priority: CS and AFx1 classes, EF for 5. */
const kCustomaryDscp = [0, 10, 18, 26, 34, 46, 48, 56];

function dscpMap(input: Full<typeof switchSchema>["dscp_map"]): number[] {
  if (input === "nvidia") return Array.from({ length: 64 }, (_, dscp) => dscp >> 3);
  // SONiC's DSCP_TO_TC_MAP|AZURE.
  const map = Array<number>(64).fill(input === "sonic-azure" ? 1 : 0);
  const pairs = input === "sonic-azure" ? { 3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6 } : input;
  for (const [dscp, priority] of Object.entries(pairs)) map[Number(dscp)] = priority;
  return map;
}

/** The `switch` section in full; `mtus` are those of the switch's ports. */
export function resolveSwitch(name: string, input: Full<typeof switchSchema>, mtus: readonly number[]): SwitchConfig {
  const { buffer, scheduler } = input;
  const { threshold = staticThresholdBound(buffer, mtus.length), xon_offset = 2 * Math.max(0, ...mtus) } = buffer;
  return {
    ...input,
    name,
    buffer: { ...buffer, threshold, xon_offset },
    qcn: { ...input.qcn, ports: input.qcn.ports ?? {} },
    scheduler: { ...scheduler, weights: kPriorities.map((priority) => scheduler.weights[String(priority)] ?? 1) },
    dscp_map: dscpMap(input.dscp_map),
  };
}

export function resolveTransport(transport: Full<typeof transportSchema>): Transport {
  const { window = transport.recovery === "go-back-n" ? kGoBackNWindow : kMostSelectiveWindow } = transport;
  return { ...transport, window };
}

/** The `host` section in full; `rate` is that of the host's link, bit/s, `cnpvs` are those of its switch. */
export function resolveHost(
  name: string,
  input: Full<typeof hostSchema>,
  rate: number,
  cnpvs: readonly number[],
): HostConfig {
  const { initial_rate = rate, receive_buffer, qcn } = input;
  const { xoff = Math.floor(receive_buffer.size / 2), xon = Math.floor(xoff / 2) } = receive_buffer;
  return {
    ...input,
    name,
    initial_rate,
    receive_buffer: { ...receive_buffer, xoff, xon },
    qcn: { ...qcn, priorities: qcn.priorities ?? [...cnpvs] },
  };
}

function resolveLinks(written: WrittenTopology["links"], defaults: ScenarioInput["topology"]["link"]): Link[] {
  return written.map((one) => {
    const { impairment, ...link } = filled(linkDefaultsSchema, defaults, one);
    const faulty = defaults?.impairment ?? ("impairment" in one ? one.impairment : undefined);
    return { ...link, from: one.from, to: one.to, ...(faulty && { impairment }) };
  });
}

/** A DSCP that `map` gives `priority`: the customary one where that is among them. */
export function dscpOf(map: readonly number[] | undefined, priority: number): number {
  const customary = kCustomaryDscp[priority] ?? 0;
  const lowest = map?.indexOf(priority) ?? -1;
  return lowest < 0 || map?.[customary] === priority ? customary : lowest;
}

/** The queues that data waits in at the port that faces each traffic destination. */
function defaultProbes(graph: Graph, flows: Flow[]): QueueProbe[] {
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

/** Nobody would listen to its CNMs, so the domain has no switches either. */
function switchQcnOff(switches: readonly SwitchConfig[], algorithm: string, found: Findings): void {
  for (const { qcn } of switches) {
    if (!qcn.enabled) continue;
    qcn.enabled = false;
    found.warn(`switch.qcn is on, but congestion.algorithm is ${algorithm}: switches send no CNMs`);
  }
}

export interface ResolveContext {
  /** Used where the scenario has no name. */
  fallbackName: string;
  /** What paths in the scenario are relative to. */
  directory: string;
  /** Takes what cannot be expanded. */
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
    const mtus = (graph.ports.get(name) ?? []).map((port) => port.link.mtu);
    return resolveSwitch(name, merge<object>(top.switch, overrides) as typeof top.switch, mtus);
  });
  const byName = new Map(switches.map((s) => [s.name, s]));
  const hosts = written.hosts.map(([name, overrides]) => {
    const cnpvs = byName.get(graph.neighbour(name) ?? "")?.qcn.priorities ?? [];
    return resolveHost(
      name,
      merge<object>(top.host, overrides) as typeof top.host,
      graph.hostLink(name)?.rate ?? 0,
      cnpvs,
    );
  });
  const flows = resolveTraffic(top.traffic, {
    hosts: hosts.map((host) => host.name),
    rateOf: (host) => graph.hostLink(host)?.rate ?? 0,
    dscpOf: (host, priority) => dscpOf(byName.get(graph.neighbour(host) ?? "")?.dscp_map, priority),
    seed: top.seed,
    duration: top.duration,
    transport: top.transport.type,
    directory: context.directory,
    found: context.found,
  });
  const congestion = resolveCongestion(top.congestion, slowestHostRate(hosts, graph), context.found);
  if (!hearsCnms(congestion.algorithm)) switchQcnOff(switches, congestion.algorithm, context.found);
  const scenario: Scenario = {
    name: input.name ?? context.fallbackName,
    description: top.description,
    scale: top.scale,
    seed: top.seed,
    duration: top.duration,
    warmup: input.warmup ?? Math.round(top.duration / 5),
    hosts,
    switches,
    links,
    routes,
    ecmp_seed: topology.ecmp_seed ?? top.seed,
    congestion,
    transport: resolveTransport(top.transport),
    flows,
    changes: top.changes.map((change) => filled(changeSchema, change)).sort((a, b) => a.at - b.at),
    failures: top.failures.map((failure) => filled(failureSchema, failure)),
    probes: { ...top.probes, queues: top.probes.queues?.map(parseProbe) ?? defaultProbes(graph, flows) },
    expect: resolveExpectations(top.expect, context.found),
    fidelity: top.fidelity,
  };
  return { scenario, graph };
}

/** Those that are none are problems. */
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

/** bit/s; percentages in a profile are of this, so that no NIC is asked for more than it has. */
export function slowestHostRate(hosts: readonly { name: string }[], graph: Graph): number {
  return hosts.reduce((least, { name }) => Math.min(least, graph.hostLink(name)?.rate ?? 0), Number.POSITIVE_INFINITY);
}
