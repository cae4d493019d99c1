/** From a scenario to a native simulation. Meant units throughout: virtual time knows no scale and no lateness. */

import { nicBehaviour, portBehaviour, switchBehaviour, udpSourcePort } from "../device/behaviour.js";
import type {
  NativeSimulationFlow,
  NativeSimulationLink,
  NativeSimulationNic,
  NativeSimulationSwitch,
  SimulationConfig,
} from "../native/simulation_types.js";
import { flowMac, hostIp, hostMac, switchMac } from "../scenario/addresses.js";
import { priorityRates } from "../scenario/changes.js";
import { CnDomain } from "../scenario/cn_domain.js";
import { applications } from "../scenario/traffic.js";
import type { Scenario } from "../scenario/types.js";
import type { Fabric } from "./fabric.js";

/** @param taps Frames that leave these ports are traced. */
export function composeSimulation(
  scenario: Scenario,
  fabric: Fabric,
  taps: SimulationConfig["taps"],
): SimulationConfig {
  const { recovery, timeout, retry_count, window } = scenario.transport;
  const domain = new CnDomain(scenario);
  return {
    seed: scenario.seed,
    sample_interval: scenario.probes.interval,
    reset_after: scenario.warmup,
    switches: scenario.switches.map((_, i) => composeSwitch(scenario, fabric, i, 0, domain)),
    nics: scenario.hosts.map((_, i) => composeNic(scenario, fabric, i)),
    links: composeLinks(scenario, fabric),
    flows: composeFlows(scenario, fabric),
    sizes: Uint32Array.from(scenario.flows.flatMap((flow) => flow.sizes ?? [])),
    transport: { recovery, timeout, retry_count, window },
    sampled_flows: Uint32Array.from({ length: Math.min(scenario.probes.flows, scenario.flows.length) }, (_, i) => i),
    sampled_queues: sampledQueues(scenario, fabric),
    all_distributions: keepsAllQueues(scenario, fabric),
    taps,
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
  domain = new CnDomain(scenario),
): NativeSimulationSwitch {
  const s = scenario.switches[index] as Scenario["switches"][number];
  const { groups, groupOfHost, pins } = fabric.tables[index] as Fabric["tables"][number];
  const learning = s.forwarding === "learning";
  const hosts = learning ? new Uint16Array(0) : groupOfHost;
  return {
    ports: (fabric.ports[index] ?? []).map(({ link, peer }, port) => {
      const { rate = 0, mtu = 0 } = scenario.links[link] ?? {};
      const name = fabric.nameOf(peer);
      const rates = priorityRates(scenario, { switch: s.name, port: name, time });
      const own = { rate, mtu, mac: switchMac(index, port), ...(rates && { priority_rates: rates }) };
      return { ...own, ...portBehaviour(s, domain.at(s, name)) };
    }),
    ...switchBehaviour(s, 0),
    learning,
    ageing: s.ageing,
    seed: scenario.seed,
    hash_seed: scenario.ecmp_seed,
    component: index,
    // For learned addresses and pins.
    fdb_capacity: learning || pins.length > 0 ? 4 * (hosts.length + pins.length) : 0,
    groups: learning ? [] : groups,
    group_of_host: hosts,
    pins,
  };
}

function composeNic(scenario: Scenario, fabric: Fabric, index: number): NativeSimulationNic {
  const host = scenario.hosts[index] as Scenario["hosts"][number];
  const port = fabric.ports[scenario.switches.length + index]?.[0];
  const neighbour = scenario.switches[port?.peer ?? -1];
  const link = scenario.links[port?.link ?? -1];
  if (link === undefined || neighbour === undefined) throw new Error(`host ${host.name} is not linked to a switch`);
  const { arrears: _, ...behaviour } = nicBehaviour(host, neighbour, scenario.congestion, {
    rate: link.rate,
    scale: 1,
    seed: scenario.seed,
    component: index,
  });
  return { mac: hostMac(index), ip: hostIp(index), ...behaviour };
}

function composeLinks(scenario: Scenario, fabric: Fabric): NativeSimulationLink[] {
  return scenario.links.map(({ delay, impairment }, i) => {
    const [from, to] = fabric.ends[i] as Fabric["ends"][number];
    return { from, to, delay, ...(impairment && { impairment }) };
  });
}

function composeFlows(scenario: Scenario, fabric: Fabric): NativeSimulationFlow[] {
  const { flows, hosts, transport, duration } = scenario;
  const numbers = applications(flows);
  let sizes = 0;
  return flows.map((flow, i) => {
    const from = fabric.host(flow.from);
    const sizes_first = sizes;
    const sizes_count = flow.sizes?.length ?? 0;
    sizes += sizes_count;
    return {
      from,
      to: fabric.host(flow.to),
      priority: flow.priority,
      dscp: flow.dscp,
      udp_source_port: udpSourcePort(i),
      start: flow.start,
      stop: Math.min(flow.stop, duration),
      operation: flow.operation,
      path_mtu: hosts[from]?.path_mtu ?? 0,
      message_bytes: flow.message,
      total_bytes: flow.bytes ?? 0,
      sizes_first,
      sizes_count,
      rate_cap: flow.rate ?? 0,
      reliable: transport.type === "rc",
      outstanding: flow.outstanding,
      source_mac: flow.source_mac === "own" ? flowMac(i) : 0,
      application: numbers[i] ?? 0,
    };
  });
}
