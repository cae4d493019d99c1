/** The metrics of one daemon by name, over prom-client's registry, and their two expositions. */
import { type OpenMetricsContentType, type Metric as PromMetric, Registry } from "prom-client";
import { type Labels, MetricFamily } from "./family.js";
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
  private readonly families = new Map<string, MetricFamily>();

  /** The family of a metric, made at the first call. */
  of({ name, help, type }: Pick<Metric, "name" | "help" | "type">): MetricFamily {
    const known = this.families.get(name);
    if (known !== undefined) return known;
    const family = new MetricFamily(name, help, type);
    this.families.set(name, family);
    this.registry.registerMetric(family as unknown as PromMetric);
    return family;
  }

  set(name: GaugeName, labels: Labels, value: number): void {
    this.#own(name).sample(labels).value = value;
  }

  /** Forgets the series of a gauge. */
  clear(name: GaugeName): void {
    this.#own(name).clear();
  }

  expose(format: Format): Promise<string> {
    if (format === "prometheus") return this.registry.metrics();
    // prom-client takes _total off the names of the counters that it exposes in this format: views of them spare their own names.
    const views = new Registry<OpenMetricsContentType>();
    views.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    for (const metric of this.registry.getMetricsAsArray()) views.registerMetric(Object.create(metric));
    return views.metrics();
  }

  #own(name: GaugeName): MetricFamily {
    return this.families.get(name) ?? this.of({ name, ...kGauges[name] });
  }
}
