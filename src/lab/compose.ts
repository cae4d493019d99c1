/** From a scenario to native devices: topology to ports, addresses, routes and queue pairs, meant units to wall units. */

import {
  kEct0,
  kFirstQpn,
  kQuantumNs,
  nicBehaviour,
  portBehaviour,
  receiveSlots,
  switchBehaviour,
  switchDescriptors,
  udpSourcePort,
} from "../device/behaviour.js";
import type { LabEnd, LabLink, LabNode } from "../host/veth.js";
import type { NativeNic, NativePort, NativeQueuePair, NativeSwitch } from "../native/device_types.js";
import type { WorkerConfig } from "../native/types.js";
import { flowMac, hostIp, hostMac, switchMac } from "../scenario/addresses.js";
import { priorityRates } from "../scenario/changes.js";
import { CnDomain } from "../scenario/cn_domain.js";
import { routes, type SwitchRoutes, switchPorts } from "../scenario/topology.js";
import { applications } from "../scenario/traffic.js";
import type { Flow, HostConfig, Link, Scenario } from "../scenario/types.js";
import { kHeaderBytes } from "../wire/frame_size.js";

export interface ComposeOptions {
  /** Wall time = meant time * scale; wall rate = meant rate / scale. */
  scale: number;
  /** The end of link number `link` at the device `node`. */
  end(link: number, node: string): LabEnd;
  /** Service rates are those of this time, meant ns from the start of traffic; default: 0. */
  time?: number;
  /** CPUs for the switch and the NIC worker; -1: any. */
  cpus: { switches: number; nics: number };
}

/** The namespaces and links that a scenario needs. */
export function labNetwork(scenario: Scenario): { nodes: LabNode[]; links: LabLink[] } {
  const hosts = new Map(scenario.hosts.map((host, i) => [host.name, hostMac(i)]));
  const address = (side: "fromMac" | "toMac", node: string) => {
    const mac = hosts.get(node);
    return mac === undefined ? {} : { [side]: mac };
  };
  return {
    nodes: [
      ...scenario.hosts.map(({ name }) => ({ name, role: "host" as const })),
      ...scenario.switches.map(({ name }) => ({ name, role: "switch" as const })),
    ],
    links: scenario.links.map(({ from, to, mtu }) => ({
      from,
      to,
      mtu,
      ...address("fromMac", from),
      ...address("toMac", to),
    })),
  };
}

/** Worker configurations: one for all switches, one for all NICs. */
export function composeLab(scenario: Scenario, options: ComposeOptions): WorkerConfig[] {
  const wall = (ns: number) => Math.round(ns * options.scale);
  const slow = (rate: number) => Math.round(rate / options.scale);
  const hostIndex = new Map(scenario.hosts.map((host, i) => [host.name, i]));
  const mtu = Math.max(...scenario.links.map((link) => link.mtu));
  const frameBytes = mtu + 18;
  const smallest = Math.min(...scenario.hosts.map((host) => host.path_mtu)) + kHeaderBytes;

  const port = (link: Link, node: string): NativePort => {
    const number = scenario.links.indexOf(link);
    const end = options.end(number, node);
    const rate = slow(link.rate);
    const { impairment } = link;
    return {
      name: link.from === node ? link.to : link.from,
      interface: end.interface,
      namespace_fd: end.namespaceFd,
      slot_bytes: frameBytes,
      receive_slots: receiveSlots(rate, scenario.fidelity.lateness, { delay: wall(link.delay), frame: smallest }),
      rate,
      delay: wall(link.delay),
      ...(impairment && {
        impairment: {
          loss: impairment.loss,
          duplicate: impairment.duplicate,
          corrupt: impairment.corrupt,
          reorder: impairment.reorder,
          delay: 0,
          jitter: wall(impairment.jitter),
          reorder_delay: wall(impairment.reorder_delay),
          component: 2 * number + (link.from === node ? 0 : 1),
        },
      }),
    };
  };

  const common = {
    seed: scenario.seed,
    packet_bytes: Math.ceil((frameBytes + 64) / 64) * 64,
    quantum: kQuantumNs,
    sample_interval: wall(scenario.probes.interval),
    reset_after: wall(scenario.warmup),
  };
  const switches = composeSwitches(scenario, options, port, hostIndex);
  const nics = scenario.hosts.map((host) => composeNic(scenario, host, hostIndex, options.scale, port));
  return [
    {
      ...common,
      name: "switches",
      cpu: options.cpus.switches,
      packets: switches.reduce((sum, s) => sum + switchDescriptors(s, smallest), 4096),
      switches,
      nics: [],
    },
    { ...common, name: "nics", cpu: options.cpus.nics, packets: 4096 + 512 * nics.length, switches: [], nics },
  ];
}

