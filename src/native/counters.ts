/** Reading counters by name: those of a worker by their labels, those of a simulation by their tables. */
import { kPriorities } from "../wire/priority.js";
import type { CounterDescription, NativeWorker } from "./types.js";

/** Some counters of a run, such as all of one switch. */
export interface CounterView {
  /** Sum of all that are called `name`. */
  sum(name: string): number;
  /** Sums by name of those whose name begins with `prefix`, which is cut off; what is zero is left out. */
  group(prefix: string): Record<string, number>;
  /** Sums by priority of those called `name`; what is zero is left out. */
  byPriority(name: string): Record<string, number>;
}

export class CounterTable {
  private descriptions: CounterDescription[] = [];
  private values = new Float64Array(0);
  private time = 0;
  /** By name: some are asked for at every look, among thousands. */
  private readonly places = new Map<string, number[]>();

  constructor(private readonly worker: Pick<NativeWorker, "manifest" | "readCounters">) {}

  /** Takes the counters as the worker last published them. */
  refresh(): void {
    if (this.descriptions.length === 0) {
      this.descriptions = this.worker.manifest() ?? [];
      this.values = new Float64Array(this.descriptions.length);
      this.descriptions.forEach(({ name }, i) => {
        const places = this.places.get(name);
        if (places === undefined) this.places.set(name, [i]);
        else places.push(i);
      });
    }
    this.time = this.worker.readCounters(this.values);
  }

  /** The time that these counts are of, ns by the native monotonic clock. Rates are to be taken from it. */
  get asOf(): number {
    return this.time;
  }

  /** Sum of all counters called `name` whose labels include `labels`. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    let total = 0;
    for (const i of this.places.get(name) ?? []) {
      if (includes((this.descriptions[i] as CounterDescription).labels, labels)) total += this.value(i);
    }
    return total;
  }

  /** The counters whose labels include `labels`, less those that have a label called `without`. */
  view(labels: Readonly<Record<string, string>> = {}, without?: string): CounterView {
    const own = [...this.entries()].filter(
      ({ description }) =>
        includes(description.labels, labels) && (without === undefined || description.labels[without] === undefined),
    );
    const total = (wanted: (description: CounterDescription) => boolean) =>
      own.reduce((sum, { description, value }) => sum + (wanted(description) ? value : 0), 0);
    return {
      sum: (name) => total((description) => description.name === name),
      group: (prefix) =>
        nonZero(
          [...new Set(own.map(({ description }) => description.name))]
            .filter((name) => name.startsWith(prefix))
            .map((name) => [name.slice(prefix.length), total((description) => description.name === name)]),
        ),
      byPriority: (name) =>
        nonZero(
          kPriorities.map((priority) => [
            String(priority),
            total((description) => description.name === name && description.labels.priority === String(priority)),
          ]),
        ),
    };
  }

  /** In the order of the manifest; none before devices live. */
  get manifest(): readonly CounterDescription[] {
    return this.descriptions;
  }

  /** Of the counter at this place of the manifest. */
  value(index: number): number {
    return this.values[index] ?? 0;
  }

  *entries(): Generator<{ description: CounterDescription; value: number }> {
    for (let i = 0; i < this.descriptions.length; i++) {
      yield { description: this.descriptions[i] as CounterDescription, value: this.values[i] as number };
    }
  }
}

/** The sums that are not zero, in their order. */
export function nonZero(sums: Iterable<readonly [string, number]>): Record<string, number> {
  return Object.fromEntries([...sums].filter(([, sum]) => sum !== 0));
}

function includes(labels: Readonly<Record<string, string>>, some: Readonly<Record<string, string>>): boolean {
  return Object.entries(some).every(([key, value]) => labels[key] === value);
}
