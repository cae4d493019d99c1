/**
 * Distributions as Prometheus' histograms. The native core keeps them, in finer buckets; here are those that end at powers of two,
 * of nanoseconds or bytes. A value that is just such a bound counts above it.
 */
import type { Metric, Registry } from "prom-client";
import { type NamedHistogram, weightsBelow } from "../../native/histogram.js";
import type { Sample } from "./family.js";

interface Definition {
  labels: readonly string[];
  /** Powers of two that are the bounds, from the first to the last. */
  powers: readonly [number, number];
  unit: string;
  help: string;
  /** Factor of the bounds and the sum. */
  scale: number;
  /** Factor of the counts, which are rounded down. */
  weight: number;
}

const time = (labels: readonly string[], help: string): Definition => ({
  labels,
  powers: [8, 27], // 256 ns to 134 ms
  unit: "seconds",
  help,
  scale: 1e-9,
  weight: 1,
});

/** Histograms by the name of the native distribution. */
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
    powers: [8, 24], // to 16 MiB
    unit: "bytes",
    help: "Length of this egress queue over time: every microsecond counts once; of queues that have carried anything",
    scale: 1,
    // Native weights are in ns.
    weight: 1e-3,
  },
} as const satisfies Record<NamedHistogram["name"], Definition & { name: string }>;

type Kind = keyof typeof kHistograms;

/** prom-client's own histogram counts for itself and cannot be set; a registry takes whatever describes itself like one. */
export class HistogramMetric {
  readonly type = "histogram";
  readonly name: string;
  readonly help: string;
  current: NamedHistogram[] = [];
  /** Samples by the labels of a distribution, which keeps its buckets. */
  private readonly samples = new Map<string, Sample[]>();

  constructor(private readonly kind: Kind) {
    ({ name: this.name, help: this.help } = kHistograms[kind]);
  }

  get() {
    const { name, help, type, samples } = this;
    const definition = kHistograms[this.kind];
    const values = this.current.flatMap((one) => {
      const key = JSON.stringify(one.labels);
      const own = samples.get(key) ?? samplesOf(one, definition);
      samples.set(key, own);
      setValues(own, one, definition);
      return own;
    });
    return { name, help, type, aggregator: "sum", values };
  }
}

export function registerHistograms(registry: Registry): (all: readonly NamedHistogram[]) => void {
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

/** Buckets, sum and count, in the order of an exposition. */
function samplesOf(one: NamedHistogram, { scale, powers, labels, name }: Definition & { name: string }): Sample[] {
  const [first, last] = powers;
  const own = { ...one.labels, ...(labels.includes("port") && !("port" in one.labels) && { port: "1" }) };
  const sample = (suffix: string, extra = {}): Sample => ({
    metricName: `${name}_${suffix}`,
    sharedLabels: { ...own, ...extra },
    value: 0,
  });
  return [
    ...Array.from({ length: last - first + 1 }, (_, i) => sample("bucket", { le: String(2 ** (first + i) * scale) })),
    sample("bucket", { le: "+Inf" }),
    sample("sum"),
    sample("count"),
  ];
}

function setValues(samples: readonly Sample[], one: NamedHistogram, of: Definition): void {
  const count = (native: number) => Math.floor(native * of.weight);
  const [all, sum] = [count(one.total), one.sum * of.scale * of.weight];
  const values = [...weightsBelow(one, of.powers).map(count), all, sum, all];
  samples.forEach((sample, i) => {
    sample.value = values[i] as number;
  });
}
