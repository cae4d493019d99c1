/** Counters of one device, as views look them up. */
import type { ControlRequests } from "../../device/protocol.js";
import { type Counter, Counters, type Meaning } from "../../native/counters.js";

interface Place {
  port?: string;
  priority?: string;
}

export class ShownCounters extends Counters {
  readonly isNic: boolean;
  private readonly byPlace = new Map<string, number>();

  constructor({ counters }: ControlRequests["counters"]) {
    super(
      counters,
      counters.map(({ value }) => value),
    );
    this.isNic = counters.some(({ labels }) => labels.device !== undefined && labels.port === undefined);
    for (const { name, labels, value } of counters) {
      // Queue pairs have counters of the same names as their NIC.
      if (labels.qpn === undefined) this.byPlace.set(key(name, labels), value);
    }
  }

  /** Returns 0 where there is no such counter. */
  get(name: string, place: Place): number {
    return this.byPlace.get(key(name, place)) ?? 0;
  }

  /** Counters of the NIC itself, neither by priority nor by queue pair. */
  ofNic(): Counter[] {
    return [...this].filter(({ labels }) => Object.keys(labels).length === 1);
  }

  /** Returns a look-up of the counter with this meaning, by port and priority. A NIC has one port, which its counters do not name. */
  ofPriorities(meaning: Meaning): (port: string, priority: string) => number {
    const name = this.of(meaning).manifest[0]?.name ?? "";
    return (port, priority) => this.get(name, this.isNic ? { priority } : { port, priority });
  }

  /** Returns the ports and priorities where `counter` has counted anything. */
  queues(counter = "queue_packets"): { port: string; priority: string }[] {
    return [...this]
      .filter(({ name, value }) => name === counter && value > 0)
      .map(({ labels }) => ({ port: labels.port ?? "", priority: labels.priority ?? "" }));
  }
}

const key = (name: string, { port = "", priority = "" }: Place) => `${name} ${port} ${priority}`;

export function text(value: number): string {
  return String(Math.round(value));
}
