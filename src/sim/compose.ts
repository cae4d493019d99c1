/** From a scenario to a native simulation. Meant units throughout: virtual time knows no scale and no lateness. */

import { nicBehaviour, portBehaviour, switchBehaviour, udpSourcePort } from "../device/behaviour.js";
import type {
  NativeSimulationFlows,
  NativeSimulationLink,
  NativeSimulationNic,
  NativeSimulationSwitch,
  SimulationConfig,
} from "../native/simulation_types.js";
import { flowMac, hostIp, hostMac, switchMac } from "../scenario/addresses.js";
import { priorityRates } from "../scenario/changes.js";
import { CnDomain } from "../scenario/cn_domain.js";
import { applications } from "../scenario/traffic.js";
import type { Flow, Scenario } from "../scenario/types.js";
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
  return {
    name: s.name,
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
    groups: learning ? [] : groups,
    group_of_host: learning ? new Uint16Array(0) : groupOfHost,
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
  return { name: host.name, mac: hostMac(index), ip: hostIp(index), rate: link.rate, ...behaviour };
}

function composeLinks(scenario: Scenario, fabric: Fabric): NativeSimulationLink[] {
  return scenario.links.map(({ delay, impairment }, i) => {
    const [from, to] = fabric.ends[i] as Fabric["ends"][number];
    return { from, to, delay, ...(impairment && { impairment }) };
  });
}

function composeFlows(scenario: Scenario, fabric: Fabric): NativeSimulationFlows {
  const { flows, hosts } = scenario;
  const sizes = Float64Array.from(flows.flatMap((flow) => flow.sizes ?? []));
  let nextSize = 0;
  const firsts = flows.map((flow) => {
    const first = nextSize;
    nextSize += flow.sizes?.length ?? 0;
    return first;
  });
  const column = (value: (flow: Flow, i: number) => number) => flows.map(value);
  const reliable = scenario.transport.type === "rc" ? 1 : 0;
  const from = Uint32Array.from(column((flow) => fabric.host(flow.from)));
  return {
    from,
    to: Uint32Array.from(column((flow) => fabric.host(flow.to))),
    priority: Uint8Array.from(column((flow) => flow.priority)),
    dscp: Uint8Array.from(column((flow) => flow.dscp)),
    udp_source_port: Uint16Array.from(column((_, i) => udpSourcePort(i))),
    start: Float64Array.from(column((flow) => flow.start)),
    stop: Float64Array.from(column((flow) => Math.min(flow.stop, scenario.duration))),
    write: Uint8Array.from(column((flow) => (flow.operation === "write" ? 1 : 0))),
    path_mtu: Uint16Array.from(column((_, i) => hosts[from[i] as number]?.path_mtu ?? 0)),
    message: Float64Array.from(column((flow) => flow.message)),
    total: Float64Array.from(column((flow) => flow.bytes ?? 0)),
    sizes_first: Uint32Array.from(firsts),
    sizes_count: Uint32Array.from(column((flow) => flow.sizes?.length ?? 0)),
    sizes,
    rate_cap: Float64Array.from(column((flow) => flow.rate ?? 0)),
    reliable: new Uint8Array(flows.length).fill(reliable),
    outstanding: Uint16Array.from(column((flow) => flow.outstanding)),
    source_mac: Float64Array.from(column((flow, i) => (flow.source_mac === "own" ? flowMac(i) : 0))),
    application: Uint32Array.from(applications(flows)),
  };
}
