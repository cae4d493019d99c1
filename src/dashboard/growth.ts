/** What counters have grown by since they were last looked at, summed up by what they count for. */
import type { CounterTable } from "../native/counters.js";
import type { CounterDescription } from "../native/types.js";
import type { FrameEvent } from "./protocol.js";

export interface Tally {
  /** Since the look before. */
  grown: number;
  /** ns between the times that the two looks are of, by the clock of the counters. */
  elapsed: number;
}

export type EventTally = Tally & Pick<FrameEvent, "kind" | "where">;

/** What a counter counts for, and by what factor. */
export type Share = readonly [tally: Tally, weight: number];

interface Counted {
  index: number;
  last: number;
  shares: readonly Share[];
}

/** FCS, preamble and gap. */
const kFrameOverhead = 24;
/** A PFC frame with all that it takes of a link. */
const kPfcBytes = 84;

export class Growth {
  private readonly counted: Counted[] = [];
  private readonly tallies = new Set<Tally>();
  private last: number;

  /** Counts from now on. `table` must have a manifest. */
  constructor(
    private readonly table: CounterTable,
    sharesOf: (counter: CounterDescription) => readonly Share[],
  ) {
    this.last = table.asOf;
    table.manifest.forEach((description, index) => {
      const shares = sharesOf(description);
      if (shares.length === 0) return;
      this.counted.push({ index, last: table.value(index), shares });
      for (const [tally] of shares) this.tallies.add(tally);
    });
  }

  take(): void {
    const elapsed = this.table.asOf - this.last;
    this.last = this.table.asOf;
    for (const tally of this.tallies) Object.assign(tally, { grown: 0, elapsed });
    for (const counter of this.counted) {
      const value = this.table.value(counter.index);
      if (value === counter.last) continue;
      for (const [tally, weight] of counter.shares) tally.grown += (value - counter.last) * weight;
      counter.last = value;
    }
  }
}

/** One direction of a link. */
export interface Direction {
  /** With all that they take of the link. */
  bytes: Tally;
  pauses: Tally;
}

export const tally = (): Tally => ({ grown: 0, elapsed: 0 });
/** bit/s, of a tally of bytes; 0 before any time has passed. */
export const bitRate = ({ grown, elapsed }: Tally): number => (elapsed > 0 ? Math.round((grown * 8e9) / elapsed) : 0);
export const direction = (): Direction => ({ bytes: tally(), pauses: tally() });

/** What a port's counter counts of a direction: that which it sends (tx), or receives (rx). */
export function directionShares(name: string, way: "tx" | "rx", { bytes, pauses }: Direction): readonly Share[] {
  if (name === `${way}_bytes`) return [[bytes, 1]];
  if (name === `${way}_packets`) return [[bytes, kFrameOverhead]];
  return name === `${way}_pfc_frames`
    ? [
        [bytes, kPfcBytes],
        [pauses, 1],
      ]
    : [];
}

/** Events by kind and place, each made when it is first asked for. */
export class EventTallies {
  private readonly known = new Map<string, EventTally>();

  of(kind: EventTally["kind"], where: string): EventTally {
    const key = `${kind} ${where}`;
    const found = this.known.get(key) ?? { kind, where, ...tally() };
    this.known.set(key, found);
    return found;
  }

  /** Those that have grown. */
  grown(): FrameEvent[] {
    const events: FrameEvent[] = [];
    for (const { kind, where, grown } of this.known.values()) if (grown > 0) events.push({ kind, where, count: grown });
    return events;
  }
}

/** The event that a switch's counter counts, if it does. */
export function switchEvent({ name, labels }: CounterDescription, events: EventTallies): readonly Share[] {
  const { switch: device = labels.device, port, priority } = labels;
  const queue = `${device}:${port}:${priority}`;
  if (name === "wred_ecn_marked_packets") return [[events.of("mark", queue), 1]];
  if (name === "cn_cp_transmitted_cnms") return [[events.of("cnm", queue), 1]];
  if (name === "pfc_tx_packets") return [[events.of("pfc", queue), 1]];
  return dropEvent(name, `${device}:${port}`, events);
}

/** The same of a NIC's; `peer` is the device at its port. */
export function nicEvent({ name, labels }: CounterDescription, peer: string, events: EventTallies): readonly Share[] {
  const { device, priority, flow, qpn } = labels;
  if (qpn !== undefined) return name === "cnp_sent" ? [[events.of("cnp", flow ?? ""), 1]] : [];
  if (name === "tx_prio_pause") return [[events.of("pfc", `${device}:${peer}:${priority}`), 1]];
  return dropEvent(name, `${device}:${peer}`, events);
}

/** Losses that are not called drop_: of the receive buffer and of impairments. */
const kLosses: Readonly<Record<string, string>> = {
  rx_prio_buf_discard: "receive_buffer_full",
  rx_icrc_encapsulated: "wrong_icrc",
  lost: "impairment",
  overflow: "impairment",
};

function dropEvent(name: string, port: string, events: EventTallies): readonly Share[] {
  const reason = name.startsWith("drop_")
    ? name.slice("drop_".length)
    : name.startsWith("host_")
      ? name
      : kLosses[name];
  return reason === undefined ? [] : [[events.of("drop", `${port}:${reason}`), 1]];
}
