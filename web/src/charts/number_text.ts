/** Formats numbers and times for charts. */
import type { Panel } from "./panel.js";

/** A number of at most four digits. */
export function short(value: number): number {
  return Number(value.toPrecision(4));
}

/** The place of the cursor on the horizontal axis of a panel. */
export function placeText({ fixed }: Panel, x: number, largest: number): string {
  return fixed ? `${short(x)} ${fixed.unit}` : timeText(x, largest);
}

/** Texts of ticks, in ms, on a time axis that ends at `largest`; the first has the unit. */
export function timeTexts(splits: readonly number[], largest: number): string[] {
  const unit = timeUnit(largest);
  return splits.map((ms, i) => `${short(ms / unit.ms)}${i === 0 ? ` ${unit.name}` : ""}`);
}

function timeUnit(largestMs: number): { name: string; ms: number } {
  return largestMs > 5000 ? { name: "s", ms: 1000 } : { name: "ms", ms: 1 };
}

function timeText(ms: number, largestMs: number): string {
  const unit = timeUnit(largestMs);
  return `${(ms / unit.ms).toFixed(2)} ${unit.name}`;
}
