/** Times of a lab's messages, of every kind of flow: this host's own part of them is judged by these. */

import { summarize } from "../../result/statistics.js";

/** Most times that are kept; once there are more, every second, then every fourth is kept. */
const kKept = 100_000;

export class MessageTimes {
  private times: number[] = [];
  private stride = 1;
  private count = 0;
  private hops = 0;

  /** Takes a complete message. @param time Meant ns. @param hops Links that it crossed. */
  take(time: number, hops: number): void {
    this.hops += hops;
    if (this.count++ % this.stride !== 0) return;
    this.times.push(time);
    if (this.times.length < kKept) return;
    this.times = this.times.filter((_, i) => i % 2 === 0);
    this.stride *= 2;
  }

  /** Returns undefined before the first message. */
  summary(): { median: number; hops: number } | undefined {
    return this.count === 0 ? undefined : { median: summarize(this.times).p50, hops: this.hops / this.count };
  }
}
