// From the scenario as written to the scenario in full: defaults merged, topology and traffic expanded. Judges only what
// cannot be expanded (check.ts does the rest).

import { defaultsOf, type Filled } from "../base/fields.js";
import { merge } from "../base/merge.js";
import { resolveCongestionSection } from "../congestion/section.js";
import type { Findings } from "./check_device.js";
import { type HostInput, impairmentSchema, linkDefaultsSchema, type SwitchInput } from "./device_schema.js";
import { MOST_DEFAULT_PROBES, type ScenarioInput, scenarioSchema } from "./schema.js";
import { staticThresholdBound } from "./thresholds.js";
import { type WrittenTopology, writtenOut } from "./topologies.js";
import { Graph } from "./topology.js";
import { resolveTraffic } from "./traffic.js";
import type {
  BufferConfig,
  Flow,
  HostConfig,
  Impairment,
  Link,
  QueueProbe,
  RateChange,
  Scenario,
  SwitchConfig,
  Transport,
} from "./types.js";

const DEFAULTS = scenarioSchema.omit({ topology: true }).parse(defaultsOf(scenarioSchema.omit({ topology: true })));
const LINK_DEFAULTS = linkDefaultsSchema
  .omit({ impairment: true })
  .parse(defaultsOf(linkDefaultsSchema.omit({ impairment: true })));
export const IMPAIRMENT_DEFAULTS = impairmentSchema.parse(defaultsOf(impairmentSchema)) as Impairment;

const GO_BACK_N_WINDOW = 2048;
/** Packets in flight that a receiver can tell apart in a selective acknowledgement. */
export const MOST_SELECTIVE_WINDOW = 256;

/** DSCP that is customary for each priority: CS and AFx1 classes, EF for 5. */
const CUSTOMARY_DSCP = [0, 10, 18, 26, 34, 46, 48, 56];

function dscpMap(input: SwitchInput["dscp_map"]): number[] {
  if (input === "nvidia" || input === undefined) return Array.from({ length: 64 }, (_, dscp) => dscp >> 3);
  // SONiC's DSCP_TO_TC_MAP|AZURE.
  const map = Array<number>(64).fill(input === "sonic-azure" ? 1 : 0);
  const pairs = input === "sonic-azure" ? { 3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6 } : input;
  for (const [dscp, priority] of Object.entries(pairs)) map[Number(dscp)] = priority;
  return map;
}

/** The `switch` section in full; `mtus` are those of the switch's ports. */
export function resolveSwitch(name: string, input: SwitchInput, mtus: readonly number[]): SwitchConfig {
  const largestMtu = Math.max(0, ...mtus);
  const buffer = merge<object>(input.buffer) as BufferConfig;
  buffer.threshold ??= staticThresholdBound(buffer, mtus.length);
  buffer.xon_offset ??= 2 * largestMtu;
  const weights = Array.from({ length: 8 }, (_, priority) => input.scheduler?.weights?.[String(priority)] ?? 1);
  const scheduler = { strict: input.scheduler?.strict ?? [], weights };
  const qcn = { ports: {}, ...input.qcn } as SwitchConfig["qcn"];
  return {
    ...(input as Filled<SwitchInput>),
    name,
    buffer,
    qcn,
    scheduler,
    dscp_map: dscpMap(input.dscp_map),
  } as SwitchConfig;
}

/** The `host` section in full; `rate` is that of the host's link, bit/s, `cnpvs` are those of its switch. */
export function resolveHost(name: string, input: HostInput, rate: number, cnpvs: readonly number[]): HostConfig {
  const buffer = { ...input.receive_buffer } as HostConfig["receive_buffer"];
  buffer.xoff ??= Math.floor(buffer.size / 2);
  buffer.xon ??= Math.floor(buffer.xoff / 2);
  const initial_rate = input.initial_rate ?? rate;
  const qcn = { ...input.qcn, priorities: input.qcn?.priorities ?? [...cnpvs] };
  return { ...(input as Filled<HostInput>), name, initial_rate, receive_buffer: buffer, qcn } as HostConfig;
}

function resolveLinks(written: WrittenTopology["links"], defaults: ScenarioInput["topology"]["link"]): Link[] {
  return written.map((one) => {
    const { impairment, ...link } = merge<object>(LINK_DEFAULTS, defaults, one) as Link;
    return impairment === undefined ? link : { ...link, impairment: { ...IMPAIRMENT_DEFAULTS, ...impairment } };
  });
}

