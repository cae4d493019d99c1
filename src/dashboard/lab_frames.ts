/** Frames of one run: what its workers count and record, in meant units. */
import { hasAlpha } from "../congestion/flow_state.js";
import type { LabAccess } from "../lab/access.js";
import type { CounterDescription } from "../native/types.js";
import { switchPorts } from "../scenario/topology.js";
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

/** Switches that are asked for a frame: each question makes their thread stop for a moment. The others keep what they said. */
const kMostAsked = 8;

/** What each end of each link sends, by "device:peer". */
type Sides = ReadonlyMap<string, { sent: Direction; marks: Tally }>;

interface LinkTallies {
  forward: Direction;
  backward: Direction;
  marks: Tally;
}

interface QueueView {
  name: string;
  /** Where a switch's state has it. */
  device: number;
  port: number;
  priority: number;
  /** How many of the recorder's samples have been looked at. */
  seen: number;
}

export class LabFrames {
  private readonly growth: readonly Growth[];
  private readonly events = new EventTallies();
  private readonly links: readonly LinkTallies[];
  /** Of each flow: link bytes that arrived. */
  private readonly arrived: ReadonlyMap<string, Tally>;
  /** Of each host the device that it is linked to. */
  private readonly peers: ReadonlyMap<string, string>;
  private readonly queues: readonly QueueView[];
  private readonly lengths: number[];
  private readonly occupancy: Frame["switches"];
  private nextSwitch = 0;
  /** Meant ns. */
  private last: number;

  /** Counts from now on; the lab's devices live. */
  constructor(
    private readonly lab: LabAccess,
    private readonly run: number,
    queues: readonly string[],
  ) {
    const { scenario } = lab;
    this.links = scenario.links.map(() => ({ forward: direction(), backward: direction(), marks: tally() }));
    this.arrived = new Map(scenario.flows.map(({ id }) => [id, tally()]));
    const ends = scenario.links.flatMap(({ from, to }) => [
      [from, to],
      [to, from],
    ]) as [string, string][];
    this.peers = new Map(ends);
    this.occupancy = scenario.switches.map(() => ({ occupied: 0, xoff: 0 }));
    this.lengths = queues.map(() => 0);
    const ports = [...switchPorts(scenario)];
    this.queues = queues.map((name) => {
      const [device, peer, priority] = name.split(":");
      const index = ports.findIndex(([other]) => other === device);
      const port = ports[index]?.[1].findIndex((candidate) => candidate.peer === peer) ?? -1;
      const seen = lab.recorder.queues.get(name)?.bytes.length ?? 0;
      return { name, device: index, port, priority: Number(priority), seen };
    });
    const sides = this.#sides();
    this.growth = [
      new Growth(lab.switches.counters, (counter) => this.#ofSwitch(counter, sides)),
      new Growth(lab.nics.counters, (counter) => this.#ofNic(counter, sides)),
    ];
    this.last = Math.round(lab.now());
  }

  /** Everything since the one before. The counters have just been read. */
  take(): Frame {
    const { lab } = this;
    const since_ns = this.last;
    const t_ns = Math.max(since_ns + 1, Math.round(lab.now()));
    this.last = t_ns;
    for (const growth of this.growth) growth.take();
    this.#askSwitches();
    // Meant bits per second.
    const rate = (bytes: Tally) => Math.round(bitRate(bytes) * lab.scale);
    return {
      run: this.run,
      since_ns,
      t_ns,
      flows: this.#flows(rate),
      queues: this.#queues(),
      switches: this.occupancy,
      links: this.links.map(({ forward, backward, marks }) => ({
        forward_bps: rate(forward.bytes),
        backward_bps: rate(backward.bytes),
        forward_pauses: forward.pauses.grown,
        backward_pauses: backward.pauses.grown,
        marks: marks.grown,
      })),
      events: this.events.grown(),
      loop_gap_max_us: Math.max(lab.switches.worker.worstGap(), lab.nics.worker.worstGap()) / 1000,
    };
  }

  #flows(rate: (tally: Tally) => number): Frame["flows"] {
    const { scenario, recorder } = this.lab;
    const estimates = hasAlpha(scenario.congestion.algorithm);
    const flows: Frame["flows"] = { rate: [], target: [], alpha: [], throughput: [] };
    for (const { id } of scenario.flows) {
      const samples = recorder.flows.get(id);
      const sends = (samples?.rate.at(-1) ?? 0) > 0;
      flows.rate.push(sends ? (samples?.rate.at(-1) ?? null) : null);
      flows.target.push(sends ? (samples?.target.at(-1) ?? null) : null);
      flows.alpha.push(sends && estimates ? (samples?.alpha.at(-1) ?? null) : null);
      flows.throughput.push(rate(this.arrived.get(id) ?? tally()));
    }
    return flows;
  }

  /** Peaks of queues that are sampled are those of the samples, which miss none. */
  #queues(): Frame["queues"] {
    const peak = this.queues.map((queue, i) => {
      const samples = this.lab.recorder.queues.get(queue.name);
      let most = this.lengths[i] as number;
      if (samples === undefined) return most;
      for (; queue.seen < samples.peak.length; queue.seen++) most = Math.max(most, samples.peak[queue.seen] as number);
      return most;
    });
    return { bytes: [...this.lengths], peak };
  }

  /** Lengths of queues at switches that are not asked now are those of the last sample. */
  #askSwitches(): void {
    const { recorder, switches } = this.lab;
    this.queues.forEach(({ name }, i) => {
      this.lengths[i] = recorder.queues.get(name)?.bytes.at(-1) ?? (this.lengths[i] as number);
    });
    const count = this.occupancy.length;
    for (let asked = 0; asked < Math.min(kMostAsked, count); asked++) {
      const device = this.nextSwitch++ % count;
      const { buffer, ports } = switches.worker.switchState(device);
      this.occupancy[device] = { occupied: buffer.occupied, xoff: Math.max(0, buffer.pfc_threshold) };
      this.queues.forEach((queue, i) => {
        if (queue.device === device) this.lengths[i] = ports[queue.port]?.queue_bytes[queue.priority] ?? 0;
      });
    }
  }

  #sides(): Sides {
    return new Map(
      this.lab.scenario.links.flatMap(({ from, to }, i) => {
        const { forward, backward, marks } = this.links[i] as LinkTallies;
        return [
          [`${from}:${to}`, { sent: forward, marks }],
          [`${to}:${from}`, { sent: backward, marks }],
        ] as const;
      }),
    );
  }

  #ofSwitch(counter: CounterDescription, sides: Sides): readonly Share[] {
    const { name, labels } = counter;
    const side = sides.get(`${labels.switch ?? labels.device}:${labels.port}`);
    const events = switchEvent(counter, this.events);
    if (side === undefined) return events;
    if (name === "wred_ecn_marked_packets") return [...events, [side.marks, 1]];
    return [...events, ...directionShares(name, "tx", side.sent)];
  }

  #ofNic(counter: CounterDescription, sides: Sides): readonly Share[] {
    const { name, labels } = counter;
    const peer = this.peers.get(labels.device ?? "") ?? "";
    const events = nicEvent(counter, peer, this.events);
    if (labels.qpn !== undefined) {
      const arrived = name === "rx_wire_bytes" ? this.arrived.get(labels.flow ?? "") : undefined;
      return arrived === undefined ? events : [...events, [arrived, 1]];
    }
    const side = sides.get(`${labels.device}:${peer}`);
    return side === undefined ? events : [...events, ...directionShares(name, "tx", side.sent)];
  }
}