function composeSwitches(
  scenario: Scenario,
  options: ComposeOptions,
  port: (link: Link, node: string) => NativePort,
  hostIndex: ReadonlyMap<string, number>,
): NativeSwitch[] {
  const ports = switchPorts(scenario);
  const tables = routes(scenario);
  const mac = (host: string) => hostMac(hostIndex.get(host) ?? 0);
  const domain = new CnDomain(scenario);
  const ownMacs = scenario.flows.flatMap((flow, i) =>
    flow.source_mac === "own" ? [{ ...flow, mac: flowMac(i) }] : [],
  );
  return scenario.switches.map((s, index) => {
    const own = ports.get(s.name) ?? [];
    const table = tables.get(s.name);
    const native = own.map((p) => {
      const limits = priorityRates(scenario, { switch: s.name, port: p.peer, time: options.time ?? 0 });
      return {
        ...port(p.link, s.name),
        mtu: p.link.mtu,
        mac: switchMac(index, p.index),
        ...(limits && { priority_rates: limits.map((limit) => Math.round(limit / options.scale)) }),
        ...portBehaviour(s, domain.at(s, p.peer)),
      };
    });
    const fastest = Math.max(0, ...native.map((p) => p.rate));
    const learning = s.forwarding === "learning";
    return {
      name: s.name,
      ports: native,
      ...switchBehaviour(s, Math.ceil((fastest / 8) * (scenario.fidelity.lateness / 1e9))),
      learning,
      ageing: Math.round(s.ageing * options.scale),
      seed: scenario.seed,
      hash_seed: scenario.ecmp_seed,
      component: index,
      routes: learning ? [] : composeRoutes(table, mac, ownMacs),
      pins: (table?.pinned ?? []).flatMap(({ from, to, port }) => {
        const flows = ownMacs.filter((flow) => flow.from === from && flow.to === to);
        const sources = [mac(from), ...flows.map((flow) => flow.mac)];
        return sources.map((source_mac) => ({ source_mac, destination_mac: mac(to), port }));
      }),
    };
  });
}

/** What goes to a flow's own address (CNMs do) takes the way to its host. */
function composeRoutes(
  table: SwitchRoutes | undefined,
  mac: (host: string) => number,
  ownMacs: readonly { from: string; mac: number }[],
): NativeSwitch["routes"] {
  return [...(table?.groups ?? [])].flatMap(([host, ports]) => {
    const addresses = ownMacs.filter(({ from }) => from === host).map((flow) => flow.mac);
    return [mac(host), ...addresses].map((destination_mac) => ({ destination_mac, ports }));
  });
}

/** Number of the application of each flow. */
function applicationsOf({ flows }: Scenario): ReadonlyMap<Flow, number> {
  const numbers = applications(flows);
  return new Map(flows.map((flow, i) => [flow, numbers[i] ?? 0]));
}

function composeNic(
  scenario: Scenario,
  host: HostConfig,
  hostIndex: ReadonlyMap<string, number>,
  scale: number,
  port: (link: Link, node: string) => NativePort,
): NativeNic {
  const index = hostIndex.get(host.name) ?? 0;
  const link = scenario.links.find((l) => l.from === host.name || l.to === host.name);
  if (link === undefined) throw new Error(`host ${host.name} has no link`);
  const neighbour = scenario.switches.find((s) => s.name === link.from || s.name === link.to);
  if (neighbour === undefined) throw new Error(`host ${host.name} is not linked to a switch`);
  const native = port(link, host.name);
  const numbers = applicationsOf(scenario);
  return {
    name: host.name,
    port: native,
    mac: hostMac(index),
    first_qpn: kFirstQpn,
    ...nicBehaviour(host, neighbour, scenario.congestion, {
      rate: native.rate,
      scale,
      seed: scenario.seed,
      component: index,
    }),
    queue_pairs: queuePairsOf(scenario, host.name).map(({ flow, sends, remoteQpn }) => ({
      ...composeQueuePair(scenario, flow, sends, remoteQpn, hostIndex, scale),
      application: numbers.get(flow) ?? 0,
    })),
  };
}

export interface HostQueuePair {
  flow: Flow;
  /** True at the flow's sender. */
  sends: boolean;
  remoteQpn: number;
}

/** The queue pairs of a host in the order of their numbers: one for each flow that it sends or receives. */
export function queuePairsOf(scenario: Scenario, host: string): HostQueuePair[] {
  const number = (name: string, flow: Flow) =>
    kFirstQpn + scenario.flows.filter((f) => f.from === name || f.to === name).indexOf(flow);
  return scenario.flows
    .filter((flow) => flow.from === host || flow.to === host)
    .map((flow) => {
      const sends = flow.from === host;
      return { flow, sends, remoteQpn: number(sends ? flow.to : flow.from, flow) };
    });
}

function composeQueuePair(
  scenario: Scenario,
  flow: Flow,
  sends: boolean,
  remoteQpn: number,
  hostIndex: ReadonlyMap<string, number>,
  scale: number,
): NativeQueuePair {
  const [self, peer] = (sends ? [flow.from, flow.to] : [flow.to, flow.from]).map(
    (name) => hostIndex.get(name) ?? 0,
  ) as [number, number];
  const sender = scenario.hosts[hostIndex.get(flow.from) ?? 0];
  const order = scenario.flows.indexOf(flow);
  return {
    name: flow.id,
    remote_qpn: remoteQpn,
    path: {
      destination_mac: hostMac(peer),
      source_mac: hostMac(self),
      tagged: false,
      vlan_tci: 0,
      ip_version: 4,
      source_ip: hostIp(self),
      destination_ip: hostIp(peer),
      dscp: flow.dscp,
      ecn: kEct0,
      udp_source_port: udpSourcePort(order),
    },
    priority: flow.priority,
    operation: flow.operation,
    path_mtu: sender?.path_mtu ?? 1024,
    message_bytes: flow.message,
    total_bytes: flow.bytes ?? 0,
    first_psn: 0,
    ...(sends && {
      start: Math.round(flow.start * scale),
      stop: Math.round(Math.min(flow.stop, scenario.duration) * scale),
    }),
    rate_cap: flow.rate === undefined ? 0 : Math.max(1, Math.round(flow.rate / scale)),
    remote_address: 0,
    remote_key: 0,
    ...(sends && flow.source_mac === "own" && { source_mac: flowMac(order) }),
  };
}
