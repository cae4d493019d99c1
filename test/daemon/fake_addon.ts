/** A native core that does as told, and remembers what was asked of it. */

import { openSync } from "node:fs";
import { vi } from "vitest";
import type { NamedHistogram } from "../../src/native/histogram.js";
import type {
  CaptureConfig,
  CaptureCounts,
  CounterDescription,
  FaultState,
  InterfaceProbe,
  NativeAddon,
  NativeCapture,
  NativeWorker,
  NeighborEntry,
  QueuePairState,
  SwitchState,
  WorkerConfig,
  WorkerOutcome,
} from "../../src/native/types.js";
import { kRecordWords, RecordKind } from "../../src/native/types.js";
import { describedAs } from "../native/counters.js";
import { histogramOf } from "../native/histograms.js";
import { kVeth } from "./probes.js";

const zeros = [0, 0, 0, 0, 0, 0, 0, 0];

/** Holds what a test puts into it. */
export class FakeCapture implements NativeCapture {
  readonly waiting: Buffer[] = [];
  readonly of: CaptureCounts[];

  constructor(readonly config: CaptureConfig) {
    this.of = Array.from({ length: config.taps }, () => ({ seen: 0, captured: 0, dropped: 0 }));
  }
  drain(target: Uint8Array): number {
    const next = this.waiting.shift();
    if (next === undefined) return 0;
    target.set(next);
    return next.length;
  }
  counts(): CaptureCounts[] {
    return this.of;
  }
}

export class FakeWorker implements NativeWorker {
  readonly calls: string[] = [];
  readonly injected: Uint8Array[] = [];
  configs: WorkerConfig[];
  counters: [CounterDescription, number][];
  queued = 0;
  failure: string | undefined;
  refuse: Error | undefined;
  punted: Buffer[] = [];
  /** True while its devices do not live yet. */
  starting = () => false;
  queuePairState: QueuePairState["state"] = "ready";
  private records: number[][] = [];

  constructor(
    config: WorkerConfig,
    private readonly doorbell: (() => void) | undefined,
  ) {
    this.configs = [config];
    const describe = (name: string, labels: Record<string, string>): [CounterDescription, number] => [
      describedAs(name, labels),
      0,
    ];
    this.counters = [
      ...config.switches.flatMap(({ name, ports }) =>
        ports.map((port) => describe("rx_packets", { switch: name, port: port.name })),
      ),
      ...config.nics.map(({ name }) => describe("tx_packets", { device: name })),
      ...config.switches.flatMap(({ name, ports }) =>
        ports.map((port) => describe("rx_pfc_frames", { switch: name, port: port.name })),
      ),
      ...config.nics.map(({ name }) => describe("rx_pfc_frames", { device: name })),
    ];
  }

  readonly registerMemory = unasked;
  readonly deregisterMemory = unasked;
  programs() {
    return [];
  }
  readonly openProgram = unasked;
  readonly closeProgram = unasked;
  readonly lendPath = unasked;
  readonly tellPrograms = unasked;
  readonly createQueuePair = unasked;
  readonly destroyQueuePair = unasked;
  readonly modifyQueuePair = unasked;
  readonly createAddressHandle = unasked;
  readonly destroyAddressHandle = unasked;
  readonly attachGroup = unasked;
  readonly detachGroup = unasked;
  readonly resolve = unasked;
  readonly post = unasked;
  readonly drainCompletions = unasked;
  readonly progress = unasked;
  readonly rest = unasked;

