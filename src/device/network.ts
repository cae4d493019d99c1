/**
 * The network of a scenario and its traffic as the native core has them, in meant units: the same on the wire and in virtual time.
 * Devices, links, hosts and flows go by their numbers.
 */
import { hearsTelemetry } from "../congestion/flow_state.js";
import {
  type NativeNetworkFlows,
  type NativeSimulationFault,
  type NativeSimulationLink,
  type NativeSimulationRoutes,
  Operation,
  type SimulationConfig,
} from "../native/simulation_types.js";
import { flowMac, hostIp, hostMac, routerMac, switchMac } from "../scenario/addresses.js";
import { priorityRates } from "../scenario/changes.js";
import { CnDomain } from "../scenario/cn_domain.js";
import type { Fabric, SwitchTable } from "../scenario/fabric.js";
import { deviceOfFault, linkOfFault, requestOf } from "../scenario/faults.js";
import { combined, commonOf } from "../scenario/graphs/job.js";
import { firstNics } from "../scenario/machines.js";
import { applications } from "../scenario/traffic.js";
import type { HostConfig, Link, Scenario, SwitchConfig } from "../scenario/types.js";
import { nicBehaviour, portBehaviour, switchBehaviour, udpSourcePort } from "./behaviour.js";
import { fabricRouter, gatewayOf } from "./fabric_router.js";
import { nativeFault } from "./faults.js";
import { connectionsOf, operationsOf } from "./message_graphs.js";

export interface Network extends Pick<SimulationConfig, "links" | "sizes" | "graph" | "transport"> {
  switches: ReturnType<typeof networkSwitch>[];
  nics: ReturnType<typeof networkNic>[];
  flows: ReturnType<typeof emptyColumns>;
}

/** What is asked of a network's switches. */
export interface NetworkOptions {
  /** Time whose service rates are taken, ns. */
  time?: number;
  /** Time by which feedback may be late, ns. */
  lateness?: number;
  /** Forwarding tables of all switches; by default those of a fabric whose links are all there. */
  tables?: readonly SwitchTable[];
  /** Versions of IP that are routed. */
  versions?: readonly (4 | 6)[];
}

export function composeNetwork(scenario: Scenario, fabric: Fabric, options: NetworkOptions = {}): Network {
  const { type: _, ...transport } = scenario.transport;
  const domain = new CnDomain(scenario);
  return {
    switches: scenario.switches.map((_, i) =>
      networkSwitch(scenario, fabric, i, { ...options, table: options.tables?.[i], domain }),
    ),
    nics: scenario.hosts.map((_, i) => networkNic(scenario, fabric, i)),
    links: linksOf(scenario, fabric),
    flows: flowsOf(scenario, fabric),
    sizes: sizesOf(scenario),
    ...(scenario.graphs.length > 0 && { graph: placedGraph(scenario, fabric) }),
    transport,
  };
}

export interface SwitchOptions extends NetworkOptions {
  /** Forwarding table; by default that of a fabric whose links are all there. */
  table?: SwitchTable | undefined;
  domain?: CnDomain;
}

export function networkSwitch(
  scenario: Scenario,
  fabric: Fabric,
  index: number,
  {
    time = 0,
    lateness = 0,
    versions = [4],
    table = fabric.tables[index] as SwitchTable,
    domain = new CnDomain(scenario),
  }: SwitchOptions = {},
) {
  const { seed, ecmp_seed, links, switches } = scenario;
  const s = switches[index] as SwitchConfig;
  const ports = (fabric.ports[index] ?? []).map(({ link, peer }, port) => {
    const { rate, mtu } = links[link] as Link;
    const name = fabric.nameOf(peer);
    const limits = priorityRates(scenario, { switch: s.name, port: name, time });
    return {
      rate,
      mtu,
      mac: switchMac(index, port),
      ...(limits && { priority_rates: limits }),
      ...portBehaviour(s, name, domain.at(s, name)),
    };
  });
  const fastest = Math.max(0, ...ports.map(({ rate }) => rate));
  const learning = s.forwarding === "learning";
  return {
    ports,
    ...switchBehaviour(s, Math.ceil((fastest * lateness) / 8e9)),
    ...(hearsTelemetry(scenario.congestion.algorithm) && { telemetry: true }),
    learning,
    ageing: s.ageing,
    load_balancing: s.load_balancing,
    flowlet_gap: s.flowlet_gap,
    seed,
    hash_seed: ecmp_seed,
    component: index,
    ...(s.forwarding === "routed" && { router: fabricRouter(scenario, fabric, index, table, versions) }),
    ...routesOf(table, learning),
  };
}

/** Routes of a switch; one that learns addresses has only pins. */
export function routesOf({ groups, groupOfHost, pins }: SwitchTable, learning: boolean): NativeSimulationRoutes {
  return { groups: learning ? [] : groups, group_of_host: learning ? new Uint16Array(0) : groupOfHost, pins };
}

