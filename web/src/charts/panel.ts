/** A panel: a chart, its lines and its thresholds. */
import type { Curve, Range } from "../data/gather.js";
import type { Look } from "./palette.js";

export interface Line extends Look {
  label: string;
  /** Curve of a panel over time. */
  curve?: Curve;
  /** Makes the line thin and pale: it is of second rank. */
  faint?: boolean;
  /** Makes the line the edge of a shade, not drawn itself. */
  edge?: "high" | "low";
  /** Index of its run among several. */
  run?: number;
  /** Index of its lane in a panel with lanes, from the top. */
  lane?: number;
}

/** A horizontal line, in the unit of the panel. */
export interface Threshold {
  label: string;
  value: number;
}

export interface Panel {
  id: string;
  title: string;
  note: string | (() => string);
  unit: string;
  lines: Line[];
  /** Returns thresholds, which move with the fill of switches. */
  thresholds?: () => Threshold[];
  /** True if nothing else on the page tells its lines apart. */
  legend?: boolean;
  /** Points of a panel that is not over time and does not change, and the end of the axis. */
  fixed?: { x: number[]; unit: string; ys: (number | null)[][]; until: number };
  /** A time of its own, ms, outside of which there is nothing; a zoom overrides it. */
  span?: Range;
  /** Lanes share no axis: each is as high as its largest value, and all heights are square roots: a burst leaves room for the rest. */
  lanes?: string[];
  /** Approximate number of points on the axis, if they are fewer than a screen shows. */
  points?: number;
  /** Largest value at which the axis may end. */
  most?: number;
  height: number;
}
