/** Counters by what they mean, by name and by label: those of a worker, and those that a device tells. */
import { kPriorityKeys } from "../wire/priority.js";
import type { CounterDescription, NativeWorker } from "./types.js";

/** Meanings are explained in native/base/counters.h. */
export type Meaning = CounterDescription["meaning"];

/** Frames that are lost, whoever or whatever has lost them. */
export const kLosses: readonly Meaning[] = ["drop", "overrun", "refused", "thrown", "down", "fault"];

type Labels = Readonly<Record<string, string | undefined>>;

/** A counter's description, and what it has counted. */
export interface Counter extends Omit<CounterDescription, "help"> {
  value: number;
}

/** Some counters of a run, such as all of one switch. */
export interface CounterView {
  /** Counters that mean one of these. */
  of(...meanings: readonly Meaning[]): CounterView;
  /** Sum of all, or of all that are called `name`. */
  sum(name?: string): number;
  /** Sums by name; what is zero is left out. */
  byName(): Record<string, number>;
  /** Sums by priority of all, or of all that are called `name`; what is zero is left out. */
  byPriority(name?: string): Record<string, number>;
}

export class Counters<Description extends Omit<CounterDescription, "help"> = Omit<CounterDescription, "help">>
  implements CounterView
{
  /** Places by name, and by meaning: some are asked for at every look, among thousands. */
  protected places: Record<"name" | "meaning", ReadonlyMap<string, readonly number[]>> | undefined;

  constructor(
    protected descriptions: readonly Description[],
    protected values: ArrayLike<number>,
  ) {}

  /** Descriptions in the order of the counters. */
  get manifest(): readonly Description[] {
    return this.descriptions;
  }

  /** Value of the counter at this place of the manifest. */
  value(index: number): number {
    return this.values[index] ?? 0;
  }

  *[Symbol.iterator](): Generator<Counter> {
    for (const [i, { name, unit, meaning, labels }] of this.descriptions.entries()) {
      yield { name, unit, meaning, labels, value: this.value(i) };
    }
  }

  /** Counters that mean one of these. */
  of(...meanings: readonly Meaning[]): Counters<Description> {
    const places = meanings.flatMap((meaning) => this.#places("meaning", meaning));
    return this.#among(places.sort((a, b) => a - b));
  }

  /** Counters whose labels include `labels`; a label that is undefined there must be absent. */
  at(labels: Labels): Counters<Description> {
    return this.#among([...this.descriptions.keys()].filter((i) => this.#has(i, labels)));
  }

  /** Counters by their values of a label; "" for those that do not have it. */
  by(label: string): Map<string, Counters<Description>> {
    const places = placesBy(this.descriptions, ({ labels }) => labels[label] ?? "");
    return new Map([...places].map(([value, own]) => [value, this.#among(own)]));
  }

  /** Sum of all, or of all that are called `name`, whose labels include `labels`. */
  sum(name?: string, labels: Labels = {}): number {
    let total = 0;
    for (const i of name === undefined ? this.descriptions.keys() : this.#places("name", name)) {
      if (this.#has(i, labels)) total += this.value(i);
    }
    return total;
  }

  /** Sums by name, in the order of the counters. */
  sums(): Map<string, number> {
    const sums = new Map<string, number>();
    for (const { name, value } of this) sums.set(name, (sums.get(name) ?? 0) + value);
    return sums;
  }

  byName(): Record<string, number> {
    return nonZero(this.sums());
  }

  byPriority(name?: string): Record<string, number> {
    return nonZero(kPriorityKeys.map((priority) => [priority, this.sum(name, { priority })]));
  }

  /** Growth since `before`, which had the same counters in the same order, or since they began; gauges stay as they are. */
  since(before: Counters | undefined): Counters<Description> {
    const grown = this.descriptions.map(({ meaning }, i) =>
      meaning === "gauge" ? this.value(i) : this.value(i) - (before?.value(i) ?? 0),
    );
    return new Counters(this.descriptions, grown);
  }

  #places(key: "name" | "meaning", value: string): readonly number[] {
    this.places ??= {
      name: placesBy(this.descriptions, ({ name }) => name),
      meaning: placesBy(this.descriptions, ({ meaning }) => meaning),
    };
    return this.places[key].get(value) ?? [];
  }

  #has(place: number, labels: Labels): boolean {
    const own: Labels = this.descriptions[place]?.labels ?? {};
    for (const label in labels) if (own[label] !== labels[label]) return false;
    return true;
  }

  #among(places: readonly number[]): Counters<Description> {
    return new Counters(
      places.map((i) => this.descriptions[i] as Description),
      places.map((i) => this.value(i)),
    );
  }
}

/** Counters of a worker. */
export class CounterTable extends Counters<CounterDescription> {
  private time = 0;

  constructor(private readonly worker: Pick<NativeWorker, "manifest" | "readCounters">) {
    super([], []);
  }

  /** Takes the counters as the worker last published them. There are none before its devices live. */
  refresh(): void {
    if (this.descriptions.length === 0) {
      this.descriptions = this.worker.manifest() ?? [];
      this.values = new Float64Array(this.descriptions.length);
      this.places = undefined;
    }
    this.time = this.worker.readCounters(this.values as Float64Array);
  }

  /** The time that these counts are of, ns by the native monotonic clock. Rates are to be taken from it. */
  get asOf(): number {
    return this.time;
  }
}

/** Counters of a device, as it tells them. */
export function countersOf(list: readonly Counter[]): Counters {
  return new Counters(
    list,
    list.map(({ value }) => value),
  );
}

/** The sums that are not zero, in their order. */
export function nonZero(sums: Iterable<readonly [string, number]>): Record<string, number> {
  return Object.fromEntries([...sums].filter(([, sum]) => sum !== 0));
}

/** Why frames were dropped, or CNMs refused: what a counter is called, less the words that all of these have. */
export const reasonOf = (name: string) => name.replace(/^(drop|rp_cnm)_/, "");

/** A queue pair's number, as the label has it. */
export const qpnText = (qpn: number) => `0x${qpn.toString(16).padStart(6, "0")}`;

function placesBy<T>(list: readonly T[], key: (item: T) => string): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (const [i, item] of list.entries()) {
    const own = places.get(key(item));
    if (own === undefined) places.set(key(item), [i]);
    else own.push(i);
  }
  return places;
}