/** A DSCP that `map` gives `priority`: the customary one where that is among them. */
export function dscpOf(map: readonly number[] | undefined, priority: number): number {
  const customary = CUSTOMARY_DSCP[priority] ?? 0;
  const lowest = map?.indexOf(priority) ?? -1;
  return lowest < 0 || map?.[customary] === priority ? customary : lowest;
}

/** The queues that data waits in at the port that faces each traffic destination. */
function defaultProbes(graph: Graph, flows: Flow[]): QueueProbe[] {
  const probes = new Map<string, QueueProbe>();
  for (const { to, priority } of flows) {
    if (probes.size === MOST_DEFAULT_PROBES) break;
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

function resolveTransport(input: ScenarioInput["transport"]): Transport {
  const transport = merge<object>(DEFAULTS.transport, input) as Transport;
  transport.window ??= transport.recovery === "selective-repeat" ? MOST_SELECTIVE_WINDOW : GO_BACK_N_WINDOW;
  return transport;
}

/** Nobody would listen to its CNMs, so the domain has no switches either. */
function switchQcnOff(switches: readonly SwitchConfig[], algorithm: string, found: Findings): void {
  for (const { qcn } of switches) {
    if (!qcn.enabled) continue;
    qcn.enabled = false;
    found.warn(`switch.qcn is on, but congestion.algorithm is ${algorithm}: switches send no CNMs`);
  }
}

function resolveChanges(input: NonNullable<ScenarioInput["changes"]>): RateChange[] {
  const all = input.map(({ at = 0, priority = 3, ...rest }) => ({ at, ...rest, priority }));
  return all.sort((a, b) => a.at - b.at);
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
  const top = merge<object>(DEFAULTS, input) as Filled<ScenarioInput>;
  const written = writtenOut(topology);
  const links = resolveLinks(written.links, topology.link);
  const named = (devices: [string, unknown][]) => devices.map(([name]) => ({ name }));
  const routes = topology.routes ?? [];
  const graph = new Graph({ hosts: named(written.hosts), switches: named(written.switches), links, routes });
  const switches = written.switches.map(([name, overrides]) => {
    const mtus = (graph.ports.get(name) ?? []).map((port) => port.link.mtu);
    return resolveSwitch(name, merge<SwitchInput>(top.switch, overrides), mtus);
  });
  const byName = new Map(switches.map((s) => [s.name, s]));
  const hosts = written.hosts.map(([name, overrides]) => {
    const cnpvs = byName.get(graph.neighbour(name) ?? "")?.qcn.priorities ?? [];
    return resolveHost(name, merge<HostInput>(top.host, overrides), graph.hostLink(name)?.rate ?? 0, cnpvs);
  });
  const transport = resolveTransport(input.transport);
  const flows = resolveTraffic(top.traffic, {
    hosts: hosts.map((host) => host.name),
    rateOf: (host) => graph.hostLink(host)?.rate ?? 0,
    dscpOf: (host, priority) => dscpOf(byName.get(graph.neighbour(host) ?? "")?.dscp_map, priority),
    seed: top.seed,
    duration: top.duration,
    transport: transport.type,
    directory: context.directory,
    found: context.found,
  });
  const congestion = resolveCongestionSection(top.congestion, slowestHostRate(hosts, graph), context.found);
  if (congestion.algorithm !== "qcn") switchQcnOff(switches, congestion.algorithm, context.found);
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
    transport,
    flows,
    changes: resolveChanges(top.changes),
    probes: {
      interval: top.probes.interval as number,
      queues: top.probes.queues?.map(parseProbe) ?? defaultProbes(graph, flows),
      flows: top.probes.flows as number,
    },
    fidelity: { lateness: top.fidelity.lateness as number },
  };
  return { scenario, graph };
}

/** bit/s; percentages in a profile are of this, so that no NIC is asked for more than it has. */
export function slowestHostRate(hosts: readonly { name: string }[], graph: Graph): number {
  return hosts.reduce((least, { name }) => Math.min(least, graph.hostLink(name)?.rate ?? 0), Number.POSITIVE_INFINITY);
}
