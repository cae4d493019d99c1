/** The native worker of a daemon: one switch or one NIC, its counters, ports and records. */

import { setTimeout as sleep } from "node:timers/promises";
import { WeirError } from "../base/error.js";
import { arpReply } from "../cm/arp.js";
import { EchoResponder } from "../cm/echo.js";
import type { CaptureSource } from "../device/captures.js";
import { assessHealth, type Health } from "../device/health.js";
import type {
  ControlRequests,
  FdbEntry,
  PortStatus,
  QosReport,
  QueuePairReport,
  SwitchReport,
} from "../device/protocol.js";
import {
  ClearableCounters,
  forwardingReport,
  nicQos,
  queuePairReport,
  switchQos,
  switchReport,
} from "../device/reports.js";
import { CounterTable } from "../native/counters.js";
import type { NativeHistogram } from "../native/histogram.js";
import { kRecordWords, type NativeAddon, RecordKind, type WorkerConfig } from "../native/types.js";
import { createWorkers, type DeviceWorker } from "../native/workers.js";
import { composeWorkers, type DaemonConfig, ownersOf, portsOf } from "./kinds.js";
import { Peers } from "./peers.js";
import { type PortEvents, Ports } from "./ports.js";

export interface DeviceEvents extends PortEvents {
  /** Of a NIC: a peer has answered ARP; `moved`: it had another MAC address before. */
  peerFound(peer: string, mac: number, moved: boolean): void;
  peerSilent(peer: string): void;
  failed(reason: string): void;
}

const kStartMs = 2000;
const kDrainNs = 2e9;
/** Another Weir has an interface; with packet sockets it would have it, too. */
const kInUse = "INTERFACE_IN_USE";
const kStepMs = 10;
/** Counters of a switch port or a NIC that tell that MAC control frames have come. */
const kMacControlCounters = ["rx_pause_frames", "rx_pfc_frames", "rx_mac_control_unknown", "rx_unsupported_op_phy"];

const kEchoReplies = { name: "icmp_echo_replies", unit: "packets", help: "Pings answered" };
const kEchoLimited = {
  name: "icmp_echo_limited",
  unit: "packets",
  help: "Pings left alone: more than 1000 in a second",
};

export class Device {
  readonly ports: Ports;
  private worker: DeviceWorker;
  private table: CounterTable;
  private readonly words = new Float64Array(kRecordWords * 64);
  private readonly shown = new ClearableCounters();
  private packets: number;
  /** Peers that are looked for. */
  private peers: Peers | undefined;
  private readonly frameListeners = new Set<(frame: Buffer) => void>();
  private closed = false;
  private failure: string | undefined;
  /** Of a NIC whose address the kernel does not have. */
  private readonly echo: EchoResponder | undefined;

  /** @param answersArp The kernel does not have the NIC's address, so this does, and answers ping. */
  constructor(
    private readonly addon: NativeAddon,
    private config: DaemonConfig,
    private readonly events: DeviceEvents,
    private readonly answersArp: boolean,
  ) {
    this.ports = new Ports(config, addon, events);
    if (answersArp && config.kind === "nic") this.echo = new EchoResponder(config.port.mac, config.address);
    [this.worker, this.packets] = this.#create();
    this.table = new CounterTable(this.worker);
  }

  /** Opens the ports; nothing is received or sent yet. @throws WeirError when that fails. */
  open(): void {
    try {
      this.#open();
    } catch (error) {
      const { message, hint } = error as Error & { hint?: string };
      throw new WeirError(message, { cause: error, ...(hint !== undefined && { hint }) });
    }
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
    this.#findPeers();
    if (this.config.kind === "switch") {
      this.worker.switchState(0).ports.forEach(({ up }, i) => {
        if (!up) this.ports.take(i, false, 0, false);
      });
    }
  }

  /** Applies changed parameters; no frame is lost. @throws WeirError when they cannot be had without a new start. */
  reconfigure(config: DaemonConfig): void {
    const [native] = this.#compose(config);
    if (native.packets > this.packets) {
      throw new WeirError("buffer.total needs more packet memory than the daemon has taken", {
        hint: "restart it for a larger buffer",
      });
    }
    this.worker.reconfigure(native);
    this.config = config;
  }

