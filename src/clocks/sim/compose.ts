/** Makes a native simulation of a scenario. All units are meant ones: virtual time knows no scale and no lateness. */

import { udpSourcePort } from "../../device/behaviour.js";
import { gatewayOf } from "../../device/fabric_router.js";
import { NetworkComposer } from "../../device/network.js";
import {
  type NativeSimulationFlows,
  type NativeSimulationLink,
  type NativeSimulationNic,
  type NativeSimulationRoutes,
  type NativeSimulationSwitch,
  Operation,
  type SimulationConfig,
} from "../../native/simulation_types.js";
import { flowMac, hostIp, routerMac } from "../../scenario/addresses.js";
import type { Fabric, SwitchTable } from "../../scenario/fabric.js";
import type { Scenario } from "../../scenario/types.js";

/** Composes the simulation for one thread. @param taps Ports whose leaving frames are traced. */
export function composeSimulation(
  scenario: Scenario,
  fabric: Fabric,
  taps: SimulationConfig["taps"],
): SimulationConfig {
  const { type: _, ...transport } = scenario.transport;
  const composer = new NetworkComposer(scenario, fabric);
  return {
    seed: scenario.seed,
    sample_interval: scenario.probes.interval,
    reset_after: scenario.warmup,
    switches: scenario.switches.map((_, i) => composeSwitch(scenario, fabric, i, 0, { composer })),
    nics: scenario.hosts.map((_, i) => composeNic(composer, fabric, i)),
    links: composeLinks(scenario, fabric),
    flows: composeFlows(scenario, fabric, composer),
    sizes: composeSizes(scenario),
    transport,
    sampled_flows: Uint32Array.from({ length: Math.min(scenario.probes.flows, scenario.flows.length) }, (_, i) => i),
    sampled_queues: sampledQueues(scenario, fabric),
    all_distributions: keepsAllQueues(scenario, fabric),
    taps,
    threads: 1,
    fewer_threads: false,
  };
}

/** Distributions of all queues of a larger network would not fit the caches: a run of 1,024 hosts takes a third longer with them. */
const kMostPorts = 512;

/** Whether the lengths of all queues are told, or only of those of scenario.probes. */
function keepsAllQueues({ switches }: Scenario, fabric: Fabric): boolean {
  return switches.reduce((sum, _, i) => sum + (fabric.ports[i]?.length ?? 0), 0) <= kMostPorts;
}

/** The queues of scenario.probes as numbers, in their order. */
function sampledQueues(scenario: Scenario, fabric: Fabric): SimulationConfig["sampled_queues"] {
  return scenario.probes.queues.map((queue) => ({
    switch: fabric.device(queue.switch),
    port: fabric.portTo(queue.switch, queue.port),
    priority: queue.priority,
  }));
}

export interface SwitchContext {
  /** Composer to use; by default a new one. */
  composer?: NetworkComposer;
  /** Forwarding table; by default that of a fabric whose links are all there. */
  table?: SwitchTable;
}

/** Switch number `index` as it is from `time` on, ns. */
export function composeSwitch(
  scenario: Scenario,
  fabric: Fabric,
  index: number,
  time: number,
  { composer = new NetworkComposer(scenario, fabric), table = fabric.tables[index] as SwitchTable }: SwitchContext = {},
): NativeSimulationSwitch {
  const own = { ...composer.switchAt(index, time), ...composer.router(index, table, [4]) };
  const routes = composeRoutes(table, own.learning);
  const { group_of_host, pins } = routes;
  // The table is for learned addresses and pins.
  const fdb_capacity = own.learning || pins.length > 0 ? 4 * (group_of_host.length + pins.length) : 0;
  return { ...own, fdb_capacity, ...routes };
}

/** Routes of a switch; one that learns addresses has only pins. */
export function composeRoutes({ groups, groupOfHost, pins }: SwitchTable, learning: boolean): NativeSimulationRoutes {
  return { groups: learning ? [] : groups, group_of_host: learning ? new Uint16Array(0) : groupOfHost, pins };
}

function composeNic(composer: NetworkComposer, fabric: Fabric, index: number): NativeSimulationNic {
  const { arrears: _, ...nic } = composer.nic(index);
  const gateway = gatewayOf(fabric, index);
  return { ...nic, ip: hostIp(index), ...(gateway !== undefined && { gateway_mac: routerMac(gateway) }) };
}

function composeLinks(scenario: Scenario, fabric: Fabric): NativeSimulationLink[] {
  return scenario.links.map(({ delay, impairment }, i) => {
    const [from, to] = fabric.ends[i] as Fabric["ends"][number];
    return { from, to, delay, ...(impairment && { impairment }) };
  });
}

function composeSizes({ flows }: Scenario): Uint32Array {
  const sizes = new Uint32Array(flows.reduce((sum, flow) => sum + (flow.sizes?.length ?? 0), 0));
  let next = 0;
  for (const flow of flows) {
    if (flow.sizes === undefined) continue;
    sizes.set(flow.sizes, next);
    next += flow.sizes.length;
  }
  return sizes;
}

function composeFlows(scenario: Scenario, fabric: Fabric, composer: NetworkComposer): NativeSimulationFlows {
  const { flows, transport, duration } = scenario;
  const columns = emptyColumns(flows.length);
  columns.reliable.fill(transport.type === "rc" ? 1 : 0);
  let sizes = 0;
  flows.forEach((flow, i) => {
    const sent = composer.flow(i);
    columns.priority[i] = sent.priority;
    columns.operation[i] = Operation[sent.operation];
    columns.path_mtu[i] = sent.path_mtu;
    columns.message_bytes[i] = sent.message_bytes;
    columns.total_bytes[i] = sent.total_bytes;
    columns.rate_cap[i] = sent.rate_cap;
    columns.application[i] = sent.application;
    columns.from[i] = fabric.host(flow.from);
    columns.to[i] = fabric.host(flow.to);
    columns.dscp[i] = flow.dscp;
    columns.udp_source_port[i] = udpSourcePort(i);
    columns.start[i] = flow.start;
    columns.stop[i] = Math.min(flow.stop, duration);
    columns.sizes_first[i] = sizes;
    columns.sizes_count[i] = flow.sizes?.length ?? 0;
    columns.outstanding[i] = flow.outstanding;
    columns.source_mac[i] = flow.source_mac === "own" ? flowMac(i) : 0;
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
    outstanding: new Uint16Array(count),
    source_mac: new Float64Array(count),
    application: new Uint32Array(count),
  } satisfies NativeSimulationFlows;
}
