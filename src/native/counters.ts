/** Reading a worker's counters by name and labels. */
import type { CounterDescription, NativeWorker } from "./types.js";

export class CounterTable {
  private descriptions: CounterDescription[] = [];
  private values = new Float64Array(0);

  constructor(private readonly worker: NativeWorker) {}

  /** Takes the counters as the worker last published them. */
  refresh(): void {
    if (this.descriptions.length === 0) {
      this.descriptions = this.worker.manifest() ?? [];
      this.values = new Float64Array(this.descriptions.length);
    }
    this.worker.readCounters(this.values);
  }

  /** Sum of all counters called `name` whose labels include `labels`. */
  sum(name: string, labels: Readonly<Record<string, string>> = {}): number {
    let total = 0;
    for (const { description, value } of this.entries()) {
      if (description.name === name && matches(description, labels)) total += value;
    }
    return total;
  }

  *entries(): Generator<{ description: CounterDescription; value: number }> {
    for (let i = 0; i < this.descriptions.length; i++) {
      yield { description: this.descriptions[i] as CounterDescription, value: this.values[i] as number };
    }
  }
}

function matches(description: CounterDescription, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(labels).every(([key, value]) => description.labels[key] === value);
}
