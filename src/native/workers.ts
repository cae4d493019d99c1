/** The threads of one device seen as one worker. */
import {
  type CounterDescription,
  kRecordWords,
  type NativeAddon,
  type NativeWorker,
  type NeighborEntry,
  type PuntedFrame,
  type SwitchState,
  type WorkerConfig,
} from "./types.js";

/** The part of a NIC's worker that programs of this host need. */
export type ProgramWorker = Pick<
  NativeWorker,
  | "openProgram"
  | "closeProgram"
  | "lendPath"
  | "tellPrograms"
  | "createQueuePair"
  | "modifyQueuePair"
  | "destroyQueuePair"
  | "createAddressHandle"
  | "destroyAddressHandle"
  | "attachGroup"
  | "detachGroup"
  | "resolve"
>;

/** The NIC at `device` of a worker with several, as that of a worker with one. */
export function programWorker(worker: ProgramWorker, device: number): ProgramWorker {
  return {
    openProgram: () => worker.openProgram(device),
    closeProgram: (_, number) => worker.closeProgram(device, number),
    lendPath: (_, number) => worker.lendPath(device, number),
    tellPrograms: (_, gids, pathMtu) => worker.tellPrograms(device, gids, pathMtu),
    createQueuePair: (_, options) => worker.createQueuePair(device, options),
    modifyQueuePair: (_, qpn, change) => worker.modifyQueuePair(device, qpn, change),
    destroyQueuePair: (_, qpn) => worker.destroyQueuePair(device, qpn),
    createAddressHandle: (_, path) => worker.createAddressHandle(device, path),
    destroyAddressHandle: (_, handle) => worker.destroyAddressHandle(device, handle),
    attachGroup: (_, qpn, group) => worker.attachGroup(device, qpn, group),
    detachGroup: (_, qpn, group) => worker.detachGroup(device, qpn, group),
    resolve: (_, own, address) => worker.resolve(device, own, address),
  };
}

/** The part of a worker that captures need of a port, and that of faults. */
export type PortWorker = Pick<NativeWorker, "attach" | "detach">;
export type FaultWorker = Pick<NativeWorker, "addFault" | "endFault" | "faults">;

/** Each worker of a switch knows all of its ports, and has the queues and counters of its own. */
export class DeviceWorkers {
  private readonly workers: readonly [NativeWorker, ...NativeWorker[]];
  private sizes: number[] = [];

  /**
   * @param configs One, or those of one switch's workers, which differ in name, CPU and polling only.
   * @param owner The worker of each port of that switch, by its position in `configs`.
   */
  constructor(
    addon: NativeAddon,
    configs: readonly WorkerConfig[],
    private readonly owner: readonly number[],
    onDoorbell: () => void,
  ) {
    const [first, ...others] = configs;
    if (first === undefined) throw new RangeError("a device has at least one worker");
    const shared = others.length > 0 && { shared: new addon.SharedSwitch(first, [...owner], configs.length) };
    const worker = (config: WorkerConfig, share: number) =>
      new addon.Worker({ ...config, ...(shared && { ...shared, share }) }, onDoorbell);
    this.workers = [worker(first, 0), ...others.map((config, i) => worker(config, i + 1))];
  }

  open(): void {
    for (const worker of this.workers) worker.open();
  }

  begin(at: number): void {
    for (const worker of this.workers) worker.begin(at);
  }

  stopTraffic(): void {
    for (const worker of this.workers) worker.stopTraffic();
  }

  /** All threads end before what they share is given up. */
  close(): void {
    for (const worker of this.workers) worker.stop();
    for (const worker of this.workers) worker.close();
  }

  manifest(): CounterDescription[] | undefined {
    const parts = this.workers.map((worker) => worker.manifest());
    if (parts.includes(undefined)) return undefined;
    this.sizes = parts.map((part) => part?.length ?? 0);
    return parts.flatMap((part) => part ?? []);
  }

  readCounters(target: Float64Array): number {
    let at = 0;
    const times = this.workers.map((worker, i) => {
      const begin = at;
      at += this.sizes[i] ?? 0;
      return worker.readCounters(target.subarray(begin, at));
    });
    return Math.min(...times);
  }

  drainRecords(target: Float64Array): number {
    let count = 0;
    for (const worker of this.workers) count += worker.drainRecords(target.subarray(count * kRecordWords));
    return count;
  }

  drainPunted(): PuntedFrame[] {
    return this.workers.flatMap((worker) => worker.drainPunted());
  }

  inject(device: number, port: number, bytes: Uint8Array): boolean {
    return this.ofPort(port).inject(device, port, bytes);
  }

  /** Changes all workers at one moment, or none. */
  reconfigure(config: WorkerConfig): void {
    const [first, ...others] = this.workers;
    first.reconfigure(config, others);
  }

  forwardingTable(index: number) {
    return this.workers[0].forwardingTable(index);
  }

  /**
   * Each worker of a router has a table of its own: an address that any of them knows counts, and so do packets that wait at all of them.
   */
  neighbors(index: number): NeighborEntry[] {
    const [first, ...others] = this.workers.map((worker) => worker.neighbors(index));
    const merged = new Map((first ?? []).map((entry) => [`${entry.interface} ${entry.address}`, entry]));
    for (const entry of others.flat()) {
      const key = `${entry.interface} ${entry.address}`;
      const other = merged.get(key);
      const known = other === undefined || (other.state === "incomplete" && entry.state !== "incomplete");
      merged.set(key, { ...(known ? entry : other), waits: entry.waits + (other?.waits ?? 0) });
    }
    return [...merged.values()];
  }

  forwardingEntries(index: number): number {
    return this.workers[0].forwardingEntries(index);
  }

  switchState(index: number): SwitchState {
    const states = this.workers.map((worker) => worker.switchState(index));
    const [{ buffer }] = states as [SwitchState];
    // Each worker has seen the buffer when frames came in at its own ports.
    const watermark = Math.max(...states.map((state) => state.buffer.watermark));
    return {
      buffer: { ...buffer, watermark },
      ports: this.owner.map((share, port) => (states[share] as SwitchState).ports[port] as never),
    };
  }

  queuePairs(index: number) {
    return this.workers[0].queuePairs(index);
  }

  programs(index: number) {
    return this.workers[0].programs(index);
  }

  histograms() {
    return this.workers.flatMap((worker) => worker.histograms());
  }

  worstGap(): number {
    return Math.max(...this.workers.map((worker) => worker.worstGap()));
  }

  recentGap(): number {
    return Math.max(...this.workers.map((worker) => worker.recentGap()));
  }

  /** The gaps are those of the worker that had the longest. */
  outcome() {
    const outcomes = this.workers.map((worker) => worker.outcome());
    const failure = outcomes.find((outcome) => outcome.failure !== undefined)?.failure;
    const gaps = outcomes.map(({ loop_gap }) => loop_gap);
    return {
      host_drops: outcomes.reduce((sum, { host_drops }) => sum + host_drops, 0),
      loop_gap: gaps.reduce((worst, gap) => (gap.max > worst.max ? gap : worst)),
      tuning: [...new Set(outcomes.flatMap(({ tuning }) => tuning))],
      ...(failure !== undefined && { failure }),
    };
  }

  forPrograms(): ProgramWorker {
    return this.workers[0];
  }

  ofPort(port: number): NativeWorker {
    return this.workers[this.owner[port] ?? 0] ?? this.workers[0];
  }
}
