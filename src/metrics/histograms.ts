/**
 * Distributions as Prometheus' histograms. The native core keeps them, in finer buckets; here are those that end at powers of two,
 * of nanoseconds or bytes. A value that is just such a bound counts above it.
 */
import type { Metric, MetricValueWithName, Registry } from "prom-client";
import type { NativeHistogram } from "../native/histogram.js";

interface Definition {
  labels: readonly string[];
  unit: string;
  help: string;
  /** The bounds and the sum are multiplied by this ... */
  scale: number;
  /** ... and counts by this, and rounded down. */
  weight: number;
}

const time = (labels: readonly string[], help: string): Definition => ({
  labels,
  unit: "seconds",
  help,
  scale: 1e-9,
  weight: 1,
});

/** By the name of the native distribution. */
export const kHistograms = {
  loop_gap: {
    name: "weir_worker_loop_gap_seconds",
    ...time(["worker"], "Gap between two turns of the poll loop, intended sleep left out"),
  },
  ecn_to_cnp: {
    name: "weir_nic_ecn_to_cnp_seconds",
    ...time(
      ["device", "port"],
      "From the arrival of a marked packet to the CNP for it; of several that one CNP answers, from the first",
    ),
  },
  cnp_to_rate_change: {
    name: "weir_nic_cnp_to_rate_change_seconds",
    ...time(
      ["device", "port"],
      "From the arrival of a CNP to the cut of the rate; of several before one cut, from the first",
    ),
  },
  queue_length: {
    name: "weir_switch_queue_length_bytes",
    labels: ["switch", "port", "priority"],
    unit: "bytes",
    help: "Length of this egress queue over time: every microsecond counts once; of queues that have carried anything",
    scale: 1,
    // The native ones are ns.
    weight: 1e-3,
  },
} as const satisfies Record<NativeHistogram["name"], Definition & { name: string }>;

type Kind = keyof typeof kHistograms;

/** prom-client's own histogram counts for itself and cannot be set; a registry takes whatever describes itself like one. */
export class HistogramMetric {
  readonly type = "histogram";
  readonly name: string;
  readonly help: string;
  current: NativeHistogram[] = [];

  constructor(private readonly kind: Kind) {
    ({ name: this.name, help: this.help } = kHistograms[kind]);
  }

  get() {
    const { name, help, type } = this;
    return {
      name,
      help,
      type,
      aggregator: "sum",
      values: this.current.flatMap((one) => valuesOf(one, kHistograms[this.kind])),
    };
  }
}

export function registerHistograms(registry: Registry): (all: readonly NativeHistogram[]) => void {
  const metrics = new Map<string, HistogramMetric>();
  return (all) => {
    for (const metric of metrics.values()) metric.current = [];
    for (const one of all) {
      let metric = metrics.get(one.name);
      if (metric === undefined) {
        metric = new HistogramMetric(one.name);
        metrics.set(one.name, metric);
        registry.registerMetric(metric as unknown as Metric);
      }
      metric.current.push(one);
    }
  };
}

function valuesOf(one: NativeHistogram, { scale, weight, labels, name }: Definition & { name: string }) {
  const own = { ...one.labels, ...(labels.includes("port") && !("port" in one.labels) && { port: "1" }) };
  const count = (native: number) => Math.floor(native * weight);
  const value = (suffix: string, value: number, extra = {}): MetricValueWithName<string> => ({
    metricName: `${name}_${suffix}`,
    labels: { ...own, ...extra },
    value,
  });
  return [
    ...one.below.map((below, i) => value("bucket", count(below), { le: String(2 ** (one.first + i) * scale) })),
    value("bucket", count(one.total), { le: "+Inf" }),
    value("sum", one.sum * scale * weight),
    value("count", count(one.total)),
  ];
}
