/** Makes the native worker of a device of its own from its configuration: one switch or one NIC, whose times are the wall's. */

import { isIPv4, isIPv6 } from "node:net";
import { hearsCnms } from "../congestion/flow_state.js";
import type { CnDefence } from "../congestion/qcn_points.js";
import {
  kFirstQpn,
  kQuantumNs,
  nicBehaviour,
  portBehaviour,
  receiveSlots,
  switchBehaviour,
  switchDescriptors,
} from "../device/behaviour.js";
import { type BackendChoice, kSuperFrameRate } from "../host/backend.js";
import { nativeAddress } from "../native/ip_address.js";
import type { NativeNeighbours, NativePort, NativeQueuePair, WorkerConfig } from "../native/types.js";
import { toWall } from "../native/wall.js";
import { portDefence } from "../scenario/cn_domain.js";
import { addressBytes } from "../wire/address.js";
import type {
  DaemonPort,
  DeviceConfig,
  NicDaemonConfig,
  QueuePairConfig,
  SwitchDaemonConfig,
  WorkerPlace,
} from "./file/load.js";
import { kStormKinds, type SwitchDaemonPort } from "./file/types.js";
import { pathTo, routeFrom, type Sender } from "./path.js";
import { nativeRouter } from "./router.js";

/** Times of daemons are those of the wall. */
const kScale = 1;
/** Lateness of a worker from which on a lossless class could lose: it makes extra headroom at shaped ports, and receive slots. */
const kLatenessNs = 20e6;
/** Super-frames of the kernel that may be held at a time, 66 KiB each. */
const kSuperFrames = 1024;
const kSwitchSlots = 2048;
/** Frames of the kernel read from a twin at a time. */
const kTwinSlots = 64;
/** Bytes of a frame of path MTU 1024, by which descriptors are counted. */
const kCommonFrameBytes = 1082;
const kNicDescriptors = 4608;
/** Most RoCEv2 packets in a super-frame: 64 KiB of those with 1,024 bytes. */
const kJoined = 64;
/** Places for queue pairs of programs. */
export const kProgramQueuePairs = 4096;

/** Ways in which frames pass between an interface and the worker. */
type Backends = Pick<BackendChoice, "receive" | "transmit" | "xdp_mode" | "ring"> &
  Partial<Pick<BackendChoice, "live_for_xdp">>;

/** Returns the defence that `auto` means at a port for a CNPV. */
export type AutomaticDefence = (port: string, cnpv: number) => CnDefence;

/**
 * @param backends Backends of each port; a port without any uses af_packet both ways.
 * @param since Time since the start, ns: it decides which of the changes of rates hold.
 */
export function composeSwitchWorker(
  config: SwitchDaemonConfig,
  backends: readonly Backends[] = [],
  automatic: AutomaticDefence = () => "interior-ready",
  since = 0,
): WorkerConfig {
  const s = config.switch;
  const ports = config.ports.map((port, component) => ({
    ...nativePort(port, backends[component]),
    ...(port.impairment && { impairment: { ...port.impairment, delay: 0, component } }),
    // Super-frames do not go through the ring: the kernel queues them on the socket.
    slot_bytes: port.mtu + 18,
    delay: port.delay,
    receive_slots: port.delay === 0 ? kSwitchSlots : receiveSlots(port.rate, kLatenessNs, { delay: port.delay }),
    offloads: true,
    // Frames of a port with a rate leave one by one.
    ...(port.rate === 0 && !port.impairment && { join: kJoined }),
    mtu: port.mtu,
    mac: port.mac,
    priority_rates: ratesAt(config, port, since),
    queue_limits: port.queue_limits,
    max_learned_addresses: port.max_learned_addresses,
    storm_rates: kStormKinds.map((kind) => port.storm_control[kind]),
    ...(port.vlans && { vlans: port.vlans }),
    ...portBehaviour(
      s,
      port.name,
      portDefence(s.qcn, port.name, (cnpv) => automatic(port.name, cnpv)),
    ),
  }));
  const fastest = Math.max(...config.ports.map((port) => port.rate));
  const behaviour = switchBehaviour(s, Math.ceil((fastest / 8) * (kLatenessNs / 1e9)));
  const names = config.ports.map((port) => port.name);
  const worker: WorkerConfig = {
    ...common(config.name, config.workers[0]),
    packets: 4096 + switchDescriptors({ ...behaviour, ports }, kCommonFrameBytes),
    packet_bytes: Math.max(...config.ports.map((port) => port.mtu)) + 18,
    super_frames: kSuperFrames,
    switches: [
      {
        name: config.name,
        ports,
        ...behaviour,
        ...(config.telemetry && { telemetry: true }),
        learning: s.forwarding === "learning",
        ageing: s.ageing,
        seed: 1,
        hash_seed: 1,
        component: 0,
        routes: config.static_fdb.map(({ mac, port }) => ({ destination_mac: mac, ports: [names.indexOf(port)] })),
        pins: [],
        ...(config.lldp && { lldp: true }),
        ...(config.router && { router: nativeRouter(config.router, names), twins: twinsOf(config) }),
      },
    ],
    nics: [],
  };
  return toWall(worker, kScale);
}