  /** Ends own traffic and waits until nothing is queued, two seconds at most. */
  async drain(): Promise<void> {
    this.worker.stopTraffic();
    const limit = this.addon.monotonicNow() + kDrainNs;
    let sent = -1;
    while (this.addon.monotonicNow() < limit && this.failure === undefined) {
      const before = sent;
      sent = this.#sentFrames();
      if (this.#isEmpty() && sent === before) return;
      await sleep(kStepMs);
    }
  }

  /** Stops; then tells what the host did to the worker: frames that it lost, gaps in us, tuning that it refused. */
  outcome(): { host_drops: number; loop_gap_us: { p99: number; max: number }; refused: string[] } {
    const { host_drops, loop_gap, tuning } = this.worker.outcome();
    return { host_drops, loop_gap_us: { p99: loop_gap.p99 / 1000, max: loop_gap.max / 1000 }, refused: tuning };
  }

  /** Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.peers?.close();
    this.worker.close();
  }

  /** Counts since the start; behind those of the native core, what is counted here. */
  *totals() {
    this.table.refresh();
    yield* this.table.entries();
    if (this.echo === undefined) return;
    const { replies, limited } = this.echo;
    const labels = { device: this.config.name };
    yield { description: { ...kEchoReplies, labels }, value: replies };
    yield { description: { ...kEchoLimited, labels }, value: limited };
  }

  /** The same, just read. */
  counted(): CounterTable {
    this.table.refresh();
    return this.table;
  }

  /** Counts since the last clear(). */
  counters(): ControlRequests["counters"] {
    const counters = this.shown.since(this.totals());
    return { since: this.shown.cleared.toISOString(), at_ns: this.table.asOf, counters };
  }

  clear(): ControlRequests["clear"] {
    this.shown.clear(this.totals());
    return { cleared: this.shown.cleared.toISOString() };
  }

  portStatus(): (PortStatus & { transitions: number })[] {
    this.table.refresh();
    return this.ports.status(this.config, (port) => this.#macControlSeen(port));
  }

  /** Queue pairs' peers without a MAC address in the file. */
  #wantedPeers(): { name: string; address: string }[] {
    if (this.config.kind === "switch") return [];
    return this.config.queue_pairs.map(({ peer }) => peer).filter(({ mac }) => mac === undefined);
  }

  /** @throws WeirError where answers to ARP would go to the kernel alone. */
  #requireArp(): void {
    const [peer] = this.#wantedPeers();
    if (peer === undefined || this.answersArp || this.ports.backends[0]?.receive !== "af_xdp") return;
    throw new WeirError(`peer ${peer.name} has no mac, and answers to ARP do not come here`, {
      hint: "the kernel has the NIC's address, and AF_XDP leaves ARP to it: give peers a mac, or set receive: af_packet",
    });
  }

  #findPeers(): void {
    const wanted = this.#wantedPeers();
    if (this.config.kind === "switch" || wanted.length === 0) return;
    const { address, port } = this.config;
    const names = new Map(wanted.map((peer) => [peer.address, peer.name]));
    const nameOf = (peer: string) => names.get(peer) ?? peer;
    const link = {
      mac: port.mac,
      send: (frame: Uint8Array) => !this.closed && this.worker.inject(0, 0, frame),
      onFrame: (listener: (frame: Buffer) => void) => {
        this.frameListeners.add(listener);
        return () => void this.frameListeners.delete(listener);
      },
    };
    this.peers = new Peers(link, address, [...names.keys()], {
      found: (peer, mac, before) => {
        this.worker.reconfigure(this.#compose(this.config)[0]);
        this.events.peerFound(nameOf(peer), mac, before !== undefined);
      },
      silent: (peer) => this.events.peerSilent(nameOf(peer)),
    });
  }

