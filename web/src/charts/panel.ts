/** A panel: a chart, its lines and its thresholds. */
import type { Curve, Range } from "../data/gather.js";
import type { Look } from "./palette.js";

export interface Line extends Look {
  label: string;
  /** Of panels over time. */
  curve?: Curve;
  /** Thin and pale: of second rank. */
  faint?: boolean;
  /** Not drawn itself: the edge of a shade. */
  edge?: "high" | "low";
  /** Which of several runs it is of. */
  run?: number;
  /** Which lane of a panel with lanes, from the top. */
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
  /** They move with what switches hold. */
  thresholds?: () => Threshold[];
  /** Its lines are told apart by nothing else on the page. */
  legend?: boolean;
  /** Not over time: all there is to draw, which does not change, and where the axis ends. */
  fixed?: { x: number[]; unit: string; ys: (number | null)[][]; until: number };
  /** A time of its own, ms, unless a part is zoomed to: there is nothing outside of it. */
  span?: Range;
  /** Lanes share no axis: each is as high as its largest value, and all heights are square roots: a burst leaves room for the rest. */
  lanes?: string[];
  /** Points on the axis, about, where they are fewer than a screen shows. */
  points?: number;
  /** The axis never ends above. */
  most?: number;
  height: number;
}
