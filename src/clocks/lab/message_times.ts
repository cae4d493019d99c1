/** How long messages of a lab took, of every kind of flow: what this host's own part of it is measured by. */

import { summarize } from "../../result/statistics.js";

/** So many are kept; of more every second, every fourth. */
const kKept = 100_000;

export class MessageTimes {
  private times: number[] = [];
  private stride = 1;
  private count = 0;
  private hops = 0;

  /** One that is complete. @param time Meant ns. @param hops Links that it crossed. */
  take(time: number, hops: number): void {
    this.hops += hops;
    if (this.count++ % this.stride !== 0) return;
    this.times.push(time);
    if (this.times.length < kKept) return;
    this.times = this.times.filter((_, i) => i % 2 === 0);
    this.stride *= 2;
  }

  /** Undefined before the first. */
  summary(): { median: number; hops: number } | undefined {
    return this.count === 0 ? undefined : { median: summarize(this.times).p50, hops: this.hops / this.count };
  }
}
