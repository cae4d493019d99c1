/** Figures of a run from its time stamps, as perftest defines them (print_report_bw, print_report_lat). Times in us. */
import { max, mean, min, quantileSorted, standardDeviation } from "simple-statistics";

/** Most windows of the search for the peak; perftest's search is quadratic. */
const kMostMarks = 1000;

/** Times when messages were posted and when they completed, thinned out to those that the peak needs. */
export class BandwidthMarks {
  readonly #step: number;
  readonly #posted: number[] = [];
  readonly #completed: number[] = [];

  /** @param messages Number of all messages; one in `step` is remembered. */
  constructor(messages: number) {
    this.#step = Math.max(1, Math.ceil(messages / kMostMarks));
  }

  /** Notes that `count` messages are posted, or about to be, of which `before` were when this was called last. */
  posted(before: number, count: number, time: number): void {
    // Only the first of each step is kept.
    const marks = Math.ceil(count / this.#step) - Math.ceil(before / this.#step);
    for (let i = 0; i < marks; i++) this.#posted.push(time);
  }

  /** Notes the same for those that are complete. */
  completed(before: number, count: number, time: number): void {
    const marks = Math.floor(count / this.#step) - Math.floor(before / this.#step);
    for (let i = 0; i < marks; i++) this.#completed.push(time);
  }

  /** Messages per us in the best window: posted[i] to completed[j], of all i <= j. 0 when nothing has completed. */
  peak(): number {
    let least = Number.POSITIVE_INFINITY;
    for (const [i, begin] of this.#posted.entries()) {
      for (let j = i; j < this.#completed.length; j++) {
        least = Math.min(least, ((this.#completed[j] as number) - begin) / (j - i + 1));
      }
    }
    return least > 0 && Number.isFinite(least) ? this.#step / least : 0;
  }
}

export type Latency = ReturnType<typeof latencyOf>;

/**
 * One way, which is half the time between one message and the next of the same end, us: from the times when it sent them. The first interval does not count: the other end may still get ready in it.
 * All zero when there are fewer than three.
 */
export function latencyOf(sent: readonly number[]) {
  const halves = sent.slice(2).map((time, i) => (time - (sent[i + 1] as number)) / 2);
  if (halves.length === 0) return { min: 0, max: 0, typical: 0, average: 0, deviation: 0, p99: 0, p999: 0 };
  halves.sort((a, b) => a - b);
  return {
    min: min(halves),
    max: max(halves),
    typical: quantileSorted(halves, 0.5),
    average: mean(halves),
    deviation: standardDeviation(halves),
    p99: quantileSorted(halves, 0.99),
    p999: quantileSorted(halves, 0.999),
  };
}

/** Data that was moved in the time that counts. */
export interface BandwidthSample {
  messages: number;
  /** ms */
  time: number;
  /** Messages per ms in the best window; 0: not known. */
  peak: number;
}

/** Takes the middle half of a run for a given time: the ends do not begin and finish together. */
export class SampleWindow {
  /** End of the run, ms, on performance.now()'s clock; no end without `seconds`. */
  readonly end: number;
  readonly #from: number;
  readonly #to: number;
  #first: { messages: number; now: number } | undefined;
  #last: { messages: number; now: number } | undefined;

  constructor(begin: number, seconds = Number.POSITIVE_INFINITY) {
    this.end = begin + seconds * 1000;
    this.#from = begin + seconds * 250;
    this.#to = begin + seconds * 750;
  }

  /** Notes that `messages` are complete, since the beginning. */
  count(messages: number, now: number): void {
    if (now < this.#from) return;
    this.#first ??= { messages, now };
    if (this.#last === undefined || this.#last.now < this.#to) this.#last = { messages, now };
  }

  sample(): BandwidthSample {
    const { first = { messages: 0, now: 0 }, last = { messages: 0, now: 0 } } = {
      first: this.#first,
      last: this.#last,
    };
    return { messages: last.messages - first.messages, time: last.now - first.now, peak: 0 };
  }
}
