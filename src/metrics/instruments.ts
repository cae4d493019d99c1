/** The metrics of one daemon by name, over prom-client's registry, and their two expositions. */
import { Counter, Gauge, type OpenMetricsContentType, type Metric as PromMetric, Registry } from "prom-client";
import { type GaugeName, kGauges } from "./gauges.js";
import { registerHistograms } from "./histograms.js";
import type { Metric } from "./mapping.js";

/** Prometheus' own text format, and the standard that was made of it. */
export type Format = "prometheus" | "openmetrics";

export const kContentTypes: Readonly<Record<Format, string>> = {
  prometheus: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
};

export class Instruments {
  private readonly registry = new Registry();
  /** Takes the distributions as they are now. */
  readonly distributions = registerHistograms(this.registry);
  private readonly totals = new Map<string, number>();

  /** The instrument of a metric, made at the first call. */
  of({ name, help, type }: Pick<Metric, "name" | "help" | "type">, labelNames: readonly string[]): Counter | Gauge {
    const known = this.registry.getSingleMetric(name) as PromMetric | undefined;
    if (known !== undefined) return known as Counter | Gauge;
    const options = { name, help, labelNames: [...labelNames], registers: [this.registry] };
    return type === "gauge" ? new Gauge(options) : new Counter(options);
  }

  set(name: GaugeName, labels: Record<string, string>, value: number): void {
    (this.#own(name) as Gauge).set(labels, value);
  }

  /** Forgets the series of a gauge. */
  clear(name: GaugeName): void {
    this.#own(name).reset();
  }

  /** A counter whose value the daemon knows. */
  total(name: GaugeName, labels: Record<string, string>, value: number): void {
    const key = `${name} ${JSON.stringify(labels)}`;
    (this.#own(name) as Counter).inc(labels, Math.max(0, value - (this.totals.get(key) ?? 0)));
    this.totals.set(key, value);
  }

  expose(format: Format): Promise<string> {
    if (format === "prometheus") return this.registry.metrics();
    // prom-client takes _total off the names of the counters that it exposes in this format: here of views of them.
    const views = new Registry<OpenMetricsContentType>();
    views.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    for (const metric of this.registry.getMetricsAsArray()) views.registerMetric(Object.create(metric));
    return views.metrics();
  }

  #own(name: GaugeName): Counter | Gauge {
    return this.of({ name, ...kGauges[name] }, kGauges[name].labels);
  }
}