  /** Writes a record and rings the doorbell, as the worker's thread does. */
  record(kind: number, index: number, ...values: number[]): void {
    this.records.push([0, kind, 0, index, ...values, ...Array(4 - values.length).fill(0)]);
    this.doorbell?.();
  }
  port(index: number, up: boolean, mtu = 0, reopened = false): void {
    this.record(RecordKind.port, index, up ? 1 : 0, mtu, reopened ? 1 : 0);
  }
  stall(index: number, tx: boolean, rx: boolean, fallsBack = false): void {
    this.record(RecordKind.stall, index, tx ? 1 : 0, rx ? 1 : 0, fallsBack ? 1 : 0);
  }
  queues(index: number, receive: number, rx: boolean, tx: boolean): void {
    this.record(RecordKind.queues, index, receive, rx ? 1 : 0, tx ? 1 : 0);
  }
  fail(reason: string): void {
    this.failure = reason;
    this.record(RecordKind.ended, 0, 1);
  }
  punt(frame: Buffer): void {
    this.punted.push(frame);
    this.doorbell?.();
  }
  count(index: number, value: number): void {
    const counter = this.counters[index];
    if (counter !== undefined) counter[1] = value;
  }

  open(): void {
    this.calls.push("open");
    if (this.refuse !== undefined) throw this.refuse;
  }
  begin(): void {
    this.calls.push("begin");
  }
  stopTraffic(): boolean {
    this.calls.push("stopTraffic");
    return true;
  }
  stop(): void {
    this.calls.push("stop");
  }
  close(): void {
    this.calls.push("close");
  }
  /** Time of the counters, ns. */
  publishedAt = 0;
  manifest() {
    if (this.starting()) return undefined;
    return this.counters.map(([description]) => description);
  }
  readCounters(target: Float64Array): number {
    this.counters.forEach(([, value], i) => {
      target[i] = value;
    });
    return this.publishedAt;
  }
  drainRecords(target: Float64Array): number {
    const taken = this.records.splice(0, target.length / kRecordWords);
    target.set(taken.flat());
    return taken.length;
  }
  drainPunted() {
    return this.punted.splice(0).map((bytes) => ({ device: 0, port: 0, at: 0, bytes }));
  }
  inject(_device: number, _port: number, bytes: Uint8Array): boolean {
    this.injected.push(bytes);
    return true;
  }
  reconfigure(config: WorkerConfig, others: readonly NativeWorker[] = []): void {
    for (const worker of [this, ...(others as FakeWorker[])]) {
      worker.calls.push(worker === this ? "reconfigure" : "reconfigure with another");
      worker.configs.push(config);
    }
  }
  neighbors(): NeighborEntry[] {
    return [];
  }

  forwardingTable() {
    return [{ mac: 0x02_00_00_00_00_01, vlan: 0, ports: [0], learned: true, expires_in: 12e9 }];
  }
  forwardingEntries() {
    return 1;
  }
  switchState(): SwitchState {
    this.calls.push("switchState");
    // Half of what is queued leaves between two looks.
    this.queued = Math.floor(this.queued / 2);
    const port = { up: true, queue_bytes: zeros.with(3, this.queued), ingress_bytes: zeros, headroom_bytes: zeros };
    return {
      buffer: { total: 12e6, shared: 11e6, occupied: this.queued, watermark: this.queued, pfc_threshold: 10e6 },
      ports: (this.configs[0]?.switches[0]?.ports ?? []).map(() => ({ ...port, paused: 0, pausing: 0, pfc_storms: 0 })),
    };
  }
  queuePairs(): QueuePairState[] {
    const [nic] = this.configs[0]?.nics ?? [];
    return (nic?.queue_pairs ?? []).map(({ name, remote_qpn }, i) => ({
      name,
      qpn: (nic?.first_qpn ?? 0) + i,
      remote_qpn,
      state: this.queuePairState,
      connecting: false,
      limited: true,
      rate: 4e8,
      target_rate: 5e8,
      alpha: 0.25,
      window: 0,
      stage: "fast_recovery",
      transport: "stream",
      priority: 3,
      program: 0,
      direct: false,
    }));
  }
  /** Captures with the places that they were given; a detached one is gone. */
  readonly attached = new Map<FakeCapture, { tap: number; device: number; port: number }[]>();
  addFault(): number {
    return 1;
  }
  endFault(): boolean {
    return true;
  }
  faults(): FaultState[] {
    return [];
  }
  attach(capture: NativeCapture, places: { tap: number; device: number; port: number }[]): void {
    this.attached.set(capture as FakeCapture, places);
  }
  detach(capture: NativeCapture): void {
    this.attached.delete(capture as FakeCapture);
  }
  histograms(): NamedHistogram[] {
    return [];
  }
  worstGap(): number {
    return 1e6;
  }
  gap = 1e6;
  recentGap(): number {
    return this.gap;
  }
  operationsEnded(): number {
    return 0;
  }
  operations() {
    return { started: new Float64Array(), ended: new Float64Array(), taken: new Uint32Array() };
  }
  outcome(): WorkerOutcome {
    const none = histogramOf();
    return {
      loop_gap: none,
      longest_gap_at: 0,
      timer_lateness: none,
      busy: 0,
      cpu_wait: 0,
      real_time: false,
      host_drops: 0,
      record_overflow: 0,
      punt_refused: 0,
      inject_refused: 0,
      tuning: [],
      ...(this.failure !== undefined && { failure: this.failure }),
      queues: [],
    };
  }
}

