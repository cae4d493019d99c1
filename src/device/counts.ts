/** Counters of one device as `weir show` has them: since they were cleared. */
import type { CounterDescription } from "../native/types.js";
import type { CounterValue } from "./protocol.js";

export type Count = { description: CounterDescription; value: number };

/** Gauges among the counters: what they show is not a sum, so clearing does not touch them. */
const isGauge = (name: string) => name.endsWith("_watermark_bytes") || name === "rp_cur_flows";

/** Counters of one device since they were cleared; the same ones in the same order each time. */
export class ClearableCounters {
  cleared = new Date();
  private baseline: number[] = [];

  clear(totals: Iterable<Count>): void {
    this.baseline = Array.from(totals, ({ value }) => value);
    this.cleared = new Date();
  }

  since(totals: Iterable<Count>): CounterValue[] {
    return Array.from(totals, ({ description: { name, unit, labels }, value }, i) => ({
      name,
      unit,
      labels,
      value: value - (isGauge(name) ? 0 : (this.baseline[i] ?? 0)),
    }));
  }
}
