/** Runs the device of a daemon: opens its ports, begins, changes, finds peers, drains; and the source of what it tells. */

import { setTimeout as sleep } from "node:timers/promises";
import { asWeirError, WeirError } from "../base/error.js";
import { macText } from "../base/mac.js";
import { arpReply } from "../cm/arp.js";
import { EchoResponder } from "../cm/echo.js";
import type { FrameLink } from "../cm/link.js";
import type { CapturePort } from "../device/captures.js";
import { composeWorkers, ownersOf, portsOf } from "../device/compose.js";
import type { Count } from "../device/counts.js";
import { Device, type DeviceHost, type DevicePort, type DeviceSource } from "../device/device.js";
import type { DeviceConfig } from "../device/file/load.js";
import { assessHealth, type Health } from "../device/health.js";
import type { ProgramIdentity } from "../device/protocol.js";
import { CounterTable } from "../native/counters.js";
import { distribution } from "../native/histogram.js";
import { kRecordWords, type NativeAddon, RecordKind, type WorkerConfig } from "../native/types.js";
import { DeviceWorkers } from "../native/workers.js";
import type { Log } from "./log.js";
import { Peers } from "./peers.js";
import { Ports } from "./ports.js";

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

export class DeviceRunner implements DeviceSource {
  readonly device: Device;
  readonly kind: DeviceConfig["kind"];
  readonly name: string;
  readonly scale = 1;
  readonly index = 0;
  /** Only to be read from. */
  worker: DeviceWorkers;
  readonly interfaces: Ports;
  private table: CounterTable;
  private readonly words = new Float64Array(kRecordWords * 64);
  private packets: number;
  /** Peers that are looked for. */
  private peers: Peers | undefined;
  private readonly frameListeners = new Set<(frame: Buffer) => void>();
  private closed = false;
  private failure: string | undefined;
  /** Of a NIC whose address the kernel does not have. */
  private readonly echo: EchoResponder | undefined;

  /**
   * @param answersArp The kernel does not have the NIC's address, so this does, and answers ping.
   * @param onFailure A worker has ended by itself.
   */
  constructor(
    readonly addon: NativeAddon,
    private config: DeviceConfig,
    private readonly log: Log,
    private readonly answersArp: boolean,
    host: DeviceHost,
    private readonly onFailure: (reason: string) => void,
  ) {
    this.interfaces = new Ports(config, addon, log);
    ({ kind: this.kind, name: this.name } = config);
    if (answersArp && config.kind === "nic") this.echo = new EchoResponder(config.port.mac, config.address);
    [this.worker, this.packets] = this.#create();
    this.table = new CounterTable(this.worker);
    this.device = new Device(this, host);
  }

  /** Of a NIC: set by who serves them. */
  programs: () => ReadonlyMap<number, ProgramIdentity> = () => new Map();

