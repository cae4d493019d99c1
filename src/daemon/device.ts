/** The native worker of a daemon: one switch or one NIC, its counters, ports and records. */
import { setTimeout as sleep } from "node:timers/promises";
import { arpReply } from "../cm/arp.js";
import { WeirError } from "../config/error.js";
import { CounterTable } from "../native/counters.js";
import { kRecordWords, type NativeAddon, type NativeWorker, RecordKind, type WorkerConfig } from "../native/types.js";
import { composeWorker, type DaemonConfig, portsOf } from "./kinds.js";
import { backendStatus, type PortSetup, portPfc } from "./ports.js";
import type { CounterValue, FdbEntry, PortStatus, QueuePairReport, SwitchReport } from "./protocol.js";

export interface DeviceEvents {
  /** An interface went down or is gone, or is there again. */
  port(name: string, up: boolean): void;
  failed(reason: string): void;
}

interface PortState {
  up: boolean;
  transitions: number;
  recoveries: number;
}

const kStartMs = 2000;
const kDrainNs = 2e9;
const kStepMs = 10;
/** Counters of a switch port or a NIC that tell that MAC control frames have come. */
const kMacControlCounters = ["rx_pause_frames", "rx_pfc_frames", "rx_mac_control_unknown", "rx_unsupported_op_phy"];
/** Gauges among the counters: what they show is not a sum, so clearing does not touch them. */
const isGauge = (name: string) => name.endsWith("_watermark_bytes") || name === "rp_cur_flows";

export class Device {
  private readonly worker: NativeWorker;
  private readonly table: CounterTable;
  private readonly states: PortState[];
  private readonly words = new Float64Array(kRecordWords * 64);
  private baseline: number[] = [];
  private packets: number;
  private closed = false;
  private failure: string | undefined;
  cleared = new Date();

  /**
   * @param setups Of each port.
   * @param answersArp The kernel does not have the NIC's address, so this does.
   */
  constructor(
    private readonly addon: NativeAddon,
    private config: DaemonConfig,
    private readonly setups: readonly PortSetup[],
    private readonly events: DeviceEvents,
    private readonly answersArp: boolean,
  ) {
    const native = this.#compose(config);
    this.packets = native.packets;
    this.worker = new addon.Worker(native, () => this.#onDoorbell());
    this.table = new CounterTable(this.worker);
    this.states = portsOf(config).map(() => ({ up: true, transitions: 0, recoveries: 0 }));
  }

  /** Opens the ports and starts. @throws WeirError when that fails. */
  async start(): Promise<void> {
    try {
      this.worker.open();
    } catch (error) {
      const { message, hint } = error as Error & { hint?: string };
      throw new WeirError(message, { cause: error, ...(hint !== undefined && { hint }) });
    }
    this.worker.begin(this.addon.monotonicNow());
    for (let waited = 0; this.worker.manifest() === undefined; waited += kStepMs) {
      if (this.failure !== undefined || waited >= kStartMs)
        throw new WeirError(this.failure ?? "the worker did not start");
      await sleep(kStepMs);
    }
    if (this.config.kind === "switch") {
      this.worker.switchState(0).ports.forEach(({ up }, i) => {
        if (!up) this.#setPort(i, false);
      });
    }
  }

  /** Applies changed parameters; no frame is lost. @throws WeirError when they cannot be had without a new start. */
  reconfigure(config: DaemonConfig): void {
    const native = this.#compose(config);
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
    this.worker.close();
  }

  /** Counts since the start. */
  *totals() {
    this.table.refresh();
    yield* this.table.entries();
  }

  /** Counts since the last clear(). */
  counters(): CounterValue[] {
    return [...this.totals()].map(({ description: { name, unit, labels }, value }, i) => ({
      name,
      unit,
      labels,
      value: value - (isGauge(name) ? 0 : (this.baseline[i] ?? 0)),
    }));
  }

  clear(): void {
    this.baseline = [...this.totals()].map(({ value }) => value);
    this.cleared = new Date();
  }

  ports(): (PortStatus & { transitions: number })[] {
    this.table.refresh();
    return portsOf(this.config).map((port, i) => ({
      name: port.name,
      interface: port.interface,
      namespace: port.namespace ?? null,
      mac: macText(port.mac),
      mtu: port.mtu,
      rate: port.rate,
      ...(this.states[i] as PortState),
      ...backendStatus(this.setups[i] as PortSetup),
      ...portPfc(this.config, this.setups[i] as PortSetup, this.#macControlSeen(port.name)),
    }));
  }

  #macControlSeen(port: string): boolean {
    const labels = this.config.kind === "switch" ? { port } : undefined;
    return kMacControlCounters.some((name) => this.table.sum(name, labels) > 0);
  }

  #compose(config: DaemonConfig): WorkerConfig {
    return composeWorker(
      config,
      this.setups.map(({ backend }) => backend),
    );
  }