/** Stands for functions that only applications ask for. */
const unasked = (): never => {
  throw new Error("not for daemons");
};

export class FakeAddon implements NativeAddon {
  readonly notified: string[] = [];
  readonly workers: FakeWorker[] = [];
  /** Workers take their time to start. */
  slow = false;
  /** Thrown by open() of all workers, or of those for which `refuses` says so. */
  refuse: Error | undefined;
  refuses: (config: WorkerConfig) => boolean = () => true;
  /** Called for each worker that is made. */
  prepare: (worker: FakeWorker) => void = () => {};
  readonly Worker: NativeAddon["Worker"];
  readonly SharedSwitch = class {} as NativeAddon["SharedSwitch"];

  constructor() {
    const { workers } = this;
    const slow = () => this.slow;
    const prepare = (worker: FakeWorker) => this.prepare(worker);
    const refusal = (config: WorkerConfig) => (this.refuses(config) ? this.refuse : undefined);
    this.Worker = class extends FakeWorker {
      constructor(config: WorkerConfig, onDoorbell?: () => void) {
        super(config, onDoorbell);
        this.refuse = refusal(config);
        this.starting = slow;
        prepare(this);
        workers.push(this);
      }
    };
  }

  get worker(): FakeWorker {
    const worker = this.workers.at(-1);
    if (worker === undefined) throw new Error("no worker was made");
    return worker;
  }

  readonly Capture: NativeAddon["Capture"] = FakeCapture;
  readonly DaemonNic = unasked as unknown as NativeAddon["DaemonNic"];
  readonly peerCredentials = unasked;
  readonly takeDescriptor = unasked;
  readonly programRequestBytes = unasked;
  readonly mostPrograms = unasked;
  readonly readProgramRequest = unasked;
  readonly answerProgram = unasked;
  readonly Memory = unasked as unknown as NativeAddon["Memory"];
  /** Probe of every interface; an Error is thrown. */
  probe: InterfaceProbe | Error = kVeth;
  readonly probed: (string | undefined)[][] = [];
  probeInterface(name: string, namespacePath?: string): InterfaceProbe {
    this.probed.push([name, namespacePath]);
    if (this.probe instanceof Error) throw this.probe;
    return this.probe;
  }
  readonly held: string[] = [];
  holdUdpPort(address: string): number {
    this.held.push(address);
    return openSync("/dev/null", "r");
  }
  readonly openSocket = vi.fn<NativeAddon["openSocket"]>();
  readonly openRouteWatch = vi.fn<NativeAddon["openRouteWatch"]>();
  readonly openAddressWatch = vi.fn<NativeAddon["openAddressWatch"]>();
  readonly takeRouteNews = vi.fn<NativeAddon["takeRouteNews"]>();
  readonly openTcpSocket = vi.fn<NativeAddon["openTcpSocket"]>();
  readonly tcpInfo = vi.fn<NativeAddon["tcpInfo"]>();
  readonly limitCapabilities = vi.fn<NativeAddon["limitCapabilities"]>();

  notify(_path: string, state: string): boolean {
    this.notified.push(state);
    return true;
  }
  now = 5e9;
  monotonicNow(): number {
    return this.now;
  }
}
