/** Counters of one device by name and labels. */
import type { CounterValue } from "../../device/protocol.js";

interface Place {
  port?: string;
  priority?: string;
}

export class Counts {
  readonly isNic: boolean;
  private readonly byPlace = new Map<string, number>();

  constructor(private readonly counters: readonly CounterValue[]) {
    this.isNic = counters.some(({ labels }) => labels.device !== undefined && labels.port === undefined);
    for (const { name, labels, value } of counters) {
      // Queue pairs have counters of the same names as their NIC.
      if (labels.qpn === undefined) this.byPlace.set(key(name, labels), value);
    }
  }

  /** 0 where there is none. */
  get(name: string, place: Place): number {
    return this.byPlace.get(key(name, place)) ?? 0;
  }

  matching(prefix: string, labels: Readonly<Record<string, string>>): CounterValue[] {
    return this.counters.filter(
      ({ name, labels: own }) =>
        name.startsWith(prefix) && Object.entries(labels).every(([label, value]) => own[label] === value),
    );
  }

  /** A NIC's own, neither by priority nor by queue pair. */
  ofNic(): CounterValue[] {
    return this.counters.filter(({ labels }) => Object.keys(labels).length === 1);
  }

  /** Of a NIC's queue pairs, by their number. */
  byQueuePair(): Map<number, CounterValue[]> {
    const pairs = new Map<number, CounterValue[]>();
    for (const counter of this.counters) {
      if (counter.labels.qpn === undefined) continue;
      const number = Number(counter.labels.qpn);
      const own = pairs.get(number) ?? [];
      own.push(counter);
      pairs.set(number, own);
    }
    return pairs;
  }

  /** Of one priority of a port, by what a NIC and a switch call it. A NIC has one port, which its counters do not name. */
  ofPriority(names: { nic: string; switch: string }, port: string, priority: string): number {
    return this.isNic ? this.get(names.nic, { priority }) : this.get(names.switch, { port, priority });
  }

  /** Ports and priorities where `counter` has counted anything. */
  queues(counter = "queue_packets"): { port: string; priority: string }[] {
    return this.counters
      .filter(({ name, value }) => name === counter && value > 0)
      .map(({ labels }) => ({ port: labels.port ?? "", priority: labels.priority ?? "" }));
  }
}

const key = (name: string, { port = "", priority = "" }: Place) => `${name} ${port} ${priority}`;

/** PFC frames and the time paused, as NICs and switches call them. */
export const kPfc = {
  received: { nic: "rx_prio_pause", switch: "pfc_rx_packets" },
  sent: { nic: "tx_prio_pause", switch: "pfc_tx_packets" },
  paused: { nic: "rx_prio_pause_duration", switch: "pfc_rx_pause_duration" },
} as const;

export function text(value: number): string {
  return String(Math.round(value));
}
