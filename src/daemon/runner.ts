/** Runs the device of a daemon: opens its ports, begins, changes, finds peers, drains; and is the source of its counters and records. */

import { isIPv4, isIPv6 } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../base/error.js";
import { macText } from "../base/mac.js";
import { composeWorkers, ownersOf, portsOf, type WantedPeer, wantedPeers } from "../device/compose.js";
import { Device, type DeviceHost, type DevicePort, type DeviceSource } from "../device/device.js";
import type { FaultPort } from "../device/faults.js";
import type { DeviceConfig } from "../device/file/load.js";
import type { RateChange } from "../device/file/types.js";
import type { HealthFacts } from "../device/health.js";
import type { ProgramIdentity } from "../device/protocol.js";
import { CounterTable } from "../native/counters.js";
import { distribution } from "../native/histogram.js";
import { kRecordWords, type NativeAddon, RecordKind, type WorkerConfig } from "../native/types.js";
import { DeviceWorkers } from "../native/workers.js";
import type { FrameLink } from "../wire/cm/link.js";
import { readEthernet, taggedFrame, untaggedFrame } from "../wire/ethernet.js";
import { kEtherType } from "../wire/headers.js";
import { kPriorities } from "../wire/priority.js";
import { ControlPlane, routesByKernel } from "./control_plane.js";
import { Discovery } from "./discovery.js";
import type { Log } from "./log.js";
import { Ports } from "./ports.js";
import { RateSchedule } from "./rate_schedule.js";

const kStartMs = 2000;
/** Offset of the EtherType in a frame. */
/** Reasons why a connection of queue pairs fails, by its WorkStatus, where its user can do something. */
const kFailures: Readonly<Record<number, string>> = {
  9: "the peer refuses it: are `transport`, `path_mtu` and `remote_qpn` the same there?",
  12: "the peer does not acknowledge: is it there, with `transport: rc`, and with `congestion.algorithm: hpcc` if it is so here?",
};
const kDrainNs = 2e9;
/** Error code if another Weir has an interface; with packet sockets that one would have it, too. */
const kInUse = "INTERFACE_IN_USE";
const kStepMs = 10;

export class DeviceRunner implements DeviceSource {
  readonly device: Device;
  readonly kind: DeviceConfig["kind"];
  readonly name: string;
  readonly scale = 1;
  readonly index = 0;
  /** Workers, only to be read from. */
  worker: DeviceWorkers;
  readonly interfaces: Ports;
  private table: CounterTable;
  private readonly words = new Float64Array(kRecordWords * 64);
  private packets: number;
  /** Peers that the NIC looks for, and their MAC addresses by IP address once they have answered. */
  private readonly wanted: readonly WantedPeer[];
  /** Addresses whose requests the ports let in: those that were answered at the start. */
  private readonly heard: readonly string[];
  private readonly macs = new Map<string, number>();
  private readonly frameListeners = new Set<(frame: Buffer) => void>();
  /** Undefined without LLDP. */
  private readonly discovery: Discovery | undefined;
  private readonly schedule: RateSchedule;
  /** Undefined if routes are those of the file. */
  private readonly control: ControlPlane | undefined;
  private begun = false;
  private closed = false;
  private failure: string | undefined;

