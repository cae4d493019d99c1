/** Frames of a daemon: what its device counts, and what it says of its queues or queue pairs. */

import type { Device } from "../device/device.js";
import type { DeviceConfig } from "../device/file/load.js";
import type { CounterTable } from "../native/counters.js";
import type { CounterDescription } from "../native/types.js";
import { kMostFlows, kNetwork } from "./device_session.js";
import {
  bitRate,
  type Direction,
  direction,
  directionShares,
  EventTallies,
  Growth,
  nicEvent,
  type Share,
  switchEvent,
  type Tally,
  tally,
} from "./growth.js";
import type { Frame } from "./protocol.js";

/** Queues that are shown: the first ones that carried anything. */
const kMostQueues = 64;
const kNone: Frame["flows"] = { rate: [], target: [], alpha: [], throughput: [] };

interface LinkTallies {
  forward: Direction;
  backward: Direction;
  marks: Tally;
}

interface ShownQueue {
  name: string;
  port: number;
  priority: number;
}

/** A counter of frames that a queue has sent: the queue is shown from the first one on. */
interface QueueCounter extends ShownQueue {
  index: number;
}

export class DeviceFrames {
  private readonly table: CounterTable;
  private readonly growth: Growth;
  private readonly events = new EventTallies();
  private readonly links: ReadonlyMap<string, LinkTallies>;
  /** Of each queue pair: link bytes that it sent, or received if it is there to receive. */
  private readonly moved: ReadonlyMap<string, { counter: "tx_wire_bytes" | "rx_wire_bytes"; bytes: Tally }>;
  private readonly shown: ShownQueue[] = [];
  private unused: QueueCounter[];
  private told = 0;
  /** ns. */
  private last: number;

  /** Counts from now on. @param now Wall ms. */
  constructor(
    private readonly config: DeviceConfig,
    private readonly device: Device,
    private readonly now: () => number,
  ) {
    const names = config.kind === "switch" ? config.ports.map(({ name }) => name) : [kNetwork];
    this.links = new Map(names.map((name) => [name, { forward: direction(), backward: direction(), marks: tally() }]));
    const pairs = config.kind === "nic" ? config.queue_pairs.slice(0, kMostFlows) : [];
    this.moved = new Map(
      pairs.map(({ name, send }) => [name, { counter: send ? "tx_wire_bytes" : "rx_wire_bytes", bytes: tally() }]),
    );
    this.table = device.counted();
    this.growth = new Growth(this.table, (counter) =>
      config.kind === "switch" ? this.#ofSwitch(counter) : this.#ofNic(counter),
    );
    this.unused = config.kind === "switch" ? this.#queueCounters(names) : [];
    this.#lookForQueues();
    this.told = this.shown.length;
    this.last = Math.round(now() * 1e6);
  }

  /** Names of the queues that are shown; they keep their places. */
  get queues(): string[] {
    return this.shown.map(({ name }) => name);
  }

  /** Whether queues were added since it was last asked. */
  grew(): boolean {
    const before = this.told;
    this.told = this.shown.length;
    return this.told > before;
  }

  /** Everything since the one before. */
  take(): Frame {
    const { device } = this;
    device.counted();
    const since_ns = this.last;
    const t_ns = Math.max(since_ns + 1, Math.round(this.now() * 1e6));
    this.last = t_ns;
    this.growth.take();
    this.#lookForQueues();
    const nic = this.config.kind === "nic";
    const { queues, switches } = nic ? { queues: { bytes: [], peak: [] }, switches: [] } : this.#queues();
    return {
      run: 0,
      since_ns,
      t_ns,
      flows: nic ? this.#flows() : kNone,
      queues,
      switches,
      links: [...this.links.values()].map(({ forward, backward, marks }) => ({
        forward_bps: bitRate(forward.bytes),
        backward_bps: bitRate(backward.bytes),
        forward_pauses: forward.pauses.grown,
        backward_pauses: backward.pauses.grown,
        marks: marks.grown,
      })),
      events: this.events.grown(),
      loop_gap_max_us: device.loopGap() / 1000,
    };
  }

  #queues(): Pick<Frame, "queues" | "switches"> {
    const { buffer, ports } = this.device.switchReport();
    const bytes = this.shown.map(({ port, priority }) => ports[port]?.queue_bytes[priority] ?? 0);
    return {
      queues: { bytes, peak: bytes },
      switches: [{ occupied: buffer.occupied, xoff: Math.max(0, buffer.pfc_threshold) }],
    };
  }

  #flows(): Frame["flows"] {
    const pairs = this.device.queuePairs().slice(0, kMostFlows);
    const sends = (value: number) => (value > 0 ? value : null);
    return {
      rate: pairs.map((pair) => sends(pair.rate)),
      target: pairs.map((pair) => (pair.rate > 0 ? pair.target_rate : null)),
      alpha: pairs.map((pair) => (pair.rate > 0 ? (pair.limited || pair.alpha === null ? pair.alpha : 0) : null)),
      throughput: pairs.map(({ name }) => bitRate(this.moved.get(name)?.bytes ?? tally())),
    };
  }

  /** Of a link "forward" is into the switch. */
  #ofSwitch(counter: CounterDescription): readonly Share[] {
    const { name, labels } = counter;
    const events = switchEvent(counter, this.events);
    const link = this.links.get(labels.port ?? "");
    if (link === undefined) return events;
    if (name === "wred_ecn_marked_packets") return [...events, [link.marks, 1]];
    return [...events, ...directionShares(name, "rx", link.forward), ...directionShares(name, "tx", link.backward)];
  }

  #ofNic(counter: CounterDescription): readonly Share[] {
    const { name, labels } = counter;
    const events = [...nicEvent(counter, kNetwork, this.events), ...this.#heard(counter)];
    if (labels.qpn !== undefined) {
      const moved = this.moved.get(labels.flow ?? "");
      return moved?.counter === name ? [...events, [moved.bytes, 1]] : events;
    }
    const link = this.links.get(kNetwork);
    if (link === undefined) return events;
    return [...events, ...directionShares(name, "tx", link.forward), ...directionShares(name, "rx", link.backward)];
  }

  /** What others have sent, which in a lab they count themselves. */
  #heard({ name, labels }: CounterDescription): readonly Share[] {
    const { device, priority, flow, qpn } = labels;
    if (qpn !== undefined) return name === "cnp_handled" ? [[this.events.of("cnp", flow ?? ""), 1]] : [];
    if (name !== "rx_prio_pause") return [];
    return [[this.events.of("pfc", `${kNetwork}:${device}:${priority}`), 1]];
  }

  #queueCounters(ports: readonly string[]): QueueCounter[] {
    return this.table.manifest.flatMap(({ name, labels }, index): QueueCounter[] => {
      if (name !== "queue_packets") return [];
      const { port = "", priority = "" } = labels;
      const queue = `${labels.switch}:${port}:${priority}`;
      return [{ index, name: queue, port: ports.indexOf(port), priority: Number(priority) }];
    });
  }

  #lookForQueues(): void {
    if (this.shown.length >= kMostQueues) return;
    const used = this.unused.filter(({ index }) => this.table.value(index) > 0);
    if (used.length === 0) return;
    this.unused = this.unused.filter((queue) => !used.includes(queue));
    this.shown.push(...used.slice(0, kMostQueues - this.shown.length));
  }
}
