/** The network of a daemon, for frames: its device, with others at its ports that are not asked. */
import type { Device } from "../../device/device.js";
import type { DeviceConfig } from "../../device/file/load.js";
import type { Frame } from "../../device/frame.js";
import type { Network } from "../../device/frames.js";
import { kMostFlows, kNetwork } from "./device_session.js";

/** Queues that are shown: the first ones that carried anything. */
const kMostQueues = 64;

/** A counter of frames that a queue has sent: the queue is shown from the first one on. */
interface QueueCounter {
  index: number;
  name: string;
  port: number;
  priority: number;
}

export class DaemonNetwork implements Network {
  readonly run = 0;
  readonly scale = 1;
  readonly tables;
  readonly own: ReadonlySet<string>;
  readonly links;
  readonly flows;
  private readonly kind: DeviceConfig["kind"];
  private readonly shown: QueueCounter[] = [];
  private unused: readonly QueueCounter[];
  private told = 0;

  /** @param ms Time in wall ms. */
  constructor(
    config: DeviceConfig,
    private readonly device: Device,
    private readonly ms: () => number,
  ) {
    const { name } = config;
    this.kind = config.kind;
    this.tables = [device.counted()];
    this.own = new Set([name]);
    const ports = config.kind === "switch" ? config.ports.map((port) => port.name) : [];
    this.links =
      config.kind === "switch" ? ports.map((port) => ({ from: port, to: name })) : [{ from: name, to: kNetwork }];
    const pairs = config.kind === "nic" ? config.queue_pairs.slice(0, kMostFlows) : [];
    this.flows = pairs.map(({ name: id, send }) => {
      const moved = send ? "tx_wire_bytes" : "rx_wire_bytes";
      return { id, moved } as const;
    });
    this.unused = this.tables.flatMap(({ manifest }) =>
      manifest.flatMap(({ name: counter, labels }, index): QueueCounter[] => {
        if (counter !== "queue_packets") return [];
        const { port = "", priority = "" } = labels;
        const queue = `${labels.switch}:${port}:${priority}`;
        return [{ index, name: queue, port: ports.indexOf(port), priority: Number(priority) }];
      }),
    );
    this.#lookForQueues();
    this.told = this.shown.length;
  }

  /** Names of the queues that are shown; they keep their places. */
  get names(): string[] {
    return this.shown.map(({ name }) => name);
  }

  /** Tells whether queues were added since it was last asked. */
  grew(): boolean {
    const before = this.told;
    this.told = this.shown.length;
    return this.told > before;
  }

  now(): number {
    return this.ms() * 1e6;
  }

  look(): void {
    this.device.counted();
    this.#lookForQueues();
  }

  loopGap(): number {
    return this.device.loopGap();
  }

  rates() {
    const pairs = this.kind === "switch" ? [] : this.device.queuePairs().slice(0, kMostFlows);
    return {
      rate: pairs.map(({ rate }) => (rate > 0 ? rate : null)),
      target: pairs.map((pair) => (pair.rate > 0 ? pair.target_rate : null)),
      alpha: pairs.map((pair) => (pair.rate > 0 ? (pair.limited || pair.alpha === null ? pair.alpha : 0) : null)),
    };
  }

  queues(): Pick<Frame, "queues" | "switches"> {
    if (this.kind === "nic") return { queues: { bytes: [], peak: [] }, switches: [] };
    const { buffer, ports } = this.device.switchReport();
    const bytes = this.shown.map(({ port, priority }) => ports[port]?.queue_bytes[priority] ?? 0);
    return {
      queues: { bytes, peak: bytes },
      switches: [{ occupied: buffer.occupied, xoff: Math.max(0, buffer.pfc_threshold) }],
    };
  }

  #lookForQueues(): void {
    if (this.shown.length >= kMostQueues) return;
    const used = this.unused.filter(({ index }) => (this.tables[0]?.value(index) ?? 0) > 0);
    if (used.length === 0) return;
    this.unused = this.unused.filter((queue) => !used.includes(queue));
    this.shown.push(...used.slice(0, kMostQueues - this.shown.length));
  }
}
