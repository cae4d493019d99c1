/** Counters of the queue pairs of programs, which come and go while a NIC's manifest stays as it is. */
import type { CounterName } from "../../native/types.js";
import type { Labels, MetricFamily } from "./family.js";
import type { Instruments } from "./instruments.js";
import { type Metric, metricOf } from "./mapping.js";

export class ProgramCounters {
  private metrics: ReadonlyMap<string, Metric> | undefined;
  private shown: { family: MetricFamily; labels: Labels }[] = [];

  constructor(
    private readonly instruments: Instruments,
    private readonly counters: () => readonly CounterName[],
  ) {}

  /** Takes the counts of a queue pair with these labels; undefined: it is in the manifest. */
  take(own: Labels, counts: Readonly<Record<string, number>> | undefined): void {
    if (counts === undefined) return;
    this.metrics ??= new Map(this.counters().map((counter) => [counter.name, metricOf("queue_pair", counter)]));
    // Labels are those of queue pairs in the manifest.
    const { device = "", qpn = "", qp = "", port = "" } = own;
    for (const [name, value] of Object.entries(counts)) {
      const metric = this.metrics.get(name);
      if (metric === undefined) continue;
      const family = this.instruments.of(metric);
      const labels = { port, ...metric.fixed, device, qp, qpn };
      family.sample(labels).value = value * metric.scale;
      this.shown.push({ family, labels });
    }
  }

  /** Forgets all that was taken. */
  clear(): void {
    for (const { family, labels } of this.shown) family.remove(labels);
    this.shown = [];
  }
}
