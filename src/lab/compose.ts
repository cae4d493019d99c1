/** From a scenario to native devices: topology to ports, addresses, routes and queue pairs, meant units to wall units. */

import { kEct0, kFirstQpn, kQuantumNs, receiveSlots, switchDescriptors, udpSourcePort } from "../device/behaviour.js";
import { NetworkComposer } from "../device/network.js";
import type { LabEnd, LabLink, LabNode } from "../host/veth.js";
import type { NativeNic, NativePort, NativeQueuePair, NativeSwitch, WorkerConfig } from "../native/types.js";
import { flowMac, hostIp, hostIpv6, hostMac } from "../scenario/addresses.js";
import { Fabric, type FabricPort } from "../scenario/fabric.js";
import type { Flow, Link, Scenario } from "../scenario/types.js";
import { addressBytes } from "../wire/address.js";
import { kHeaderBytes } from "../wire/frame_size.js";
import { halfControlLoop } from "./control_loop.js";

export interface ComposeOptions {
  /** Wall time = meant time * scale; wall rate = meant rate / scale. */
  scale: number;
  /** The end of link number `link` at the device `node`. */
  end(link: number, node: string): LabEnd;
  /** Service rates are those of this time, meant ns from the start of traffic; default: 0. */
  time?: number;
  /** CPUs for the switch and the NIC worker; -1: any. */
  cpus: { switches: number; nics: number };
  /**
   * Programs live on the hosts, whose kernels share the links with the NICs: packets with unfinished checksums pass, frames to groups
   * go along a tree, and threads sleep while nothing happens. Nothing is sampled.
   */
  inhabited?: boolean;
}

/** Half of the control loop, wall ns, to which naps of the poll loop, 50 to 100 us each, are little. */
const kNapsMatterNot = 1e6;
/** Of a host's programs. */
const kProgramQueuePairs = 1024;
/** Super-frames of a switch's kernels that may be held at a time, 66 KiB each: senders are asked to make none. */
const kSuperFrames = 64;
/** At a switch's port to a host: what some connections of TCP have under way, and as many queue pairs. */
const kSharedSlots = 4096;

/** Addresses of a host's kernel, and of its NIC: one of each IP version, without prefix lengths. */
export const hostAddresses = (index: number): [string, string] => [[...hostIp(index)].join("."), hostIpv6(index)];

/**
 * The namespaces and links that a scenario needs.
 * @param inhabited As in ComposeOptions: interface and NIC of a host have its addresses alike.
 */
export function labNetwork(scenario: Scenario, inhabited = false): { nodes: LabNode[]; links: LabLink[] } {
  const { hosts, switches, links } = scenario;
  const places = new Map(hosts.map(({ name }, i) => [name, i]));
  const macOf = (node: string) => {
    const place = inhabited ? places.get(node) : undefined;
    return place === undefined ? undefined : hostMac(place);
  };
  const stackOf = (index: number) => {
    const [ipv4, ipv6] = hostAddresses(index);
    return { addresses: [`${ipv4}/${kPrefix[4]}`, `${ipv6}/${kPrefix[6]}`] };
  };
  return {
    nodes: [
      ...hosts.map(({ name }, i) => ({ name, role: "host" as const, ...(inhabited && stackOf(i)) })),
      ...switches.map(({ name }) => ({ name, role: "switch" as const })),
    ],
    // Uninhabited, the addresses of the interfaces are the kernel's choice: frames for the soft NIC's are not for the host's own
    // stack, which would look for a route for each.
    links: links.map(({ from, to, mtu }) => ({ from, to, mtu, fromMac: macOf(from), toMac: macOf(to) })),
  };
}

/** One network for all hosts. */
const kPrefix = { 4: 16, 6: 64 };

/** Worker configurations: one for all switches, one for all NICs. */
export function composeLab(scenario: Scenario, options: ComposeOptions): WorkerConfig[] {
  return new LabComposer(scenario, options).workers();
}

class LabComposer {
  private readonly common: NetworkComposer;
  private readonly fabric: Fabric;
  private readonly tree: Fabric["tree"];
  /** Addresses of flows that have their own, by the hosts that send them. */
  private readonly ownMacs: readonly { from: string; to: string; mac: number }[];
  /** Bytes of the longest frame, and of the smallest common one. */
  private readonly longest: number;
  private readonly smallest: number;

  constructor(
    private readonly scenario: Scenario,
    private readonly options: ComposeOptions,
  ) {
    this.fabric = new Fabric(scenario);
    this.tree = this.fabric.tree;
    this.common = new NetworkComposer(scenario, this.fabric, options.scale, scenario.fidelity.lateness);
    this.ownMacs = scenario.flows.flatMap(({ from, to, source_mac }, i) =>
      source_mac === "own" ? [{ from, to, mac: flowMac(i) }] : [],
    );
    this.longest = Math.max(...scenario.links.map((link) => link.mtu)) + 18;
    this.smallest = Math.min(...scenario.hosts.map((host) => host.path_mtu)) + kHeaderBytes;
  }

