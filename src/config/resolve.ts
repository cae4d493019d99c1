// From the scenario as written to the scenario in full: defaults merged, links and flows expanded. Judges nothing (check.ts does).
import { resolveCongestion } from "./congestion.js";
import { defaultsOf } from "./fields.js";
import { impairmentSchema, linkDefaultsSchema, type ScenarioInput, scenarioSchema, trafficSchema } from "./schema.js";
import { hostLink, type Network, switchPorts } from "./topology.js";
import type { BufferConfig, Flow, HostConfig, Impairment, Link, QueueProbe, Scenario, SwitchConfig } from "./types.js";

export type SwitchInput = NonNullable<ScenarioInput["switch"]>;
export type HostInput = NonNullable<ScenarioInput["host"]>;
type TrafficInput = NonNullable<ScenarioInput["traffic"]>[number];
/** After the defaults are merged in. */
type Filled<T> = { [K in keyof T]-?: Exclude<T[K], undefined> };

const DEFAULTS = scenarioSchema.omit({ topology: true }).parse(defaultsOf(scenarioSchema.omit({ topology: true })));
const LINK_DEFAULTS = linkDefaultsSchema
  .omit({ impairment: true })
  .parse(defaultsOf(linkDefaultsSchema.omit({ impairment: true })));
export const IMPAIRMENT_DEFAULTS = impairmentSchema.parse(defaultsOf(impairmentSchema)) as Impairment;
const TRAFFIC_DEFAULTS = trafficSchema.partial().parse(defaultsOf(trafficSchema));

/** DSCP that is customary for each priority: CS and AFx1 classes, EF for 5. */
const CUSTOMARY_DSCP = [0, 10, 18, 26, 34, 46, 48, 56];

const isSection = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Later layers win, field by field. Sections are merged; lists, DSCP maps and weights are replaced as a whole. */
export function merge<T extends object>(...layers: (T | null | undefined)[]): T {
  const result: Record<string, unknown> = {};
  for (const layer of layers) {
    for (const [key, value] of Object.entries(layer ?? {})) {
      if (value === undefined) continue;
      const before = result[key];
      const whole = key === "dscp_map" || key === "weights" || !isSection(before) || !isSection(value);
      result[key] = whole ? value : merge(before, value);
    }
  }
  return result as T;
}

/** `[a, b]` and `{a: ..., b: null}` alike as name -> overrides; a name given twice in a list appears twice. */
export function entries<T extends object>(
  members: string[] | Record<string, T | null> | undefined,
): [string, T | null][] {
  if (members === undefined) return [];
  return Array.isArray(members) ? members.map((name) => [name, null]) : Object.entries(members);
}

function dscpMap(input: SwitchInput["dscp_map"]): number[] {
  if (input === "nvidia" || input === undefined) return Array.from({ length: 64 }, (_, dscp) => dscp >> 3);
  // SONiC's DSCP_TO_TC_MAP|AZURE.
  const map = Array<number>(64).fill(input === "sonic-azure" ? 1 : 0);
  const pairs = input === "sonic-azure" ? { 3: 3, 4: 4, 5: 2, 8: 0, 46: 5, 48: 6 } : input;
  for (const [dscp, priority] of Object.entries(pairs)) map[Number(dscp)] = priority;
  return map;
}

/** (B - P n t_flight) / (P n): the largest static t_PFC that cannot overflow the buffer (paper section 4). */
export function staticThresholdBound(
  buffer: Pick<BufferConfig, "total" | "headroom" | "priorities">,
  ports: number,
): number {
  const queues = buffer.priorities * Math.max(ports, 1);
  return Math.max(0, Math.floor((buffer.total - queues * buffer.headroom) / queues));
}

/** The `switch` section in full; `mtus` are those of the switch's ports. */
export function resolveSwitch(name: string, input: SwitchInput, mtus: readonly number[]): SwitchConfig {
  const largestMtu = Math.max(0, ...mtus);
  const buffer = merge<object>(input.buffer) as BufferConfig;
  buffer.threshold ??= staticThresholdBound(buffer, mtus.length);
  buffer.xon_offset ??= 2 * largestMtu;
  const weights = Array.from({ length: 8 }, (_, priority) => input.scheduler?.weights?.[String(priority)] ?? 1);
  const scheduler = { strict: input.scheduler?.strict ?? [], weights };
  return {
    ...(input as Filled<SwitchInput>),
    name,
    buffer,
    scheduler,
    dscp_map: dscpMap(input.dscp_map),
  } as SwitchConfig;
}

/** The `host` section in full; `rate` is that of the host's link, bit/s. */
export function resolveHost(name: string, input: HostInput, rate: number): HostConfig {
  const buffer = { ...input.receive_buffer } as HostConfig["receive_buffer"];
  buffer.xoff ??= Math.floor(buffer.size / 2);
  buffer.xon ??= Math.floor(buffer.xoff / 2);
  const initial_rate = input.initial_rate ?? rate;
  return { ...(input as Filled<HostInput>), name, initial_rate, receive_buffer: buffer } as HostConfig;
}