function ratesAt({ changes }: SwitchDaemonConfig, { name, priority_rates }: SwitchDaemonPort, since: number): number[] {
  const rates = [...priority_rates];
  for (const { at, port, priority, rate } of changes) if (port === name && at <= since) rates[priority] = rate;
  return rates;
}

/** Twins of the router's interfaces in the kernel. */
function twinsOf({ router, ports }: SwitchDaemonConfig): NativePort[] {
  const { kernel } = router ?? {};
  if (router === undefined || kernel === undefined) return [];
  return router.interfaces.map(({ name, port }) => ({
    name,
    interface: name,
    namespace_fd: -1,
    namespace_path: kernel.namespace,
    receive: "tap",
    transmit: "tap",
    slot_bytes: (ports.find((other) => other.name === port)?.mtu ?? 0) + 18,
    receive_slots: kTwinSlots,
    rate: 0,
    delay: 0,
  }));
}

/** Configurations of all workers of the switch: each has all ports, and packets for frames that may come in by its own. */
export function composeSwitchWorkers(
  config: SwitchDaemonConfig,
  backends: readonly Backends[],
  automatic?: AutomaticDefence,
  since?: number,
): WorkerConfig[] {
  const whole = composeSwitchWorker(config, backends, automatic, since);
  if (config.workers.length === 1) return [whole];
  return config.workers.map((place, i) => ({ ...whole, ...common(`${config.name}-${i}`, place) }));
}

/** MAC addresses, by IP address, of peers whose file gives none. */
export type PeerMacs = ReadonlyMap<string, number>;

/** @param answered Addresses that only the NIC has: it answers ARP and pings for them itself. */
export function composeNicWorker(
  config: NicDaemonConfig,
  backends?: Backends,
  answered: readonly string[] = [],
  macs: PeerMacs = new Map(),
): WorkerConfig {
  const frameBytes = config.port.mtu + 18;
  const { rate, mac } = config.port;
  const arp = answered.find(isIPv4);
  const worker: WorkerConfig = {
    ...common(config.name, config.worker),
    packets: kNicDescriptors,
    packet_bytes: Math.ceil((frameBytes + 64) / 64) * 64,
    switches: [],
    nics: [
      {
        name: config.name,
        port: {
          ...nativePort(config.port, backends),
          slot_bytes: frameBytes,
          receive_slots: receiveSlots(rate, kLatenessNs),
          roce_only: true,
          ...(config.lldp && { lldp: true }),
          ...(hearsCnmDatagrams(config) && { cnm_datagrams: true }),
          offloads: true,
          ...(rate >= kSuperFrameRate && { join: kJoined }),
          ...(arp !== undefined && { arp_address: addressBytes(arp).readUInt32BE() }),
          ...(answered.some(isIPv6) && { echo_ipv6: true }),
        },
        mac,
        neighbours: {
          ...nativeNeighbours(config, answered),
          followed: wantedPeers(config).map(({ hop, own }) => ({ address: nativeAddress(hop), own })),
        },
        first_qpn: config.queue_pairs[0]?.qpn ?? kFirstQpn,
        ...nicBehaviour(config.host, config.classes, config.congestion, { rate, seed: 1, component: 0 }),
        queue_pairs: config.queue_pairs.map((pair, i) => queuePair(config, pair, i, macs)),
        ...(config.programs && {
          verbs_queue_pairs: kProgramQueuePairs,
          addresses: config.addresses.map(nativeAddress),
        }),
        ...(config.vlan !== undefined && { vlan: config.vlan }),
        ...(config.lldp && { lldp: true }),
      },
    ],
  };
  return toWall(worker, kScale);
}

/** @param answered Those of its addresses that the kernel does not have. */
export const nativeNeighbours = (
  { addresses, vlan }: Pick<NicDaemonConfig, "addresses" | "vlan">,
  answered: readonly string[],
): NativeNeighbours => ({
  addresses: addresses.map((own) => ({ address: nativeAddress(own), answers: answered.includes(own) })),
  ...(vlan !== undefined && { vlan }),
});

