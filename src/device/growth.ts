/** Growth of counters since they were last looked at, summed up in tallies. */
import type { CounterTable } from "../native/counters.js";
import type { CounterDescription } from "../native/types.js";

export interface Tally {
  /** Growth since the look before. */
  grown: number;
  /** Time between the two looks, ns, by the clock of the counters. */
  elapsed: number;
}

/** A tally in which a counter counts, and its factor. */
export type Share = readonly [tally: Tally, weight: number];

interface Counted {
  index: number;
  last: number;
  shares: readonly Share[];
}

export class Growth {
  private readonly counted: Counted[] = [];
  private readonly tallies = new Set<Tally>();
  private last: number;

  /** Counts from now on. `table` must have a manifest. */
  constructor(
    private readonly table: CounterTable,
    sharesOf: (counter: CounterDescription) => readonly Share[],
  ) {
    this.last = table.asOf;
    table.manifest.forEach((description, index) => {
      const shares = sharesOf(description);
      if (shares.length === 0) return;
      this.counted.push({ index, last: table.value(index), shares });
      for (const [tally] of shares) this.tallies.add(tally);
    });
  }

  take(): void {
    const elapsed = this.table.asOf - this.last;
    this.last = this.table.asOf;
    for (const tally of this.tallies) Object.assign(tally, { grown: 0, elapsed });
    for (const counter of this.counted) {
      const value = this.table.value(counter.index);
      if (value === counter.last) continue;
      for (const [tally, weight] of counter.shares) tally.grown += (value - counter.last) * weight;
      counter.last = value;
    }
  }
}

export const tally = (): Tally => ({ grown: 0, elapsed: 0 });
/** Rate of a tally of bytes, bit/s; 0 before any time has passed. */
export const bitRate = ({ grown, elapsed }: Tally): number => (elapsed > 0 ? Math.round((grown * 8e9) / elapsed) : 0);
