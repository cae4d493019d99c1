/** Events at some devices since they were last looked at: those of a lab, or the one of a daemon. */
import { type CounterTable, kLosses, reasonOf } from "../native/counters.js";
import type { CounterDescription } from "../native/types.js";
import type { Frame, FrameEvent } from "./frame.js";
import { bitRate, Growth, type Share, type Tally, tally } from "./growth.js";

/** Devices, the links between them, and facts that only the process knows that runs them. */
export interface Network {
  /** Id of the run; 0 of daemons. */
  readonly run: number;
  /** Wall time = meant time * scale. */
  readonly scale: number;
  /** Counters of all of its workers; they have manifests. */
  readonly tables: readonly CounterTable[];
  /** Devices of the workers. Both directions of a link to another device are counted at this end. */
  readonly own: ReadonlySet<string>;
  readonly links: readonly { from: string; to: string }[];
  /** Flows, each with the link bytes of its queue pairs that are its throughput. */
  readonly flows: readonly { id: string; moved: "tx_wire_bytes" | "rx_wire_bytes" }[];
  /** Present time, meant ns. */
  now(): number;
  /** Brings the counters up to date. */
  look(): void;
  rates(): Omit<Frame["flows"], "throughput">;
  queues(): Pick<Frame, "queues" | "switches">;
  /** Longest gap of the poll loops so far, wall ns. */
  loopGap(): number;
}

/** Traffic of a device towards another one. */
interface Side {
  /** Bytes with all that they take of the link. */
  bytes: Tally;
  pauses: Tally;
  marks: Tally;
}

/** Bytes of FCS, preamble and gap. */
const kFrameOverhead = 24;
/** Bytes of a PFC frame with all that it takes of a link. */
const kPfcBytes = 84;

/** Reasons of losses, for counters with another name than the reason: by the counter's name, which is that of mlx5, or by its meaning. */
const kReasons: Readonly<Record<string, string>> = {
  rx_prio_buf_discard: "receive_buffer_full",
  rx_icrc_encapsulated: "wrong_icrc",
  down: "port_down",
  fault: "impairment",
};

export class Frames {
  private readonly growth: readonly Growth[];
  private readonly events = new Map<string, Tally & Pick<FrameEvent, "kind" | "where">>();
  /** Sides of links, by "device:peer". */
  private readonly sides = new Map<string, Side>();
  /** Peers of devices with one link, such as NICs. */
  private readonly peers = new Map<string, string>();
  private readonly moved: ReadonlyMap<string, { counter: string; bytes: Tally }>;
  /** Time of the last frame, meant ns. */
  private last: number;

  /** Counts from now on. */
  constructor(private readonly network: Network) {
    const several = new Set<string>();
    for (const { from, to } of network.links) {
      for (const [device, peer] of [
        [from, to],
        [to, from],
      ] as const) {
        this.sides.set(`${device}:${peer}`, { bytes: tally(), pauses: tally(), marks: tally() });
        if (this.peers.delete(device)) several.add(device);
        else if (!several.has(device)) this.peers.set(device, peer);
      }
    }
    this.moved = new Map(network.flows.map(({ id, moved }) => [id, { counter: moved, bytes: tally() }]));
    this.growth = network.tables.map((table) => new Growth(table, (counter) => this.#sharesOf(counter)));
    this.last = Math.round(network.now());
  }

  /** Takes everything since the frame before. */
  take(): Frame {
    const { network } = this;
    network.look();
    const since_ns = this.last;
    const t_ns = Math.max(since_ns + 1, Math.round(network.now()));
    this.last = t_ns;
    for (const growth of this.growth) growth.take();
    // The rate is in meant bits per second.
    const rate = (bytes: Tally | undefined) => Math.round(bitRate(bytes ?? tally()) * network.scale);
    return {
      run: network.run,
      since_ns,
      t_ns,
      flows: { ...network.rates(), throughput: network.flows.map(({ id }) => rate(this.moved.get(id)?.bytes)) },
      ...network.queues(),
      links: network.links.map(({ from, to }) => {
        const [forward, backward] = [this.sides.get(`${from}:${to}`), this.sides.get(`${to}:${from}`)];
        return {
          forward_bps: rate(forward?.bytes),
          backward_bps: rate(backward?.bytes),
          forward_pauses: forward?.pauses.grown ?? 0,
          backward_pauses: backward?.pauses.grown ?? 0,
          marks: (forward?.marks.grown ?? 0) + (backward?.marks.grown ?? 0),
        };
      }),
      events: [...this.events.values()].flatMap(({ kind, where, grown }) =>
        grown > 0 ? [{ kind, where, count: grown }] : [],
      ),
      loop_gap_max_us: network.loopGap() / 1000,
    };
  }

  #sharesOf(counter: CounterDescription): readonly Share[] {
    const { name, labels } = counter;
    const { switch: device = labels.device ?? "", flow = "", qpn } = labels;
    const peer = this.peers.get(device) ?? labels.port ?? "";
    const heard = !this.network.own.has(peer);
    if (qpn !== undefined) {
      const moved = this.moved.get(flow);
      if (moved?.counter === name) return [[moved.bytes, 1]];
      // CNPs that others have sent count here only if they are no devices of the network, which count them themselves.
      return name === "cnp_sent" || (heard && name === "cnp_handled") ? [[this.#event("cnp", flow), 1]] : [];
    }
    const sent = this.sides.get(`${device}:${peer}`);
    const received = heard ? this.sides.get(`${peer}:${device}`) : undefined;
    return [
      ...this.#eventOf(counter, device, peer, heard),
      ...(sent === undefined ? [] : sideShares(counter, "tx", sent)),
      ...(received === undefined ? [] : sideShares(counter, "rx", received)),
    ];
  }

  #eventOf({ name, meaning, labels }: CounterDescription, device: string, peer: string, heard: boolean): Share[] {
    const queue = `${device}:${peer}:${labels.priority}`;
    switch (meaning) {
      case "mark":
      case "cnm":
        return [[this.#event(meaning, queue), 1]];
      case "pause_tx":
        return [[this.#event("pfc", queue), 1]];
      case "pause_rx":
        // A switch does not ask who is at its ports.
        if (!heard || labels.switch !== undefined) return [];
        return [[this.#event("pfc", `${peer}:${device}:${labels.priority}`), 1]];
      default:
        if (!kLosses.includes(meaning)) return [];
        return [[this.#event("drop", `${device}:${peer}:${kReasons[name] ?? kReasons[meaning] ?? reasonOf(name)}`), 1]];
    }
  }

  /** Returns the tally of an event, made when it is first asked for. */
  #event(kind: FrameEvent["kind"], where: string): Tally {
    const key = `${kind} ${where}`;
    const found = this.events.get(key) ?? { kind, where, ...tally() };
    this.events.set(key, found);
    return found;
  }
}

/** Shares of a counter in the traffic that its device sends (tx), or in that of its neighbour (rx). */
function sideShares({ name, meaning }: CounterDescription, way: "tx" | "rx", { bytes, pauses, marks }: Side): Share[] {
  if (name === `${way}_bytes`) return [[bytes, 1]];
  if (name === `${way}_packets`) return [[bytes, kFrameOverhead]];
  if (name === `${way}_pfc_frames`) {
    return [
      [bytes, kPfcBytes],
      [pauses, 1],
    ];
  }
  return way === "tx" && meaning === "mark" ? [[marks, 1]] : [];
}