  workers(): WorkerConfig[] {
    const { scenario, options, smallest } = this;
    const switches = scenario.switches.map((_, i) => this.switchAt(i, options.time ?? 0));
    const nics = scenario.hosts.map((_, i) => this.nic(i));
    const common = {
      seed: scenario.seed,
      packet_bytes: Math.ceil((this.longest + 64) / 64) * 64,
      quantum: kQuantumNs,
      ...(options.inhabited
        ? { polling: "interrupt" as const, prompt: true, sample_interval: 0, reset_after: 0 }
        : {
            polling: this.polling(),
            prompt: false,
            sample_interval: this.common.time(scenario.probes.interval),
            reset_after: this.common.time(scenario.warmup),
          }),
    };
    const packets = switches.reduce((sum, s) => sum + switchDescriptors(s, smallest), 4096);
    const long = options.inhabited ? { super_frames: kSuperFrames } : {};
    return [
      { ...common, ...long, name: "switches", cpu: options.cpus.switches, packets, switches, nics: [] },
      { ...common, name: "nics", cpu: options.cpus.nics, packets: 4096 + 512 * nics.length, switches: [], nics },
    ];
  }

  /** Naps where a few of them are nothing to the control loop; else a CPU for each worker. */
  private polling(): NonNullable<WorkerConfig["polling"]> {
    return halfControlLoop(this.scenario) * this.options.scale >= kNapsMatterNot ? "interrupt" : "spinning";
  }

  private switchAt(index: number, time: number): NativeSwitch {
    const { ports, ...own } = this.common.switchAt(index, time);
    const { pins } = this.fabric.tables[index] as Fabric["tables"][number];
    const shared = (port: number) =>
      this.options.inhabited && { offloads: true, ...(!own.learning && { floods: this.tree[index]?.[port] ?? false }) };
    return {
      ...own,
      name: this.fabric.nameOf(index),
      ports: ports.map((port, i) => ({ ...this.port(index, i), ...port, ...shared(i) })),
      routes: own.learning ? [] : this.scenario.hosts.flatMap((host, i) => this.routesTo(host.name, i, index)),
      pins: pins.flatMap(({ from, to, port }) => {
        const [source, target] = [this.scenario.hosts[from]?.name, this.scenario.hosts[to]?.name];
        const flows = this.ownMacs.filter((flow) => flow.from === source && flow.to === target);
        const sources = [hostMac(from), ...flows.map(({ mac }) => mac)];
        return sources.map((source_mac) => ({ source_mac, destination_mac: hostMac(to), port }));
      }),
    };
  }

  private nic(index: number): NativeNic {
    const name = this.scenario.hosts[index]?.name ?? "";
    const addresses = hostAddresses(index).map((own, i) => ({ version: i === 0 ? 4 : 6, bytes: addressBytes(own) }));
    const { inhabited } = this.options;
    return {
      ...this.common.nic(index),
      ...(inhabited && { verbs_queue_pairs: kProgramQueuePairs, addresses }),
      name,
      port: { ...this.port(this.fabric.device(name), 0), ...(inhabited && { roce_only: true, offloads: true }) },
      first_qpn: kFirstQpn,
      queue_pairs: queuePairsOf(this.scenario, name).map((pair) => this.queuePair(pair)),
    };
  }

  private port(device: number, number: number): NativePort {
    const { link, side, peer } = (this.fabric.ports[device] as FabricPort[])[number] as FabricPort;
    const { impairment, ...meant } = this.scenario.links[link] as Link;
    const [rate, delay] = [this.common.rate(meant.rate), this.common.time(meant.delay)];
    const end = this.options.end(link, this.fabric.nameOf(device));
    return {
      name: this.fabric.nameOf(peer),
      interface: end.interface,
      namespace_fd: end.namespaceFd,
      slot_bytes: this.longest,
      receive_slots: this.slots(
        device,
        peer,
        receiveSlots(rate, this.scenario.fidelity.lateness, { delay, frame: this.smallest }),
      ),
      rate,
      delay,
      ...(impairment && {
        impairment: {
          ...impairment,
          delay: 0,
          jitter: this.common.time(impairment.jitter),
          reorder_delay: this.common.time(impairment.reorder_delay),
          component: 2 * link + side,
        },
      }),
    };
  }

  /** Where a host's kernel and NIC send more than their link carries, it waits in the switch's ring. */
  private slots(device: number, peer: number, usual: number): number {
    const switches = this.scenario.switches.length;
    return this.options.inhabited && device < switches && peer >= switches ? Math.max(usual, kSharedSlots) : usual;
  }

  /** What goes to a flow's own address (CNMs do) takes the way to its host. */
  private routesTo(host: string, number: number, device: number): NativeSwitch["routes"] {
    const ports = [...this.fabric.portsTowards(number, device)];
    if (ports.length === 0) return [];
    const addresses = this.ownMacs.filter(({ from }) => from === host).map(({ mac }) => mac);
    return [hostMac(number), ...addresses].map((destination_mac) => ({ destination_mac, ports }));
  }

  private queuePair({ flow, sends, remoteQpn }: HostQueuePair): NativeQueuePair {
    const [from, to] = [this.fabric.host(flow.from), this.fabric.host(flow.to)];
    const [self, peer] = sends ? [from, to] : [to, from];
    const order = this.scenario.flows.indexOf(flow);
    return {
      ...this.common.flow(order),
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
      first_psn: 0,
      ...(sends && {
        start: this.common.time(flow.start),
        stop: this.common.time(Math.min(flow.stop, this.scenario.duration)),
      }),
      remote_address: 0,
      remote_key: 0,
      ...(sends && flow.source_mac === "own" && { source_mac: flowMac(order) }),
    };
  }
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