  #portNames(): string[] {
    return portsOf(this.config).map(({ name }) => name);
  }

  #macControlSeen(port: string): boolean {
    const labels = this.config.kind === "switch" ? { port } : undefined;
    return kMacControlCounters.some((name) => this.table.sum(name, labels) > 0);
  }

  #compose(config: DaemonConfig): [WorkerConfig, ...WorkerConfig[]] {
    const macs = this.peers?.macs ?? new Map<string, number>();
    return composeWorkers(config, this.ports.backends, this.answersArp, macs) as [WorkerConfig, ...WorkerConfig[]];
  }

  /** Its threads, not yet running, and how many packets each has memory for. */
  #create(): [DeviceWorker, number] {
    const configs = this.#compose(this.config);
    const worker = createWorkers(this.addon, configs, ownersOf(this.config), () => this.#onDoorbell());
    return [worker, configs[0].packets];
  }

  /** Not everything that keeps AF_XDP from working can be seen beforehand: where nobody asked for it, packet sockets do. */
  #open(): void {
    try {
      this.worker.open();
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      if (code === kInUse || !this.ports.giveUpXdp(message)) throw error;
      this.worker.close();
      [this.worker, this.packets] = this.#create();
      this.table = new CounterTable(this.worker);
      this.worker.open();
    }
  }

  /** @throws WeirError when this is a NIC. */
  switchReport(): SwitchReport {
    const { config } = this;
    if (config.kind !== "switch")
      throw new WeirError(`${config.name} is a NIC: it has no queues or buffer of a switch`);
    return switchReport(config.switch, config.ports, this.worker.switchState(0));
  }

  /** @throws WeirError when this is a NIC. */
  forwarding(): FdbEntry[] {
    const { config } = this;
    if (config.kind !== "switch") throw new WeirError(`${config.name} is a NIC: it has no forwarding table`);
    return forwardingReport(this.worker.forwardingTable(0), this.#portNames());
  }

  /** How many the forwarding table of a switch has. */
  forwardingEntries(): number {
    return this.worker.forwardingEntries(0);
  }

  /** @throws WeirError when this is a switch. */
  queuePairs(): QueuePairReport[] {
    const { config } = this;
    if (config.kind !== "nic") throw new WeirError(`${config.name} is a switch: it has no queue pairs`);
    const configs = config.queue_pairs.map(({ peer, priority }) => ({
      peer: peer.name,
      priority,
      unresolved: peer.mac === undefined && this.peers?.macs.has(peer.address) !== true,
    }));
    return queuePairReport(this.worker.queuePairs(0), configs, config.congestion);
  }

  qos(): QosReport {
    const { config } = this;
    return config.kind === "switch"
      ? switchQos(config.switch)
      : nicQos(config.classes, config.host.receive_buffer.size);
  }

  histograms(): NativeHistogram[] {
    return this.worker.histograms();
  }

  /** As captures see it. */
  captureSource(version: string): CaptureSource {
    const { kind, name } = this.config;
    const device = kind === "switch" ? "switch" : "NIC";
    const ports = portsOf(this.config).map((port, i) => ({
      name: port.name,
      description: `port ${port.name} of ${device} ${name}, interface ${port.interface}`,
      speed: port.rate,
      place: { worker: this.worker.ofPort(i), device: 0, port: i, rate: port.rate, meant: false },
    }));
    return { addon: this.addon, about: { kind, name, version }, ports };
  }

  /** ns. */
  loopGap(): number {
    return this.worker.worstGap();
  }

  health(): Health {
    const ports = this.portStatus();
    return assessHealth({
      name: this.config.name,
      failure: this.failure,
      silence: this.addon.monotonicNow() - this.table.asOf,
      gap: this.worker.recentGap(),
      ports,
    });
  }

  #onDoorbell(): void {
    if (this.closed) return;
    for (;;) {
      const count = this.worker.drainRecords(this.words);
      for (let i = 0; i < count; i++) this.#take(this.words.subarray(i * kRecordWords, (i + 1) * kRecordWords));
      if (count * kRecordWords < this.words.length) break;
    }
    for (const { bytes } of this.worker.drainPunted()) {
      for (const listener of this.frameListeners) listener(bytes);
      if (!this.answersArp || this.config.kind !== "nic") continue;
      const reply = arpReply(bytes, this.config.address, this.config.port.mac) ?? this.echo?.reply(bytes);
      if (reply !== undefined) this.worker.inject(0, 0, reply);
    }
  }

  #take([, kind, , index, value, mtu, reopened]: Float64Array): void {
    if (kind === RecordKind.port) {
      this.ports.take(index as number, value === 1, mtu as number, reopened === 1);
    } else if (kind === RecordKind.stall) {
      this.ports.takeStall(index as number, value === 1, mtu === 1);
    } else if (kind === RecordKind.ended && value === 1) {
      // outcome() joins the thread, which has ended.
      this.failure = this.worker.outcome().failure ?? "unknown reason";
      this.events.failed(this.failure);
    }
  }

  #sentFrames(): number {
    let sum = 0;
    for (const { description, value } of this.totals()) if (description.name === "tx_packets") sum += value;
    return sum;
  }

  #isEmpty(): boolean {
    if (this.config.kind === "nic") {
      return this.worker.queuePairs(0).every(({ state }) => state === "idle" || state === "finished");
    }
    return this.worker.switchState(0).ports.every(({ queue_bytes }) => queue_bytes.every((bytes) => bytes === 0));
  }
}
