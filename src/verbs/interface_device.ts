/** A soft NIC of this process: a packet socket on an interface, and a poll thread. */
import { isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../base/error.js";
import { hearsTelemetry } from "../congestion/flow_state.js";
import { composeNicWorker, nativeNeighbours } from "../device/compose.js";
import { nicFromData } from "../device/file/load.js";
import { neighboursOf } from "../device/neighbours.js";
import { pathTo } from "../device/path.js";
import { inspectInterface, kernelAddresses } from "../host/interface.js";
import { loadAddon } from "../native/addon.js";
import { CounterTable } from "../native/counters.js";
import { nativeAddress } from "../native/ip_address.js";
import { KernelPort } from "../native/kernel_port.js";
import { kRecordWords, type NativeAddon, type NativeWorker, type QueuePairState, RecordKind } from "../native/types.js";
import { dscpOf } from "../scenario/resolve_device.js";
import type { Impairment } from "../scenario/types.js";
import { addressBytes } from "../wire/address.js";
import { ConnectionManager } from "../wire/cm/connection_manager.js";
import type { FrameLink, Resolver } from "../wire/cm/link.js";
import { taggedFrame } from "../wire/ethernet.js";
import { kRoceOverhead, kTelemetryBytes, largestPathMtu } from "../wire/frame_size.js";
import { inPrefix, type Prefix, parsePrefix } from "../wire/prefix.js";
import { kRdmaPriority } from "../wire/priority.js";
import { AddressHandle } from "./address_handle.js";
import { Device } from "./device.js";
import type { QueuePairAttributes } from "./types.js";

export interface InterfaceOptions {
  /** Network interface to use; needs CAP_NET_RAW. */
  interface: string;
  /** Path of the network namespace that the interface is in. Default: the process's own. */
  namespace?: string;
  /**
   * Own addresses with prefix lengths, such as "10.0.0.5/24": one IPv4, one IPv6, or both. Each is either the device's own (which
   * then answers ARP and neighbour discovery), or one that the kernel has on this interface too.
   */
  address: string | readonly string[];
  /** Next hop to addresses outside of the prefixes; one for each IP version. */
  gateway?: string | readonly string[];
  /** MAC address. Default: the interface's. */
  mac?: string;
  /** 802.1Q VLAN of all frames that are sent, 1 to 4094. Default: untagged. */
  vlan?: number;
  /** Line rate, such as "25Gbps". Default 100Gbps: as much as the host manages. */
  rate?: string | number;
  /** Congestion control, as in nic.yaml: { algorithm, profile, parameters }. Default: DCQCN, the paper's parameters. */
  congestion?: object;
  /** Default priority (traffic class) of packets of queue pairs. Default 3, the one that PFC protects. */
  priority?: number;
  /** Faults on purpose in packets that arrive, for tests of applications: probabilities 0..1, times in ns. */
  impairment?: Partial<Impairment>;
}

/** Room for queue pairs and memory regions of one device. */
const kQueuePairs = 4096;
const kRegions = 65_536;
const kStartMs = 2000;
const kStepMs = 2;

/** Most bytes that a late poll thread makes up for at once. */
const kBurst = "512KB";
/** Default rate: a slower interface takes no more than it can. */
const kRate = "100Gbps";

interface Local {
  prefix: Prefix;
  neighbours: Resolver;
  manager: ConnectionManager;
}

export class InterfaceDevice extends Device {
  readonly interface: string;
  /** 48-bit number. */
  readonly mac: number;
  readonly vlan: number | undefined;
  /** Largest path MTU, bytes: the part of the interface's MTU that is left for a RoCEv2 payload, a power of two. */
  readonly largestPathMtu: number;
  /** bit/s */
  readonly rate: number;
  /** Attributes that queue pairs use unless told otherwise. */
  readonly defaults: Pick<QueuePairAttributes, "pathMtu" | "priority" | "dscp">;
  /** The native core, for the other parts of this module. */
  readonly native: { addon: NativeAddon; worker: NativeWorker };
  readonly #records = new Float64Array(kRecordWords * 64);
  readonly #listeners = new Set<(frame: Buffer) => void>();
  readonly #held: KernelPort[] = [];
  readonly #locals: Local[] = [];
  readonly #gateways: readonly string[];
  readonly #namespace: string | undefined;
  readonly #prefixes: Prefix[];
  /** Says of each prefix whether the kernel has the address too. */
  readonly #shared: boolean[];
  readonly #table: CounterTable;
  readonly #link: FrameLink;

  /** Use openDevice(). */
  constructor(options: InterfaceOptions) {
    super();
    this.#prefixes = [options.address].flat().map(parsePrefix);
    const versions = this.#prefixes.map(({ address }) => isIPv6(address));
    if (versions.length === 0 || new Set(versions).size < versions.length) {
      throw new WeirError("address: a device has one IPv4 address, one IPv6 address, or both", { field: "address" });
    }
    const own = this.#prefixes.find(({ address }) => !isIPv6(address))?.address;
    const { mtu } = inspectInterface(options.interface, options.namespace);
    const addresses = this.#prefixes.map(({ address }) => address);
    const shared = kernelAddresses(addresses, options.interface, options.namespace);
    this.#shared = addresses.map((address) => shared.includes(address));
    const pathMtuWith = (more: number) => {
      const largest = largestPathMtu(mtu, more);
      if (largest !== undefined) return largest;
      throw new WeirError(`${options.interface} has an MTU of ${mtu} bytes`, {
        field: "interface",
        hint: `RoCEv2 needs at least ${256 + kRoceOverhead + more}: ip link set ${options.interface} mtu 1500`,
      });
    };
    pathMtuWith(0);
    const { config } = nicFromData(
      {
        name: "verbs",
        interface: options.interface,
        ...(options.namespace !== undefined && { namespace: options.namespace }),
        // Path MTU of no queue pair: each has its own.
        path_mtu: 256,
        // An application wants its bytes across more than even spacing after a hiccup of the host.
        burst: kBurst,
        // The core takes addresses from each queue pair's path; a device with IPv6 alone has none of this kind.
        address: own ?? "0.0.0.0",
        ...(options.mac !== undefined && { mac: options.mac }),
        rate: options.rate ?? kRate,
        ...(options.congestion !== undefined && { congestion: options.congestion }),
      },
      "device options",
      { inspect: inspectInterface },
    );
    if (options.vlan !== undefined && !(Number.isInteger(options.vlan) && options.vlan >= 1 && options.vlan <= 4094)) {
      throw new WeirError(`vlan: ${options.vlan} is not between 1 and 4094`, { field: "vlan" });
    }
    const { port, classes } = config;
    const pathMtu = pathMtuWith(hearsTelemetry(config.congestion.algorithm) ? kTelemetryBytes : 0);
    this.interface = port.interface;
    this.mac = port.mac;
    this.vlan = options.vlan;
    this.rate = port.rate;
    this.largestPathMtu = pathMtu;
    const priority = options.priority ?? kRdmaPriority;
    this.defaults = { pathMtu, priority, dscp: dscpOf(classes.dscp_map, priority) };
    this.#gateways = options.gateway === undefined ? [] : [options.gateway].flat();
    this.#namespace = options.namespace;
    this.#link = {
      mac: port.mac,
      send: (frame) =>
        this.works && this.native.worker.inject(0, 0, this.vlan === undefined ? frame : taggedFrame(frame, this.vlan)),
      onFrame: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
    };
    const native = composeNicWorker(config);
    for (const nic of native.nics) {
      nic.verbs_queue_pairs = kQueuePairs;
      nic.memory_regions = kRegions;
      nic.addresses = this.addresses.map(nativeAddress);
      const answered = this.addresses.filter((_, i) => !this.#shared[i]);
      nic.neighbours = nativeNeighbours({ addresses: this.addresses, vlan: this.vlan }, answered);
      // The NIC answers for the device's own addresses alone: the kernel does for those that it has.
      this.#prefixes.forEach(({ address }, i) => {
        if (this.#shared[i]) return;
        if (isIPv6(address)) nic.port.echo_ipv6 = true;
        else nic.port.arp_address = addressBytes(address).readUInt32BE();
      });
      if (options.impairment !== undefined) nic.port.impairment = { ...kNoImpairment, ...options.impairment };
    }
    const addon = loadAddon<NativeAddon>();
    this.native = { addon, worker: new addon.Worker(native, () => this.#onDoorbell()) };
    this.#table = new CounterTable(this.native.worker);
  }

  /** Starts the device; openDevice() calls this. */
  async start(): Promise<void> {
    const { addon, worker } = this.native;
    asWeirError(() => {
      this.#prefixes.forEach(({ address }, i) => {
        if (this.#shared[i]) this.#held.push(new KernelPort(addon, address, this.#namespace));
      });
      worker.open();
    });
    worker.begin(addon.monotonicNow());
    for (let waited = 0; worker.manifest() === undefined; waited += kStepMs) {
      if (this.failure !== undefined || waited >= kStartMs)
        throw new WeirError(this.failure ?? "the worker did not start");
      await sleep(kStepMs);
    }
    for (const prefix of this.#prefixes) {
      const { address } = prefix;
      const route = (destination: string) => this.#nextHop(prefix, destination);
      const neighbours = neighboursOf({ worker, mac: this.mac, addresses: () => this.addresses, from: address, route });
      const manager = new ConnectionManager({ link: this.#link, neighbours, address });
      this.#locals.push({ prefix, neighbours, manager });
    }
  }

  /** Own addresses, without prefix lengths. */
  get addresses(): string[] {
    return this.#prefixes.map(({ address }) => address);
  }

  /** Finds the MAC address of the next hop to an IP address. @throws WeirError when nobody answers. */
  async resolve(address: string): Promise<number> {
    this.requireOpen();
    return this.#localFor(address).neighbours.resolve(address);
  }

  /**
   * The way to a receiver of datagrams. @throws WeirError when its address is not resolved, or the device has no more handles.
   */
  async createAddressHandle(address: string, options: { dscp?: number } = {}): Promise<AddressHandle> {
    const mac = await this.resolve(address);
    const path = pathTo(this, { address, mac }, options.dscp ?? this.defaults.dscp, this.defaults.priority, 0);
    const { worker } = this.native;
    return asWeirError(() => new AddressHandle(worker, worker.createAddressHandle(0, path), () => this.works));
  }

  /** Connection management for own addresses of the same IP version as `address`. */
  managerFor(address: string): ConnectionManager {
    this.requireOpen();
    return this.#localFor(address).manager;
  }
  get managers(): ConnectionManager[] {
    return this.#locals.map(({ manager }) => manager);
  }

  /** Own address of the same IP version. @throws WeirError when there is none. */
  sourceFor(address: string): string {
    return this.#localFor(address).prefix.address;
  }

  /**
   * Counts since the device was opened, by name; those by priority are summed. Those of connection management are named `cm_` and
   * their name there.
   */
  counters(): Map<string, number> {
    if (!this.works) return new Map();
    this.#table.refresh();
    const sums = this.#table.sums();
    const add = (name: string, value: number) => sums.set(name, (sums.get(name) ?? 0) + value);
    for (const { manager } of this.#locals) {
      for (const [name, value] of Object.entries(manager.counters)) add(`cm_${name}`, value);
    }
    return sums;
  }

  /** Rates, DCQCN's state and counters of the existing queue pairs. */
  queuePairStates(): QueuePairState[] {
    return this.works ? this.native.worker.queuePairs(0) : [];
  }

  protected end(): void {
    for (const { manager } of this.#locals) manager.close();
  }

  protected release(): void {
    this.native.worker.close();
    for (const port of this.#held) port.close();
  }

  #localFor(address: string): Local {
    const local = this.#locals.find(({ prefix }) => isIPv6(prefix.address) === isIPv6(address));
    if (local === undefined) {
      throw new WeirError(`${address} cannot be reached from ${this.addresses.join(" or ")}`, {
        hint: `give the device an ${isIPv6(address) ? "IPv6" : "IPv4"} address too`,
      });
    }
    return local;
  }

  #nextHop(prefix: Prefix, destination: string): string {
    if (inPrefix(prefix, destination)) return destination;
    const gateway = this.#gateways.find((hop) => isIPv6(hop) === isIPv6(destination));
    if (gateway === undefined) {
      throw new WeirError(`${destination} is not in ${prefix.address}/${prefix.length}, and there is no gateway`, {
        hint: "widen the prefix of the device's address, or give a gateway",
      });
    }
    return gateway;
  }

  #onDoorbell(): void {
    if (this.closed) return;
    this.drain();
    if (this.closed) return;
    for (const { bytes } of this.native.worker.drainPunted()) {
      for (const listener of [...this.#listeners]) listener(bytes);
      if (this.closed) return;
    }
    this.readRecords();
  }

  /** Notices when the poll thread has failed. Queue pairs that wait for it call this. */
  readRecords(): void {
    for (;;) {
      const count = this.native.worker.drainRecords(this.#records);
      for (let i = 0; i < count; i++) {
        const [, kind, , , value] = this.#records.subarray(i * kRecordWords, (i + 1) * kRecordWords);
        if (kind === RecordKind.ended && value === 1) this.#fail();
      }
      if (count * kRecordWords < this.#records.length) return;
    }
  }

  #fail(): void {
    // outcome() joins the thread, which has ended.
    this.fail(this.native.worker.outcome().failure ?? "unknown reason");
  }
}

const kNoImpairment = {
  loss: 0,
  duplicate: 0,
  corrupt: 0,
  reorder: 0,
  delay: 0,
  jitter: 0,
  reorder_delay: 10_000,
  component: 0,
};
