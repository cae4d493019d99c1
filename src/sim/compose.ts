/** From a scenario to a native simulation. Meant units throughout: virtual time knows no scale and no lateness. */

import { udpSourcePort } from "../device/behaviour.js";
import { NetworkComposer } from "../device/network.js";
import type {
  NativeSimulationFlow,
  NativeSimulationLink,
  NativeSimulationNic,
  NativeSimulationRoutes,
  NativeSimulationSwitch,
  SimulationConfig,
} from "../native/simulation_types.js";
import { flowMac, hostIp } from "../scenario/addresses.js";
import type { Fabric, SwitchTable } from "../scenario/fabric.js";
import type { Scenario } from "../scenario/types.js";

/** @param taps Frames that leave these ports are traced. For one thread. */
export function composeSimulation(
  scenario: Scenario,
  fabric: Fabric,
  taps: SimulationConfig["taps"],
): SimulationConfig {
  const { recovery, timeout, retry_count, window, reordering } = scenario.transport;
  const composer = new NetworkComposer(scenario, fabric);
  return {
    seed: scenario.seed,
    sample_interval: scenario.probes.interval,
    reset_after: scenario.warmup,
    switches: scenario.switches.map((_, i) => composeSwitch(scenario, fabric, i, 0, composer)),
    nics: scenario.hosts.map((_, i) => composeNic(composer, i)),
    links: composeLinks(scenario, fabric),
    flows: composeFlows(scenario, fabric, composer),
    sizes: Uint32Array.from(scenario.flows.flatMap((flow) => flow.sizes ?? [])),
    transport: { recovery, timeout, retry_count, window, reordering },
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

/** Switch number `index` as it is from `time` on, ns. */
export function composeSwitch(
  scenario: Scenario,
  fabric: Fabric,
  index: number,
  time: number,
  composer = new NetworkComposer(scenario, fabric),
): NativeSimulationSwitch {
  const own = composer.switchAt(index, time);
  const routes = composeRoutes(fabric.tables[index] as SwitchTable, own.learning);
  const { group_of_host, pins } = routes;
  // The table is for learned addresses and pins.
  const fdb_capacity = own.learning || pins.length > 0 ? 4 * (group_of_host.length + pins.length) : 0;
  return { ...own, fdb_capacity, ...routes };
}

/** Whoever learns has pins alone. */
export function composeRoutes({ groups, groupOfHost, pins }: SwitchTable, learning: boolean): NativeSimulationRoutes {
  return { groups: learning ? [] : groups, group_of_host: learning ? new Uint16Array(0) : groupOfHost, pins };
}

function composeNic(composer: NetworkComposer, index: number): NativeSimulationNic {
  const { arrears: _, ...nic } = composer.nic(index);
  return { ...nic, ip: hostIp(index) };
}

function composeLinks(scenario: Scenario, fabric: Fabric): NativeSimulationLink[] {
  return scenario.links.map(({ delay, impairment }, i) => {
    const [from, to] = fabric.ends[i] as Fabric["ends"][number];
    return { from, to, delay, ...(impairment && { impairment }) };
  });
}

function composeFlows(
  { flows, transport, duration }: Scenario,
  fabric: Fabric,
  composer: NetworkComposer,
): NativeSimulationFlow[] {
  let sizes = 0;
  return flows.map((flow, i) => {
    const sizes_first = sizes;
    const sizes_count = flow.sizes?.length ?? 0;
    sizes += sizes_count;
    return {
      ...composer.flow(i),
      from: fabric.host(flow.from),
      to: fabric.host(flow.to),
      dscp: flow.dscp,
      udp_source_port: udpSourcePort(i),
      start: flow.start,
      stop: Math.min(flow.stop, duration),
      sizes_first,
      sizes_count,
      reliable: transport.type === "rc",
      outstanding: flow.outstanding,
      source_mac: flow.source_mac === "own" ? flowMac(i) : 0,
    };
  });
}
