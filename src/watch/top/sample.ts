/** What queue pairs and ports do now: rates from two readings of the same devices. Bits, bytes and events per second. */

import { happeningOf } from "../../device/growth.js";
import type { ControlRequests, PortStatus, QueuePairReport } from "../../device/protocol.js";
import type { ControlledDevice } from "../../device/running.js";

export interface Reading {
  device: ControlledDevice;
  scale: number;
  counters: ControlRequests["counters"];
  ports: readonly PortStatus[];
  /** Of a switch: bytes in all queues of each port, in the order of `ports`. */
  queueBytes: readonly number[] | undefined;
  /** None of a switch. */
  pairs: readonly QueuePairReport[];
}

export type PairSample = ReturnType<typeof pairsOf>[number];
export type PortSample = ReturnType<typeof portsOf>[number];
export type Sample = ReturnType<typeof sampleOf>;

/** @param before Readings by the names of their devices. */
export function sampleOf(readings: readonly Reading[], before: ReadonlyMap<string, Reading>, time: Date) {
  const growths = readings.map((reading) => new Growth(reading, before.get(reading.device.name)));
  return {
    /** ISO 8601. */
    time: time.toISOString(),
    devices: readings.map(({ device, scale }) => ({ name: device.name, kind: device.kind ?? null, scale })),
    queue_pairs: readings.flatMap((reading, i) => pairsOf(reading, growths[i] as Growth)),
    ports: readings.flatMap((reading, i) => portsOf(reading, growths[i] as Growth)),
  };
}

/** Null: not known yet, or there is no such thing; so of ports. */
function pairsOf({ device, pairs }: Reading, growth: Growth) {
  return pairs.map((pair) => {
    const own = (name: string) => `${name} qp ${pair.qpn}`;
    const sends = pair.state !== "idle";
    return {
      device: device.name,
      qp: pair.name,
      /** Of the program that has it; null: the NIC's own. */
      pid: pair.program?.pid ?? null,
      peer: pair.peer,
      stage: sends && pair.limited ? pair.stage : null,
      rate_bps: sends ? pair.rate : null,
      target_rate_bps: sends ? pair.target_rate : null,
      alpha: sends ? pair.alpha : null,
      tx_bps: growth.perSecond(own("tx_wire_bytes"), 8),
      rx_bps: growth.perSecond(own("rx_wire_bytes"), 8),
      /** Payload since the start, sent and received. */
      bytes: growth.total(own("tx_bytes")) + growth.total(own("rx_bytes")),
    };
  });
}

function portsOf({ device, ports, queueBytes }: Reading, growth: Growth) {
  return ports.map(({ name }, i) => {
    const place = queueBytes === undefined ? "" : name;
    const rate = (counter: string, factor = 1) => growth.perSecond(`${counter} port ${place}`, factor);
    return {
      device: device.name,
      port: name,
      rx_bps: rate("rx_bytes", 8),
      tx_bps: rate("tx_bytes", 8),
      rx_pps: rate("rx_packets"),
      tx_pps: rate("tx_packets"),
      queue_bytes: queueBytes?.[i] ?? null,
      /** Of a switch: made; of a NIC: that came marked. */
      marks_per_s: rate("marks"),
      /** PFC frames. */
      pauses_rx_per_s: rate("pauses_rx"),
      pauses_tx_per_s: rate("pauses_tx"),
      /** With those that the host has lost. */
      drops_per_s: rate("drops"),
    };
  });
}

/** Sums that several counters of a port make, by what they stand for. */
const kSums = { mark: "marks", cnm: undefined, pfc: "pauses_tx", "pfc heard": "pauses_rx", drop: "drops" } as const;

const kOwn = new Set(["rx_bytes", "tx_bytes", "rx_packets", "tx_packets"]);

/** Counters of one device, by "name qp 17" and "name port r" (of a NIC "name port "), and how they have grown. */
class Growth {
  private readonly now: ReadonlyMap<string, number>;
  private readonly before: ReadonlyMap<string, number> | undefined;
  private readonly seconds: number;

  constructor(now: Reading, before: Reading | undefined) {
    this.now = totals(now);
    this.before = before && totals(before);
    this.seconds = (now.counters.at_ns - (before?.counters.at_ns ?? 0)) / 1e9;
  }

  total(key: string): number {
    return this.now.get(key) ?? 0;
  }

  /** Null without a reading before, and where counters were cleared meanwhile. */
  perSecond(key: string, factor: number): number | null {
    if (this.before === undefined || this.seconds <= 0) return null;
    const grown = this.total(key) - (this.before.get(key) ?? 0);
    return grown < 0 ? null : (factor * grown) / this.seconds;
  }
}

function totals({ counters, pairs }: Reading): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { name, labels, value } of counters.counters) {
    const key = keyOf(name, labels);
    if (key !== undefined) sums.set(key, (sums.get(key) ?? 0) + value);
  }
  // Of programs: they come and go, and count for themselves.
  for (const { qpn, counters: own = {} } of pairs) {
    for (const [name, value] of Object.entries(own)) sums.set(`${name} qp ${qpn}`, value);
  }
  return sums;
}

function keyOf(name: string, { qpn, port = "", device }: Readonly<Record<string, string>>): string | undefined {
  if (qpn !== undefined) return `${name} qp ${Number(qpn)}`;
  // Impairments, which devices count for a port.
  if (device !== undefined && port !== "") return undefined;
  const happening = name === "np_ecn_marked_roce_packets" ? "mark" : happeningOf(name);
  const sum = happening === undefined ? (kOwn.has(name) ? name : undefined) : kSums[happening];
  return sum === undefined ? undefined : `${sum} port ${port}`;
}
