/** Makes native workers of a scenario's network: each device has ports, and what goes by numbers goes by addresses. */

import { kQuantumNs, receiveSlots, switchDescriptors } from "../../device/behaviour.js";
import { nativeNeighbours } from "../../device/compose.js";
import { gatewayOf } from "../../device/fabric_router.js";
import { onWire } from "../../device/message_graphs.js";
import { composeNetwork, type Network } from "../../device/network.js";
import type { LabEnd, LabLink, LabNetwork, LabNode } from "../../host/veth.js";
import { nativeAddress } from "../../native/ip_address.js";
import type { NativeNic, NativePort, NativeSwitch, WorkerConfig } from "../../native/types.js";
import { toWall, wallRate, wallTime } from "../../native/wall.js";
import { hostIp, hostIpv6, hostMac, kMacPrefix, routerIp, routerIpv6 } from "../../scenario/addresses.js";
import { sendsCnTags } from "../../scenario/cn_domain.js";
import { Fabric, type FabricPort } from "../../scenario/fabric.js";
import { linksAvoided } from "../../scenario/failures.js";
import { Share } from "../../scenario/parts.js";
import type { Link, Scenario } from "../../scenario/types.js";
import { kHeaderBytes } from "../../wire/frame_size.js";
import { kPriorities } from "../../wire/priority.js";
import { halfControlLoop, kShortestLoop } from "./control_loop.js";

export interface ComposeOptions {
  /** Wall time = meant time * scale; wall rate = meant rate / scale. */
  scale: number;
  /** The end of link number `link` at the device `node`. */
  end(link: number, node: string): LabEnd;
  /** Time whose service rates are taken, meant ns from the start of traffic; default: 0. */
  time?: number;
  /** CPUs for the switch and the NIC worker; -1: any. */
  cpus: { switches: number; nics: number };
  /**
   * Programs live on the hosts, whose kernels send and receive through the NICs: packets with unfinished checksums pass, frames to
   * groups go along a tree, and threads sleep while nothing happens.
   */
  inhabited?: boolean;
  /**
   * Where little comes, frames wake the workers at once, so that short messages of programs do not wait for a nap to end. TCP
   * connections of a run lose little by naps, and a worker that has a turn for each of their frames needs a CPU of its own.
   */
  prompt?: boolean;
  /** No samples are taken. */
  unsampled?: boolean;
}

/** From this half of the control loop on, wall ns, naps of the poll loop, 50 to 100 us each, matter little. */
const kNapsMatterNot = 1e6;
/** Places for queue pairs of a host's programs: one program may have the 1,024 that it is promised, and some are kept for others. */
export const kProgramQueuePairs = 1280;
/** Super-frames of kernels that a worker may hold at a time, 66 KiB each: senders are asked to make none. */
const kSuperFrames = 64;
/** Bytes of its NIC's memory that frames of a host's kernel may take per priority: some 650 frames of 1,500 bytes. */
const kStackQueue = 1 << 20;
const kCnTagBytes = 4;

/** Addresses of a host's kernel, and of its NIC: one of each IP version, without prefix lengths. */
export const hostAddresses = (index: number): [string, string] => [[...hostIp(index)].join("."), hostIpv6(index)];

/** Addresses of a host's router, as in `hostAddresses`; empty where switches do not route. */
export function gatewayAddresses(fabric: Fabric, host: number): string[] {
  const gateway = gatewayOf(fabric, host);
  return gateway === undefined ? [] : [[...routerIp(gateway)].join("."), routerIpv6(gateway)];
}

/** The node of a lab's network where a host's kernel and its programs live; that of the host's own name has its NIC. */
export const stackNode = (host: string) => `${host} (stack)`;

/** MTU of the interface of a host's kernel: its NIC may put a CN-TAG into each frame. */
export function stackMtu(scenario: Scenario, index: number): number {
  const { congestion, hosts } = scenario;
  const host = hosts[index] as Scenario["hosts"][number];
  const tags = host.qcn.priorities.some((priority) => sendsCnTags(congestion, host, priority));
  return new Fabric(scenario).attachment(index).link.mtu - (tags ? kCnTagBytes : 0);
}

/**
 * The namespaces and links that a scenario needs, or the part of it that runs here.
 * @param inhabited See ComposeOptions: each host has a node more, for its kernel, and a link from its NIC to there, behind all
 *   others.
 */