  /** @throws WeirError when this is a NIC. */
  switchReport(): SwitchReport {
    const { config } = this;
    if (config.kind !== "switch")
      throw new WeirError(`${config.name} is a NIC: it has no queues or buffer of a switch`);
    const { ecn, pfc } = config.switch;
    const state = this.worker.switchState(0);
    return {
      name: config.name,
      pfc_priorities: pfc.enabled ? pfc.priorities : [],
      ecn: { enabled: ecn.enabled, kmin: ecn.kmin, kmax: ecn.kmax, pmax: ecn.pmax, priorities: ecn.priorities },
      buffer: state.buffer,
      ports: state.ports.map((port, i) => ({ name: config.ports[i]?.name ?? "", ...port })),
    };
  }

  /** @throws WeirError when this is a NIC. */
  forwarding(): FdbEntry[] {
    const { config } = this;
    if (config.kind !== "switch") throw new WeirError(`${config.name} is a NIC: it has no forwarding table`);
    return this.worker.forwardingTable(0).map((entry) => ({
      mac: macText(entry.mac),
      vlan: entry.vlan,
      ports: entry.ports.map((port) => config.ports[port]?.name ?? String(port)),
      kind: entry.learned ? "learned" : "static",
      expires_in_s: entry.expires_in === undefined ? null : entry.expires_in / 1e9,
    }));
  }

  /** @throws WeirError when this is a switch. */
  queuePairs(): QueuePairReport[] {
    const { config } = this;
    if (config.kind !== "nic") throw new WeirError(`${config.name} is a switch: it has no queue pairs`);
    return this.worker.queuePairs(0).map((pair, i) => ({ ...pair, peer: config.queue_pairs[i]?.peer.name ?? "" }));
  }

  /** ns. */
  loopGap(): number {
    return this.worker.worstGap();
  }

  #onDoorbell(): void {
    if (this.closed) return;
    for (;;) {
      const count = this.worker.drainRecords(this.words);
      for (let i = 0; i < count; i++) this.#take(this.words.subarray(i * kRecordWords, (i + 1) * kRecordWords));
      if (count * kRecordWords < this.words.length) break;
    }
    for (const { bytes } of this.worker.drainPunted()) {
      if (!this.answersArp || this.config.kind !== "nic") continue;
      const reply = arpReply(bytes, this.config.address, this.config.port.mac);
      if (reply !== undefined) this.worker.inject(0, 0, reply);
    }
  }

  #take([, kind, , index, value]: Float64Array): void {
    if (kind === RecordKind.port) {
      this.#setPort(index as number, value === 1);
    } else if (kind === RecordKind.ended && value === 1) {
      // outcome() joins the thread, which has ended.
      this.failure = this.worker.outcome().failure ?? "unknown reason";
      this.events.failed(this.failure);
    }
  }

  #setPort(index: number, up: boolean): void {
    const state = this.states[index];
    const port = portsOf(this.config)[index];
    if (state === undefined || port === undefined || state.up === up) return;
    state.up = up;
    state.transitions++;
    if (up) state.recoveries++;
    this.events.port(port.name, up);
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

function macText(mac: number): string {
  return mac
    .toString(16)
    .padStart(12, "0")
    .replace(/..(?!$)/g, "$&:");
}