function networkNic({ seed, congestion, hosts }: Scenario, fabric: Fabric, index: number) {
  const { link, neighbour } = fabric.attachment(index);
  const gateway = gatewayOf(fabric, index);
  const setting = { rate: link.rate, seed, component: index };
  return {
    mac: hostMac(index),
    ip: hostIp(index),
    ...(gateway !== undefined && { gateway_mac: routerMac(gateway) }),
    ...nicBehaviour(hosts[index] as HostConfig, neighbour, congestion, setting),
  };
}

function linksOf({ links }: Scenario, fabric: Fabric): NativeSimulationLink[] {
  return links.map(({ delay, impairment }, i) => {
    const [from, to] = fabric.ends[i] as Fabric["ends"][number];
    return { from, to, delay, ...(impairment && { impairment }) };
  });
}

/** Faults of frames by the links at whose ends these come in; those of links are made while it runs. */
export function faultsOf({ faults, links }: Scenario, fabric: Fabric): NativeSimulationFault[] {
  return faults
    .filter(({ kind }) => kind !== "down")
    .map((fault) => {
      const link = linkOfFault(links, fault);
      const { from, rate } = links[link] as Link;
      const end = from === deviceOfFault(fault, links[link] as Link) ? 0 : 1;
      return { link, end, ...nativeFault({ ...requestOf(fault, fabric), after: fault.at }, rate) };
    });
}

function sizesOf({ flows }: Scenario): Uint32Array {
  const sizes = new Uint32Array(flows.reduce((sum, flow) => sum + (flow.sizes?.length ?? 0), 0));
  let next = 0;
  for (const flow of flows) {
    if (flow.sizes === undefined) continue;
    sizes.set(flow.sizes, next);
    next += flow.sizes.length;
  }
  return sizes;
}

/** All message graphs as one; hosts by their numbers. */
export function placedGraph({ graphs, hosts: nics }: Scenario, fabric: Fabric): NonNullable<SimulationConfig["graph"]> {
  const { rendezvous, ...common } = commonOf(graphs);
  const machines = firstNics(nics);
  return {
    operations: operationsOf(combined(graphs)),
    ...common,
    ...(rendezvous !== undefined && { rendezvous }),
    nic_of_rank: Uint32Array.from(graphs.flatMap(({ hosts }) => hosts.map((host) => fabric.host(host)))),
    ...(machines && { machine_of_nic: machines }),
    begins: Float64Array.from(graphs.flatMap(({ hosts, start }) => hosts.map(() => start))),
    connections: connectionsOf(graphs),
  };
}

function flowsOf({ flows, hosts, transport, duration }: Scenario, fabric: Fabric) {
  const columns = emptyColumns(flows.length);
  const owners = applications(flows);
  columns.reliable.fill(transport.type === "rc" ? 1 : 0);
  let sizes = 0;
  flows.forEach((flow, i) => {
    const from = fabric.host(flow.from);
    columns.from[i] = from;
    columns.to[i] = fabric.host(flow.to);
    columns.priority[i] = flow.priority;
    columns.dscp[i] = flow.dscp;
    columns.udp_source_port[i] = udpSourcePort(i);
    columns.start[i] = flow.start;
    columns.stop[i] = Math.min(flow.stop, duration);
    columns.operation[i] = Operation[flow.operation];
    columns.path_mtu[i] = hosts[from]?.path_mtu ?? 1024;
    // What is sent on demand has sizes of its own.
    columns.message_bytes[i] = flow.onDemand ? 0 : flow.message;
    columns.total_bytes[i] = flow.onDemand ? 0 : (flow.bytes ?? 0);
    columns.on_demand[i] = flow.onDemand ? 1 : 0;
    columns.sizes_first[i] = sizes;
    columns.sizes_count[i] = flow.sizes?.length ?? 0;
    columns.rate_cap[i] = flow.rate ?? 0;
    columns.outstanding[i] = flow.outstanding;
    columns.source_mac[i] = flow.source_mac === "own" ? flowMac(i) : 0;
    columns.application[i] = owners[i] ?? 0;
    sizes += flow.sizes?.length ?? 0;
  });
  return columns;
}

function emptyColumns(count: number) {
  return {
    from: new Uint32Array(count),
    to: new Uint32Array(count),
    priority: new Uint8Array(count),
    dscp: new Uint8Array(count),
    udp_source_port: new Uint16Array(count),
    start: new Float64Array(count),
    stop: new Float64Array(count),
    operation: new Uint8Array(count),
    path_mtu: new Uint32Array(count),
    message_bytes: new Uint32Array(count),
    total_bytes: new Float64Array(count),
    sizes_first: new Uint32Array(count),
    sizes_count: new Uint32Array(count),
    rate_cap: new Float64Array(count),
    reliable: new Uint8Array(count),
    on_demand: new Uint8Array(count),
    outstanding: new Uint16Array(count),
    source_mac: new Float64Array(count),
    application: new Uint32Array(count),
  } satisfies NativeNetworkFlows;
}