export function labNetwork(scenario: Scenario, inhabited = false): { nodes: LabNode[]; links: LabLink[] } {
  const share = new Share(scenario);
  const own = <T>(all: readonly T[], places: readonly number[]) => places.map((i) => all[i] as T);
  const [hosts, switches] = [own(scenario.hosts, share.hosts), own(scenario.switches, share.switches)];
  const links = own(scenario.links, share.links);
  const stacks = inhabited ? share.hosts.map((index, i) => ({ name: hosts[i]?.name as string, index })) : [];
  const fabric = new Fabric(scenario);
  const stack = (index: number) => {
    const [ipv4, ipv6] = hostAddresses(index);
    const gateways = gatewayAddresses(fabric, index);
    const prefix = gateways.length === 0 ? kPrefix : kHostBits;
    return { addresses: [`${ipv4}/${prefix[4]}`, `${ipv6}/${prefix[6]}`], ...(gateways.length > 0 && { gateways }) };
  };
  return {
    nodes: [
      ...hosts.map(({ name }) => ({ name, role: "host" as const })),
      ...switches.map(({ name }) => ({ name, role: "switch" as const })),
      ...stacks.map(({ name, index }) => ({
        name: stackNode(name),
        role: "host" as const,
        ...stack(index),
      })),
    ],
    // The addresses of a NIC's interfaces are the kernel's choice: frames for the soft NIC's are not for the kernel there, which
    // would look for a route for each.
    links: [
      ...links.map(({ from, to, mtu }) => ({ from, to, mtu })),
      ...stacks.map(({ name, index }) => ({
        from: name,
        to: stackNode(name),
        mtu: stackMtu(scenario, index),
        toMac: hostMac(index),
      })),
    ],
  };
}

/**
 * Finds the ends of links here: number `link` of the scenario at the device `node`, and behind all of them those of hosts' kernels. A link
 * to another part ends at an interface of this process's own network namespace.
 */
export function labEnds(scenario: Scenario, network: LabNetwork): (link: number, node: string) => LabEnd {
  const share = new Share(scenario);
  const count = scenario.links.length;
  const stacks = share.hosts.map((host) => count + host);
  const places = new Map([...share.links, ...stacks].map((link, i) => [link, i]));
  const crossings = new Map(share.crossings.map((crossing) => [crossing.link, crossing]));
  return (link, node) => {
    const crossing = crossings.get(link);
    if (crossing !== undefined) return { interface: crossing.interface, namespaceFd: -1, shared: true };
    return network.end(places.get(link) ?? -1, node);
  };
}

/** Prefix lengths: one network for all hosts, or a link for each. */
const kPrefix = { 4: 16, 6: 64 };
const kHostBits = { 4: 32, 6: 128 };

/** Worker configurations: one for all switches, one for all NICs. */
export function composeLab(scenario: Scenario, options: ComposeOptions): WorkerConfig[] {
  return new LabComposer(scenario, options).workers().map((worker) => toWall(worker, options.scale));
}

class LabComposer {
  private readonly network: Network;
  private readonly fabric: Fabric;
  private readonly tree: Fabric["tree"];
  private readonly share: Share;
  /** Addresses of flows that have their own, by the numbers of hosts. */
  private readonly ownMacs: readonly { from: number; to: number; mac: number }[];
  /** Bytes of the longest frame, and of the smallest common one. */
  private readonly longest: number;
  private readonly smallest: number;

  constructor(
    private readonly scenario: Scenario,
    private readonly options: ComposeOptions,
  ) {
    this.fabric = new Fabric(scenario);
    this.tree = this.fabric.tree;
    this.share = new Share(scenario);
    const { time = 0 } = options;
    const avoided = linksAvoided(scenario, time);
    this.network = composeNetwork(scenario, this.fabric, {
      time,
      ...(avoided.size > 0 && { tables: this.fabric.tablesWithout(avoided) }),
      lateness: scenario.fidelity.lateness / options.scale,
      versions: options.inhabited ? [4, 6] : [4],
    });
    const { from, to, source_mac } = this.network.flows;
    this.ownMacs = [...source_mac].flatMap((mac, i) =>
      mac === 0 ? [] : [{ from: from[i] as number, to: to[i] as number, mac }],
    );
    this.longest = Math.max(...scenario.links.map((link) => link.mtu)) + 18;
    this.smallest = Math.min(...scenario.hosts.map((host) => host.path_mtu)) + kHeaderBytes;
  }

  workers(): WorkerConfig[] {
    const { scenario, options, smallest } = this;
    const switches = this.share.switches.map((i) => this.switchAt(i));
    const nics = this.share.hosts.map((i) => this.nic(i));
    const common = {
      seed: scenario.seed,
      packet_bytes: Math.ceil((this.longest + 64) / 64) * 64,
      quantum: kQuantumNs,
      polling: options.inhabited ? ("interrupt" as const) : this.polling(),
      prompt: options.prompt ?? false,
      real_time: options.cpus.nics >= 0,
      ...(options.unsampled
        ? { sample_interval: 0, reset_after: 0 }
        : {
            sample_interval: scenario.probes.interval,
            reset_after: scenario.warmup,
          }),
    };
    const packets = switches.reduce((sum, s) => sum + switchDescriptors(s, smallest), 4096);
    const long = options.inhabited ? { super_frames: kSuperFrames } : {};
    const ofStack = options.inhabited ? kPriorities.length * Math.ceil(kStackQueue / common.packet_bytes) : 0;
    const ofNics = 4096 + (512 + ofStack) * nics.length;
    return [
      { ...common, ...long, name: "switches", cpu: options.cpus.switches, packets, switches, nics: [] },
      {
        ...common,
        ...long,
        name: "nics",
        cpu: options.cpus.nics,
        packets: ofNics,
        switches: [],
        nics,
        ...this.traffic(),
      },
    ];
  }