  /**
   * @param answered Addresses of a NIC that the kernel does not have: the NIC answers requests for them, and pings. @param
   * onFailure Called when a worker has ended by itself.
   */
  constructor(
    readonly addon: NativeAddon,
    private config: DeviceConfig,
    private readonly log: Log,
    private answered: readonly string[],
    host: DeviceHost,
    private readonly onFailure: (reason: string) => void,
  ) {
    this.heard = answered;
    this.interfaces = new Ports(config, addon, log);
    ({ kind: this.kind, name: this.name } = config);
    this.wanted = config.kind === "nic" ? wantedPeers(config) : [];
    const { lldp } = config;
    this.discovery =
      lldp &&
      new Discovery(
        { ...config, lldp },
        {
          version: host.version,
          log,
          send: (port, frame) => !this.closed && this.worker.inject(0, port, frame),
          changed: () => this.#adopt(),
        },
      );
    this.schedule = new RateSchedule(
      () => addon.monotonicNow(),
      (changes) => this.#changeRates(changes),
    );
    if (config.kind === "switch" && routesByKernel(config)) {
      this.control = new ControlPlane(addon, config, log, () => this.#apply(this.config));
    }
    [this.worker, this.packets] = this.#create();
    this.table = new CounterTable(this.worker);
    this.device = new Device(this, host);
  }

  /** Programs of a NIC: set by the part that serves them. */
  programs: () => ReadonlyMap<number, ProgramIdentity> = () => new Map();
  /** How many of them have paths of their own, by which faults of the NIC do not reach them. */
  lent = () => 0;

  /** Opens the ports; nothing is received or sent yet. @throws WeirError when that fails. */
  open(): void {
    asWeirError(() => this.#open());
    this.control?.open();
    this.#requireArp();
  }

  /** Begins to work, after open(). @throws WeirError when that fails. */
  async begin(): Promise<void> {
    this.worker.begin(this.addon.monotonicNow());
    for (let waited = 0; this.worker.manifest() === undefined; waited += kStepMs) {
      if (this.failure !== undefined || waited >= kStartMs)
        throw new WeirError(this.failure ?? "the worker did not start");
      await sleep(kStepMs);
    }
    this.begun = true;
    this.device.replaceFaults(this.config.faults);
    this.#beginSchedule(this.config);
    this.control?.begin();
    if (this.config.kind === "switch") {
      this.worker.switchState(0).ports.forEach(({ up }, i) => {
        if (!up) this.interfaces.take(i, false, 0, false);
      });
    }
    this.interfaces.up.forEach((up, i) => {
      this.discovery?.setUp(i, up);
    });
  }

  /** Applies changed parameters; no frame is lost. @throws WeirError when they cannot be had without a new start. */
  reconfigure(config: DeviceConfig, answered = this.answered): void {
    const before = this.answered;
    this.#requireFilters(answered);
    this.answered = answered;
    try {
      this.#apply(config, 0);
    } catch (error) {
      this.answered = before;
      throw error;
    }
    this.config = config;
    this.#beginSchedule(config);
    this.device.replaceFaults(config.faults);
    if (config.kind === "switch" && routesByKernel(config)) this.control?.reconfigure(config);
    const { lldp } = config;
    if (lldp !== undefined) this.discovery?.reconfigure({ ...config, lldp });
  }

  /** @param since Time since the changes of rates began, ns: it says which of them hold. */
  #apply(config: DeviceConfig, since = this.schedule.since): void {
    const [native] = this.#compose(config, since);
    if (native.packets > this.packets) {
      throw new WeirError("buffer.total needs more packet memory than the daemon has taken", {
        hint: "restart it for a larger buffer",
      });
    }
    this.worker.reconfigure(native);
  }

  #beginSchedule(config: DeviceConfig): void {
    if (config.kind === "switch") this.schedule.begin(config.changes);
  }

