/** The network of a lab's run, for frames: counts and records of its workers, in meant units. */

import type { LabAccess } from "../../clocks/lab/access.js";
import { hasAlpha, hasWindow } from "../../congestion/flow_state.js";
import type { Frame } from "../../device/frame.js";
import type { Network } from "../../device/frames.js";
import { switchPorts } from "../../scenario/topology.js";

/** Switches that are asked for a frame: each question makes their thread stop for a moment. The others keep what they said. */
const kMostAsked = 8;

interface QueueView {
  name: string;
  /** Place of the queue in a switch's state. */
  device: number;
  port: number;
  priority: number;
  /** Number of the recorder's samples that have been looked at. */
  seen: number;
}

export class LabNetwork implements Network {
  readonly scale: number;
  readonly tables;
  readonly own: ReadonlySet<string>;
  readonly links;
  readonly flows;
  private readonly views: readonly QueueView[];
  private readonly lengths: number[];
  private readonly occupancy: Frame["switches"];
  private nextSwitch = 0;

  /** Expects the lab's devices to live. @param queues Queues that are shown. */
  constructor(
    private readonly lab: LabAccess,
    readonly run: number,
    queues: readonly string[],
  ) {
    const { scenario, recorder } = lab;
    this.scale = lab.scale;
    this.tables = [lab.switches.counters, lab.nics.counters];
    this.own = new Set([...scenario.switches, ...scenario.hosts].map(({ name }) => name));
    this.links = scenario.links;
    this.flows = scenario.flows.map(({ id }) => ({ id, moved: "rx_wire_bytes" as const }));
    this.occupancy = scenario.switches.map(() => ({ occupied: 0, xoff: 0 }));
    this.lengths = queues.map(() => 0);
    const ports = [...switchPorts(scenario)];
    this.views = queues.map((name) => {
      const [device, peer, priority] = name.split(":");
      const index = ports.findIndex(([other]) => other === device);
      const port = ports[index]?.[1].findIndex((candidate) => candidate.peer === peer) ?? -1;
      const seen = recorder.queues.get(name)?.bytes.length ?? 0;
      return { name, device: index, port, priority: Number(priority), seen };
    });
  }

  now(): number {
    return this.lab.now();
  }

  /** There is nothing to read: the lab has just done so. */
  look(): void {}

  loopGap(): number {
    const { switches, nics } = this.lab;
    return Math.max(switches.worker.worstGap(), nics.worker.worstGap());
  }

  rates() {
    const { scenario, recorder } = this.lab;
    const { algorithm } = scenario.congestion;
    const estimates = hasAlpha(algorithm);
    const all = scenario.flows.map(({ id }) => {
      const samples = recorder.flows.get(id);
      const rate = samples?.rate.at(-1) ?? 0;
      if (rate <= 0) return { rate: null, target: null, alpha: null };
      const alpha = estimates ? (samples?.alpha.at(-1) ?? null) : null;
      // The rate of a flow that a window holds is mostly the line's, which tells nothing.
      if (hasWindow(algorithm)) return { rate: null, target: null, alpha };
      return { rate, target: samples?.target.at(-1) ?? null, alpha };
    });
    return {
      rate: all.map(({ rate }) => rate),
      target: all.map(({ target }) => target),
      alpha: all.map(({ alpha }) => alpha),
    };
  }

  /** Peaks of queues that are sampled are those of the samples, which miss none. */
  queues(): Pick<Frame, "queues" | "switches"> {
    this.#askSwitches();
    const peak = this.views.map((queue, i) => {
      const samples = this.lab.recorder.queues.get(queue.name);
      let most = this.lengths[i] as number;
      if (samples === undefined) return most;
      for (; queue.seen < samples.peak.length; queue.seen++) most = Math.max(most, samples.peak[queue.seen] as number);
      return most;
    });
    return { queues: { bytes: [...this.lengths], peak }, switches: this.occupancy };
  }

  /** Lengths of queues at switches that are not asked now are those of the last sample. */
  #askSwitches(): void {
    const { recorder, switches } = this.lab;
    this.views.forEach(({ name }, i) => {
      this.lengths[i] = recorder.queues.get(name)?.bytes.at(-1) ?? (this.lengths[i] as number);
    });
    const count = this.occupancy.length;
    for (let asked = 0; asked < Math.min(kMostAsked, count); asked++) {
      const device = this.nextSwitch++ % count;
      const { buffer, ports } = switches.worker.switchState(device);
      this.occupancy[device] = { occupied: buffer.occupied, xoff: Math.max(0, buffer.pfc_threshold) };
      this.views.forEach((queue, i) => {
        if (queue.device === device) this.lengths[i] = ports[queue.port]?.queue_bytes[queue.priority] ?? 0;
      });
    }
  }
}
