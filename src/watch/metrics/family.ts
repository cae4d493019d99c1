/**
 * A counter or gauge whose values are set in place. Instruments of prom-client find theirs by its labels at every call, and have the
 * labels written out anew at every scrape; a registry takes whatever describes itself like one, and keeps the text of shared labels.
 */

export type Labels = Readonly<Record<string, string>>;

/** One line of an exposition. */
export interface Sample {
  /** Labels are the same object at every scrape: their text is kept with it. */
  readonly sharedLabels: Labels;
  /** Name of the line, for those of a histogram. */
  readonly metricName?: string;
  value: number;
}

export class MetricFamily {
  private samples = new Map<string, Sample>();
  private cleared = new Map<string, Sample>();

  constructor(
    readonly name: string,
    readonly help: string,
    readonly type: "counter" | "gauge",
  ) {}

  /** Returns the sample of these labels, made at the first call with value 0. Labels are always given in the same order. */
  sample(labels: Labels): Sample {
    const key = JSON.stringify(labels);
    const known = this.samples.get(key);
    if (known !== undefined) return known;
    const sample = this.cleared.get(key) ?? { sharedLabels: labels, value: 0 };
    this.samples.set(key, sample);
    return sample;
  }

  remove(labels: Labels): void {
    this.samples.delete(JSON.stringify(labels));
  }

  /** Forgets all samples; those that come back before the next time keep their text. */
  clear(): void {
    this.cleared = this.samples;
    this.samples = new Map();
  }

  /** Describes the family to the registry. */
  get() {
    const { name, help, type, samples } = this;
    return { name, help, type, aggregator: "sum", values: samples.values() };
  }
}