function resolveLinks(topology: ScenarioInput["topology"]): Link[] {
  return topology.links.map((written) => {
    const { impairment, ...link } = merge<object>(LINK_DEFAULTS, topology.link, written) as Link;
    return impairment === undefined ? link : { ...link, impairment: { ...IMPAIRMENT_DEFAULTS, ...impairment } };
  });
}

/** The DSCP that gives `priority` at the switch the host is attached to; the customary one where that is among them. */
function flowDscp(switches: Map<string, SwitchConfig>, link: Link | undefined, host: string, priority: number): number {
  const first = switches.get((link?.from === host ? link?.to : link?.from) ?? "");
  return dscpOf(first?.dscp_map, priority);
}

/** A DSCP that `map` gives `priority`: the customary one where that is among them. */
export function dscpOf(map: readonly number[] | undefined, priority: number): number {
  const customary = CUSTOMARY_DSCP[priority] ?? 0;
  const lowest = map?.indexOf(priority) ?? -1;
  return lowest < 0 || map?.[customary] === priority ? customary : lowest;
}

function resolveFlows(
  traffic: TrafficInput[],
  duration: number,
  dscpOf: (host: string, priority: number) => number,
): Flow[] {
  const used = new Map<string, number>();
  return traffic.flatMap((entry) => {
    const senders = Array.isArray(entry.from) ? entry.from : [entry.from];
    const t = merge<object>(TRAFFIC_DEFAULTS, entry) as Filled<TrafficInput>;
    return senders.flatMap((from) =>
      Array.from({ length: t.qps }, (_, i): Flow => {
        let id = entry.id ?? `${from}-${entry.to}`;
        if (entry.id !== undefined && senders.length > 1) id = `${entry.id}/${from}`;
        // Ids that nobody chose go on counting, so that two entries between the same hosts don't collide.
        const number = entry.id === undefined ? (used.get(id) ?? 0) + 1 : i + 1;
        used.set(id, number);
        return {
          id: number > 1 ? `${id}#${number}` : id,
          from,
          to: entry.to,
          priority: t.priority,
          dscp: entry.dscp ?? dscpOf(from, t.priority),
          start: t.start,
          stop: Math.min(entry.stop ?? duration, duration),
          operation: t.operation,
          message: t.message,
          rate: entry.rate,
          bytes: entry.bytes,
        };
      }),
    );
  });
}

/** The queues that data waits in at the port that faces each traffic destination. */
function defaultProbes(network: Network, flows: Flow[]): QueueProbe[] {
  const ports = switchPorts(network);
  const probes = new Map<string, QueueProbe>();
  for (const { to, priority } of flows) {
    const link = hostLink(network, to);
    const name = link?.from === to ? link.to : link?.from;
    if (name === undefined || !ports.has(name)) continue;
    probes.set(`${name}:${to}:${priority}`, { switch: name, port: to, priority });
  }
  return [...probes.values()];
}

function parseProbe(text: string): QueueProbe {
  const [name = "", port = "", priority = ""] = text.split(":");
  return { switch: name, port, priority: Number(priority) };
}

/** The scenario in full. `fallbackName` is used where it has no name. */
export function resolveScenario(input: ScenarioInput, fallbackName: string): Scenario {
  const { topology } = input;
  const top = merge<object>(DEFAULTS, input) as Filled<ScenarioInput>;
  const links = resolveLinks(topology);
  const hosts = entries<HostInput>(topology.hosts).map(([name, overrides]) => {
    const link = links.find((l) => l.from === name || l.to === name);
    return resolveHost(name, merge<HostInput>(top.host, overrides), link?.rate ?? 0);
  });
  const switches = entries<SwitchInput>(topology.switches).map(([name, overrides]) => {
    const own = links.filter((link) => link.from === name || link.to === name);
    const mtus = own.map((link) => link.mtu);
    return resolveSwitch(name, merge<SwitchInput>(top.switch, overrides), mtus);
  });
  const network: Network = { hosts, switches, links, routes: topology.routes ?? [] };
  const byName = new Map(switches.map((s) => [s.name, s]));
  const flows = resolveFlows(top.traffic, top.duration, (host, priority) =>
    flowDscp(byName, hostLink(network, host), host, priority),
  );
  const { algorithm, profile, parameters } = top.congestion as Filled<typeof top.congestion>;
  return {
    name: input.name ?? fallbackName,
    description: top.description,
    scale: top.scale,
    seed: top.seed,
    duration: top.duration,
    warmup: input.warmup ?? Math.round(top.duration / 5),
    hosts,
    switches,
    links,
    routes: topology.routes ?? [],
    congestion: {
      algorithm,
      profile,
      parameters: resolveCongestion(profile, parameters ?? {}, slowestHostRate(network)),
    },
    flows,
    probes: {
      interval: top.probes.interval as number,
      queues: top.probes.queues?.map(parseProbe) ?? defaultProbes(network, flows),
    },
    fidelity: { lateness: top.fidelity.lateness as number },
  };
}

/** bit/s; percentages in a profile are of this, so that no NIC is asked for more than it has. */
export function slowestHostRate(network: Network): number {
  return Math.min(...network.hosts.map((host) => hostLink(network, host.name)?.rate ?? 0));
}
