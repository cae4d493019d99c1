/** Lanes of a chart of events: each kind as high as its own largest value, all heights square roots. */
import { largest } from "../data/gather.js";

/** Part of a lane that its largest value takes. */
const kLaneFill = 0.82;

/** Height of a value in its lane. */
const laneHeight = (value: number): number => Math.sqrt(value);

/** Value that gives a lane its height, and the largest value of the warm-up if that is beyond it. */
export interface LanePeak {
  peak: number;
  start: number | undefined;
}

/**
 * Largest value after the warm-up in view, if there was any, and the start is cut at the upper edge of the lane: all senders at
 * line rate in the first moment would leave the rest of a run flat.
 *
 * @param warmup Its end, on the axis of x.
 */
export function lanePeak(
  x: readonly number[],
  lines: readonly (readonly (number | null)[])[],
  warmup: number,
): LanePeak {
  const all = lines.reduce((most, line) => Math.max(most, largest(line)), 0);
  const from = x.findIndex((time) => time > warmup);
  const later = from < 0 ? 0 : lines.reduce((most, line) => Math.max(most, largest(line, from)), 0);
  return later > 0 && all > later ? { peak: later, start: all } : { peak: all, start: undefined };
}

/** Height of a value that ends at the edge of the lane, since the next lane is above. */
export function laneHeightWithin(value: number | null, lane: LanePeak | undefined): number | null {
  if (value === null) return null;
  const most = lane?.start === undefined ? value : lane.peak / kLaneFill ** 2;
  return laneHeight(Math.min(value, most));
}

/** Bounds of a scale that puts 0 at the lower edge of lane `lane` of `count` and `peak` below its upper edge. */
export function laneRange(lane: number, count: number, peak: number): [number, number] {
  const height = laneHeight(peak > 0 ? peak : 1) / kLaneFill;
  const below = count - 1 - lane;
  return [-below * height, (count - below) * height];
}