  #changeRates(changes: readonly RateChange[]): void {
    if (this.closed) return;
    try {
      this.#apply(this.config);
      for (const { port, priority, rate } of changes) this.log.info({ port, priority, rate }, "rate changed");
    } catch (error) {
      this.log.error({ error: (error as Error).message }, "rate not changed");
    }
  }

  /** Applies what DCBX has found, once the device lives. */
  #adopt(): void {
    if (!this.begun || this.closed) return;
    try {
      this.#apply(this.config);
    } catch (error) {
      this.discovery?.refuse((error as Error).message);
    }
  }

  /** The configuration with settings of peers that a willing device takes over, and the kernel's routes. */
  #running(config = this.config): DeviceConfig {
    const adopted = this.discovery?.adopted() ?? {};
    const learned = this.control && { learned: this.control.table };
    return config.kind === "switch"
      ? {
          ...config,
          switch: { ...config.switch, ...adopted },
          router: config.router && { ...config.router, ...learned },
        }
      : { ...config, classes: { ...config.classes, ...adopted } };
  }

  /** Ends own traffic and waits until nothing is queued, two seconds at most; neighbours are told that it leaves. */
  async drain(): Promise<void> {
    this.schedule.stop();
    this.discovery?.close();
    this.worker.stopTraffic();
    const limit = this.addon.monotonicNow() + kDrainNs;
    let sent = -1;
    while (this.addon.monotonicNow() < limit && this.failure === undefined) {
      const before = sent;
      sent = this.counted().sum("tx_packets");
      if (this.#isEmpty() && sent === before) return;
      await sleep(kStepMs);
    }
  }

  /** Stops; then tells what the host did to the worker: frames that it lost, gaps in us, tuning that it refused. */
  outcome(): { host_drops: number; loop_gap_us: { p99: number; max: number }; refused: string[] } {
    const { host_drops, loop_gap, tuning } = this.worker.outcome();
    const { p99, max } = distribution(loop_gap);
    return { host_drops, loop_gap_us: { p99: p99 / 1000, max: max / 1000 }, refused: tuning };
  }

  /** Idempotent. */
  close(): void {
    if (this.closed) return;
    this.discovery?.close();
    this.closed = true;
    this.schedule.stop();
    this.control?.close();
    this.device.close();
    this.worker.close();
  }

  counted(): CounterTable {
    this.table.refresh();
    return this.table;
  }

  switchSetting() {
    const config = this.#running();
    return config.kind === "switch" ? { config: config.switch, ports: config.ports, router: config.router } : undefined;
  }

  nicSetting() {
    const config = this.#running();
    if (config.kind !== "nic") return undefined;
    const pairs = config.queue_pairs.map(({ peer, priority }) => ({
      peer: peer.name,
      priority,
      unresolved: peer.mac === undefined && !this.macs.has(peer.address),
    }));
    const { classes, congestion, host } = config;
    return { classes, receiveBuffer: host.receive_buffer.size, congestion, qcn: host.qcn, pairs };
  }

  ports(): DevicePort[] {
    this.table.refresh();
    return this.interfaces.status(this.#running(), (port) => this.#macControlSeen(port));
  }

  lldp() {
    return this.discovery?.lldpReport();
  }

  dcbx() {
    return this.discovery?.dcbxReport();
  }

  places(): FaultPort[] {
    const device = this.kind === "switch" ? "switch" : "NIC";
    return portsOf(this.config).map((port, i) => ({
      name: port.name,
      description: `port ${port.name} of ${device} ${this.name}, interface ${port.interface}`,
      speed: port.rate,
      place: { worker: this.worker.ofPort(i), device: 0, port: i, rate: port.rate, meant: false },
    }));
  }

  /** @throws WeirError where requests for addresses that only the NIC has would not come here: what comes is settled at the start. */
  #requireFilters(answered: readonly string[]): void {
    const isXdp = this.interfaces.backends[0]?.receive === "af_xdp";
    const isHeard = (address: string) =>
      this.heard.includes(address) || (!isXdp && this.heard.some((own) => isIPv4(own) === isIPv4(address)));
    const deaf = answered.filter((address) => !isHeard(address));
    if (deaf.length === 0) return;
    throw new WeirError(`address: requests for ${deaf.join(" and ")} do not come here before a new start`, {
      hint: "restart it; or give the interface the address, so that the kernel answers",
    });
  }

  /** @throws WeirError where answers to ARP would go to the kernel alone. */
  #requireArp(): void {
    const isXdp = this.interfaces.backends[0]?.receive === "af_xdp";
    if (isXdp && this.answered.filter(isIPv4).length > 1) {
      throw new WeirError("AF_XDP takes ARP requests for one address of a NIC's own", {
        hint: "give it one that the kernel does not have, or set receive: af_packet",
      });
    }
    // For IPv6 addresses packet sockets receive, which see all that the kernel sees.
    const peer = this.wanted.find(({ address }) => isIPv4(address));
    if (peer === undefined || this.answered.some(isIPv4) || !isXdp) return;
    throw new WeirError(`peer ${peer.name} has no mac, and answers to ARP do not come here`, {
      hint: "the kernel has the NIC's address, and AF_XDP leaves ARP to it: give peers a mac, or set receive: af_packet",
    });
  }

  /** @param mac 0: nobody answers. */
  #takePeer(index: number, mac: number): void {
    const peer = this.wanted[index];
    if (peer === undefined || mac === this.macs.get(peer.address)) return;
    const how = isIPv6(peer.address) ? "neighbour discovery" : "ARP";
    if (mac === 0) {
      const asked = isIPv6(peer.address) ? how : "ARP requests";
      const message = `peer does not answer ${asked}: what is sent to it waits, it is asked again`;
      this.log.warn({ peer: peer.name }, message);
      return;
    }
    const message = this.macs.has(peer.address) ? "peer has another MAC address" : `peer found by ${how}`;
    this.macs.set(peer.address, mac);
    this.worker.reconfigure(this.#compose(this.config)[0]);
    this.log.info({ peer: peer.name, mac: macText(mac) }, message);
  }

  /** A link for frames that are not for queue pairs. */
  link(mac: number): FrameLink {
    const vlan = this.config.kind === "nic" ? this.config.vlan : undefined;
    return {
      mac,
      send: (frame) => !this.closed && this.worker.inject(0, 0, vlan === undefined ? frame : taggedFrame(frame, vlan)),
      onFrame: (listener) => {
        this.frameListeners.add(listener);
        return () => void this.frameListeners.delete(listener);
      },
    };
  }

  #macControlSeen(port: string): boolean {
    const labels = this.config.kind === "switch" ? { port } : undefined;
    return this.table.of("control_rx").sum(undefined, labels) > 0;
  }

  #compose(config: DeviceConfig, since = 0): [WorkerConfig, ...WorkerConfig[]] {
    const { discovery, answered, interfaces } = this;
    const defence = discovery && ((port: string, cnpv: number) => discovery.defence(port, cnpv));
    return composeWorkers(this.#running(config), interfaces.backends, answered, this.macs, defence, since) as [
      WorkerConfig,
      ...WorkerConfig[],
    ];
  }

  /** Creates its threads, not yet running. Also returns how many packets each has memory for. */
  #create(): [DeviceWorkers, number] {
    const configs = this.#compose(this.config);
    const worker = new DeviceWorkers(this.addon, configs, ownersOf(this.config), () => this.#onDoorbell());
    return [worker, configs[0].packets];
  }

  /** Not everything that keeps AF_XDP from working can be seen beforehand: where nobody asked for it, packet sockets take its place. */
  #open(): void {
    try {
      this.worker.open();
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      if (code === kInUse || !this.interfaces.giveUpXdp(message)) throw error;
      this.worker.close();
      [this.worker, this.packets] = this.#create();
      this.table = new CounterTable(this.worker);
      this.worker.open();
    }
  }

  healthFacts(): HealthFacts {
    const ports = this.ports();
    return {
      name: this.config.name,
      failure: this.failure,
      silence: this.addon.monotonicNow() - this.table.asOf,
      gap: this.worker.recentGap(),
      ports,
    };
  }

  #onDoorbell(): void {
    if (this.closed) return;
    for (;;) {
      const count = this.worker.drainRecords(this.words);
      for (let i = 0; i < count; i++) this.#take(this.words.subarray(i * kRecordWords, (i + 1) * kRecordWords));
      if (count * kRecordWords < this.words.length) break;
    }
    for (const { port, bytes } of this.worker.drainPunted()) {
      const frame = untaggedFrame(bytes);
      if (readEthernet(frame)?.etherType === kEtherType.lldp) {
        this.discovery?.receive(port, frame);
        continue;
      }
      for (const listener of this.frameListeners) listener(frame);
    }
  }

  #take([, kind, , index, value, mtu, third]: Float64Array): void {
    if (kind === RecordKind.port) {
      this.interfaces.take(index as number, value === 1, mtu as number, third === 1);
      this.discovery?.setUp(index as number, value === 1);
    } else if (kind === RecordKind.stall) {
      this.interfaces.takeStall(index as number, value === 1, mtu === 1, third === 1);
    } else if (kind === RecordKind.queues) {
      this.interfaces.takeQueues(index as number, value as number, mtu === 1, third === 1);
    } else if (kind === RecordKind.storm) {
      this.#takeStorm(index as number, value as number);
    } else if (kind === RecordKind.stream) {
      this.#takeStream(index as number, value as number);
    } else if (kind === RecordKind.neighbour) {
      this.#takePeer(index as number, value as number);
    } else if (kind === RecordKind.ended && value === 1) {
      // outcome() joins the thread, which has ended.
      this.failure = this.worker.outcome().failure ?? "unknown reason";
      this.onFailure(this.failure);
    }
  }

  /** @param mask Priorities that are in a storm now. */
  #takeStorm(index: number, mask: number): void {
    if (this.config.kind !== "switch") return;
    const told = { port: this.config.ports[index]?.name, priorities: kPriorities.filter((p) => (mask >> p) & 1) };
    if (mask === 0) this.log.info({ port: told.port }, "PFC storm over");
    else this.log.warn({ ...told, action: this.config.switch.pfc_watchdog.action }, "PFC storm: paused without end");
  }

  /** @param status 0: it has a connection; else a WorkStatus of native/transport/work.h. */
  #takeStream(index: number, status: number): void {
    if (this.config.kind !== "nic") return;
    const pair = this.config.queue_pairs[index];
    const told = { queue_pair: pair?.name, peer: pair?.peer.address };
    if (status === 0) this.log.info(told, "connected");
    else {
      const reason = kFailures[status] ?? `status ${status}`;
      this.log.warn({ ...told, reason }, "connection failed, tried again");
    }
  }

  #isEmpty(): boolean {
    if (this.config.kind === "nic") {
      return this.worker.queuePairs(0).every(({ state }) => state === "idle" || state === "finished");
    }
    return this.worker.switchState(0).ports.every(({ queue_bytes }) => queue_bytes.every((bytes) => bytes === 0));
  }
}