  /** The whole network's traffic: the worker makes the queue pairs of its own NICs. */
  private traffic(): Pick<WorkerConfig, "network" | "graph"> {
    const { flows, sizes, transport, nics, graph } = this.network;
    const network = {
      flows,
      sizes,
      // Codes of times are those of the standard: a time scale stretches what they stand for.
      transport: { ...transport, time_scale: 1 },
      nics: nics.map(({ ip, gateway_mac = 0 }) => ({ ip, gateway_mac })),
      first_mac: hostMac(0),
      names: this.scenario.flows.map(({ id }) => id),
    };
    return { network, ...(graph && { graph: onWire(graph, this.options.scale) }) };
  }

  /** Workers nap where a few naps are nothing to the control loop; else each has a CPU. */
  private polling(): NonNullable<WorkerConfig["polling"]> {
    // A message waits for its acknowledgement, whatever congestion control hears by.
    const reliable = this.scenario.transport.type === "rc" ? kShortestLoop / 2 : Number.POSITIVE_INFINITY;
    const loop = Math.min(halfControlLoop(this.scenario), reliable);
    return loop * this.options.scale >= kNapsMatterNot ? "interrupt" : "spinning";
  }

  private switchAt(index: number): NativeSwitch {
    const { ports, groups, group_of_host, pins, ...own } = this.network.switches[index] as Network["switches"][number];
    const shared = (port: number) =>
      this.options.inhabited && { offloads: true, ...(!own.learning && { floods: this.tree[index]?.[port] ?? false }) };
    return {
      ...own,
      name: this.fabric.nameOf(index),
      ports: ports.map((port, i) => ({ ...this.port(index, i), ...port, ...shared(i) })),
      routes: [...group_of_host].flatMap((group, host) => this.routesTo(host, groups[group] ?? [])),
      pins: pins.flatMap(({ from, to, port }) => {
        const flows = this.ownMacs.filter((flow) => flow.from === from && flow.to === to);
        const sources = [hostMac(from), ...flows.map(({ mac }) => mac)];
        return sources.map((source_mac) => ({ source_mac, destination_mac: hostMac(to), port }));
      }),
    };
  }

  private nic(index: number): NativeNic {
    const name = this.scenario.hosts[index]?.name ?? "";
    const { ip: _, gateway_mac: __, ...own } = this.network.nics[index] as Network["nics"][number];
    const addresses = hostAddresses(index);
    const { inhabited } = this.options;
    return {
      ...own,
      ...(inhabited
        ? {
            verbs_queue_pairs: kProgramQueuePairs,
            addresses: addresses.map(nativeAddress),
            // Hosts' kernels answer those that ask.
            neighbours: nativeNeighbours({ addresses, vlan: undefined }, []),
            stack_queue: kStackQueue,
            stack_port: this.stackPort(index),
          }
        : { lab: true }),
      name,
      port: { ...this.port(this.fabric.device(name), 0), ...(inhabited && { offloads: true }) },
      queue_pairs: [],
    };
  }

  private port(device: number, number: number): NativePort {
    const { link, side, peer } = (this.fabric.ports[device] as FabricPort[])[number] as FabricPort;
    const { rate } = this.scenario.links[link] as Link;
    const { impairment, delay } = this.network.links[link] as Network["links"][number];
    const end = this.options.end(link, this.fabric.nameOf(device));
    return {
      name: this.fabric.nameOf(peer),
      interface: end.interface,
      namespace_fd: end.namespaceFd,
      ...(end.shared && { source_prefix: kMacPrefix }),
      slot_bytes: this.longest,
      receive_slots: this.slots(rate, delay),
      rate,
      delay,
      ...(impairment && {
        impairment: { ...impairment, delay: 0, component: 2 * link + side },
      }),
    };
  }

  /** Slots for what a link brings: they are of this host, whose lateness is of the wall. */
  private slots(rate: number, delay: number): number {
    const { scale } = this.options;
    const options = { delay: wallTime(delay, scale), frame: this.smallest };
    return receiveSlots(wallRate(rate, scale), this.scenario.fidelity.lateness, options);
  }

  /** Port towards the host's kernel, which is asked to send no faster than the link. */
  private stackPort(index: number): NativePort {
    const { scenario, options } = this;
    const { name } = scenario.hosts[index] as Scenario["hosts"][number];
    const { link } = this.fabric.attachment(index);
    const end = options.end(scenario.links.length + index, name);
    return {
      name: "stack",
      interface: end.interface,
      namespace_fd: end.namespaceFd,
      slot_bytes: this.longest,
      receive_slots: this.slots(link.rate, 0),
      rate: 0,
      delay: 0,
      offloads: true,
    };
  }

  /** Frames to a flow's own address (CNMs have it) take the way to its host. */
  private routesTo(host: number, ports: readonly number[]): NativeSwitch["routes"] {
    if (ports.length === 0) return [];
    const addresses = this.ownMacs.filter(({ from }) => from === host).map(({ mac }) => mac);
    return [hostMac(host), ...addresses].map((destination_mac) => ({ destination_mac, ports: [...ports] }));
  }
}