export interface WantedPeer {
  name: string;
  address: string;
  /** The next hop to it. */
  hop: string;
  /** Place of the NIC's address from which it is looked for. */
  own: number;
}

/** Peers of queue pairs whose MAC address is not in the file, each once: the core looks for them. */
export function wantedPeers({ queue_pairs, addresses, gateways }: NicDaemonConfig): WantedPeer[] {
  const peers = queue_pairs.flatMap(({ peer: { name, address, mac } }) => {
    const own = addresses.findIndex((each) => isIPv6(each) === isIPv6(address));
    if (mac !== undefined || own < 0) return [];
    return [{ name, address, hop: routeFrom(gateways, addresses[own] as string)(address), own }];
  });
  return [...new Map(peers.map((peer) => [peer.address, peer])).values()];
}

/** Whether CNMs come in UDP. */
export const hearsCnmDatagrams = ({ congestion, host }: Pick<NicDaemonConfig, "congestion" | "host">): boolean =>
  hearsCnms(congestion.algorithm) && host.qcn.notification === "ip";

function common(name: string, { cpu, polling }: WorkerPlace = { cpu: -1, polling: "interrupt" }) {
  return { name, cpu, polling, seed: 1, quantum: kQuantumNs, prompt: true, sample_interval: 0, reset_after: 0 };
}

function nativePort(
  port: DaemonPort,
  backends: Backends | undefined,
): Pick<NativePort, "name" | "interface" | "namespace_fd" | "namespace_path" | "rate" | "delay" | keyof Backends> {
  return {
    name: port.name,
    interface: port.interface,
    namespace_fd: -1,
    ...(port.namespace !== undefined && { namespace_path: port.namespace }),
    rate: port.rate,
    delay: 0,
    ...(backends && {
      receive: backends.receive,
      transmit: backends.transmit,
      xdp_mode: backends.xdp_mode,
      ring: backends.ring,
      ...(backends.live_for_xdp && { live_for_xdp: true }),
    }),
  };
}

function queuePair(config: NicDaemonConfig, pair: QueuePairConfig, order: number, macs: PeerMacs): NativeQueuePair {
  const { send } = pair;
  const { type, ...transport } = config.transport;
  return {
    name: pair.name,
    remote_qpn: pair.remote_qpn,
    path: pathTo(
      senderOf(config),
      // With 0 nothing is sent until the address is known.
      { address: pair.peer.address, mac: pair.peer.mac ?? macs.get(pair.peer.address) ?? 0 },
      pair.dscp,
      pair.priority,
      order,
    ),
    priority: pair.priority,
    operation: send?.operation ?? "write",
    path_mtu: config.host.path_mtu,
    message_bytes: send?.message ?? 1,
    total_bytes: send?.bytes ?? 0,
    first_psn: 0,
    ...(send && { start: send.start }),
    rate_cap: send?.rate ?? 0,
    remote_address: 0,
    remote_key: 0,
    application: order,
    reliable: type === "rc",
    ...(send && { outstanding: send.outstanding }),
    transport,
  };
}

/** The sender of a NIC, for the paths of its queue pairs. */
export function senderOf({
  port,
  vlan,
  addresses,
  address,
}: Pick<NicDaemonConfig, "vlan" | "addresses" | "address"> & { port: Pick<DaemonPort, "mac"> }): Sender {
  const sourceFor = (peer: string) => addresses.find((own) => isIPv6(own) === isIPv6(peer)) ?? address;
  return { mac: port.mac, vlan, sourceFor };
}

/**
 * @param backends Backends of each port, in the order of portsOf().
 * @param answered Addresses of a NIC that the kernel does not have.
 * @param macs MAC addresses of peers that have been found.
 * @param automatic Defence by the words of a switch's neighbours; by default they are in its congestion notification domain.
 * @param since Time since the start, ns: it decides which of the changes of rates hold.
 */
export function composeWorkers(
  config: DeviceConfig,
  backends: readonly BackendChoice[],
  answered: readonly string[],
  macs: PeerMacs,
  automatic?: AutomaticDefence,
  since?: number,
): WorkerConfig[] {
  return config.kind === "switch"
    ? composeSwitchWorkers(config, backends, automatic, since)
    : [composeNicWorker(config, backends[0], answered, macs)];
}

/** The worker of each port, by its position. */
export function ownersOf(config: DeviceConfig): number[] {
  return config.kind === "switch" ? config.ports.map(({ worker }) => worker) : [0];
}

export function portsOf(config: DeviceConfig): DaemonPort[] {
  return config.kind === "switch" ? config.ports : [config.port];
}