  /** Opens the ports; nothing is received or sent yet. @throws WeirError when that fails. */
  open(): void {
    asWeirError(() => this.#open());
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
        if (!up) this.interfaces.take(i, false, 0, false);
      });
    }
  }

  /** Applies changed parameters; no frame is lost. @throws WeirError when they cannot be had without a new start. */
  reconfigure(config: DeviceConfig): void {
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
    const { p99, max } = distribution(loop_gap);
    return { host_drops, loop_gap_us: { p99: p99 / 1000, max: max / 1000 }, refused: tuning };
  }

  /** Idempotent. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.device.close();
    this.peers?.close();
    this.worker.close();
  }

  counted(): CounterTable {
    this.table.refresh();
    return this.table;
  }

  *more(): Iterable<Count> {
    if (this.echo === undefined) return;
    const { replies, limited } = this.echo;
    const labels = { device: this.name };
    yield { description: { ...kEchoReplies, labels }, value: replies };
    yield { description: { ...kEchoLimited, labels }, value: limited };
  }

  switchSetting() {
    const { config } = this;
    return config.kind === "switch" ? { config: config.switch, ports: config.ports } : undefined;
  }

  nicSetting() {
    const { config } = this;
    if (config.kind !== "nic") return undefined;
    const pairs = config.queue_pairs.map(({ peer, priority }) => ({
      peer: peer.name,
      priority,
      unresolved: peer.mac === undefined && this.peers?.macs.has(peer.address) !== true,
    }));
    const { algorithm } = config.congestion;
    return { classes: config.classes, receiveBuffer: config.host.receive_buffer.size, algorithm, pairs };
  }

  ports(): DevicePort[] {
    this.table.refresh();
    return this.interfaces.status(this.config, (port) => this.#macControlSeen(port));
  }

  places(): CapturePort[] {
    const device = this.kind === "switch" ? "switch" : "NIC";
    return portsOf(this.config).map((port, i) => ({
      name: port.name,
      description: `port ${port.name} of ${device} ${this.name}, interface ${port.interface}`,
      speed: port.rate,
      place: { worker: this.worker.ofPort(i), device: 0, port: i, rate: port.rate, meant: false },
    }));
  }

  /** Queue pairs' peers without a MAC address in the file. */
  #wantedPeers(): { name: string; address: string }[] {
    if (this.config.kind === "switch") return [];
    return this.config.queue_pairs.map(({ peer }) => peer).filter(({ mac }) => mac === undefined);
  }

  /** @throws WeirError where answers to ARP would go to the kernel alone. */
  #requireArp(): void {
    const [peer] = this.#wantedPeers();
    if (peer === undefined || this.answersArp || this.interfaces.backends[0]?.receive !== "af_xdp") return;
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
    this.peers = new Peers(this.link(port.mac), address, [...names.keys()], {
      found: (peer, mac, before) => {
        this.worker.reconfigure(this.#compose(this.config)[0]);
        const message = before === undefined ? "peer found by ARP" : "peer has another MAC address";
        this.log.info({ peer: nameOf(peer), mac: macText(mac) }, message);
      },
      silent: (peer) =>
        this.log.warn(
          { peer: nameOf(peer) },
          "peer does not answer ARP requests: what is sent to it waits, it is asked again",
        ),
    });
  }

  /** Frames that are not for queue pairs. */
  link(mac: number): FrameLink {
    return {
      mac,
      send: (frame) => !this.closed && this.worker.inject(0, 0, frame),
      onFrame: (listener) => {
        this.frameListeners.add(listener);
        return () => void this.frameListeners.delete(listener);
      },
    };
  }

  #macControlSeen(port: string): boolean {
    const labels = this.config.kind === "switch" ? { port } : undefined;
    return kMacControlCounters.some((name) => this.table.sum(name, labels) > 0);
  }

  #compose(config: DeviceConfig): [WorkerConfig, ...WorkerConfig[]] {
    const macs = this.peers?.macs ?? new Map<string, number>();
    return composeWorkers(config, this.interfaces.backends, this.answersArp, macs) as [WorkerConfig, ...WorkerConfig[]];
  }

  /** Its threads, not yet running, and how many packets each has memory for. */
  #create(): [DeviceWorkers, number] {
    const configs = this.#compose(this.config);
    const worker = new DeviceWorkers(this.addon, configs, ownersOf(this.config), () => this.#onDoorbell());
    return [worker, configs[0].packets];
  }

  /** Not everything that keeps AF_XDP from working can be seen beforehand: where nobody asked for it, packet sockets do. */
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

  health(): Health {
    const ports = this.ports();
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
      this.interfaces.take(index as number, value === 1, mtu as number, reopened === 1);
    } else if (kind === RecordKind.stall) {
      this.interfaces.takeStall(index as number, value === 1, mtu === 1);
    } else if (kind === RecordKind.ended && value === 1) {
      // outcome() joins the thread, which has ended.
      this.failure = this.worker.outcome().failure ?? "unknown reason";
      this.onFailure(this.failure);
    }
  }

  #sentFrames(): number {
    let sum = 0;
    for (const { description, value } of this.counted().entries()) if (description.name === "tx_packets") sum += value;
    return sum;
  }

  #isEmpty(): boolean {
    if (this.config.kind === "nic") {
      return this.worker.queuePairs(0).every(({ state }) => state === "idle" || state === "finished");
    }
    return this.worker.switchState(0).ports.every(({ queue_bytes }) => queue_bytes.every((bytes) => bytes === 0));
  }
}
