/** Tells what queue pairs and ports do now: rates from two readings of the same devices. Bits, bytes and events per second. */

import type { ControlRequests, PortStatus, QueuePairReport } from "../../device/protocol.js";
import type { ControlledDevice } from "../../device/running.js";
import { type Counter, type Counters, countersOf, type Meaning, qpnText } from "../../native/counters.js";

export interface Reading {
  device: ControlledDevice;
  scale: number;
  counters: ControlRequests["counters"];
  ports: readonly PortStatus[];
  /** Bytes in all queues of each port of a switch, in the order of `ports`. */
  queueBytes: readonly number[] | undefined;
  /** Queue pairs; a switch has none. */
  pairs: readonly QueuePairReport[];
}

export type PairSample = ReturnType<typeof pairsOf>[number];
export type PortSample = ReturnType<typeof portsOf>[number];
export type Sample = ReturnType<typeof sampleOf>;

/** @param before Readings by the names of their devices. */
export function sampleOf(readings: readonly Reading[], before: ReadonlyMap<string, Reading>, time: Date) {
  const looks = readings.map((reading) => lookOf(reading, before.get(reading.device.name)));
  return {
    /** Time in ISO 8601. */
    time: time.toISOString(),
    devices: readings.map(({ device, scale }) => ({ name: device.name, kind: device.kind ?? null, scale })),
    queue_pairs: looks.flatMap(pairsOf),
    ports: looks.flatMap(portsOf),
  };
}

/** A reading, and rates since the one before. */
interface Look extends Reading {
  /** Rate of the counters with one value of a label; null: not known yet, or counters were cleared meanwhile. */
  perSecond(label: "qpn" | "port", value: string, sum: (counters: Counters) => number, factor?: number): number | null;
  /** Counters of queue pairs, by their numbers as labels have them. */
  moved: ReadonlyMap<string, Counters>;
}

function lookOf(now: Reading, before: Reading | undefined): Look {
  const [after, earlier] = [countersBy(now), before && countersBy(before)];
  const seconds = (now.counters.at_ns - (before?.counters.at_ns ?? 0)) / 1e9;
  return {
    ...now,
    moved: after.qpn,
    perSecond(label, value, sum, factor = 1) {
      if (earlier === undefined || seconds <= 0) return null;
      const grown = sum(after[label].get(value) ?? kNone) - sum(earlier[label].get(value) ?? kNone);
      return grown < 0 ? null : (factor * grown) / seconds;
    },
  };
}

const kNone = countersOf([]);

/** Counters of a NIC's port are under "": where its other counters name a port, they are impairments of the link. */
function countersBy({ counters, pairs }: Reading) {
  // Queue pairs of programs come and go, and count for themselves.
  const programs = pairs.flatMap(({ qpn, counters: own = {} }) =>
    Object.entries(own).map(([name, value]): Counter => {
      return { name, unit: "", meaning: "none", labels: { qpn: qpnText(qpn) }, value };
    }),
  );
  const qpn = countersOf([...counters.counters, ...programs]).by("qpn");
  return { qpn, port: qpn.get("")?.by("port") ?? new Map<string, Counters>() };
}

/** A rate is null when it is not known yet, or there is no such thing; so in portsOf(). */
function pairsOf({ device, pairs, perSecond, moved }: Look) {
  return pairs.map((pair) => {
    const own = qpnText(pair.qpn);
    const total = (name: string) => moved.get(own)?.sum(name) ?? 0;
    const sends = pair.state !== "idle";
    return {
      device: device.name,
      qp: pair.name,
      /** Process of the program that has it; null: the queue pair is the NIC's own. */
      pid: pair.program?.pid ?? null,
      peer: pair.peer,
      stage: sends && pair.limited ? pair.stage : null,
      rate_bps: sends ? pair.rate : null,
      target_rate_bps: sends ? pair.target_rate : null,
      alpha: sends ? pair.alpha : null,
      tx_bps: perSecond("qpn", own, (counters) => counters.sum("tx_wire_bytes"), 8),
      rx_bps: perSecond("qpn", own, (counters) => counters.sum("rx_wire_bytes"), 8),
      /** Payload since the start, sent and received. */
      bytes: total("tx_bytes") + total("rx_bytes"),
    };
  });
}

function portsOf({ device, ports, queueBytes, perSecond }: Look) {
  return ports.map(({ name }, i) => {
    const place = queueBytes === undefined ? "" : name;
    const named = (counter: string, factor?: number) => perSecond("port", place, (own) => own.sum(counter), factor);
    const rate = (...meanings: Meaning[]) => perSecond("port", place, (own) => own.of(...meanings).sum());
    return {
      device: device.name,
      port: name,
      rx_bps: named("rx_bytes", 8),
      tx_bps: named("tx_bytes", 8),
      rx_pps: named("rx_packets"),
      tx_pps: named("tx_packets"),
      queue_bytes: queueBytes?.[i] ?? null,
      /** Marks that a switch made; of a NIC packets that came marked. */
      marks_per_s: rate("mark", "marked"),
      /** Rates of PFC frames. */
      pauses_rx_per_s: rate("pause_rx"),
      pauses_tx_per_s: rate("pause_tx"),
      /** Drops include frames that the host has lost. */
      drops_per_s: rate("drop", "overrun", "refused", "thrown", "down"),
    };
  });
}
