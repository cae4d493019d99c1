/**
 * Contents of a figure. Colours are those of Okabe and Ito, which remain apart for colour-blind readers; curves also differ by line style
 * where they are of different kinds.
 */

export interface Curve {
  /** Name in the legend; an empty one is left out there. */
  label: string;
  x: readonly number[];
  /** Values; null where nothing is known. */
  y: readonly (number | null)[];
  /** Default: line. Bars stand beside those of other curves at the same x. */
  kind?: "line" | "bars";
  /** Whiskers from the least to the most, for each x. */
  low?: readonly (number | null)[];
  high?: readonly (number | null)[];
  /** Counts from 0; default: the position. */
  color?: number;
  /** Default: solid, and another where the colours begin again. */
  style?: "solid" | "dashed" | "dotted";
  /** Each value stands until the next. */
  stepped?: boolean;
}

export interface Plot {
  title: string;
  x_label: string;
  y_label: string;
  /** Names of places on the x axis, instead of numbers. */
  x_names?: readonly { x: number; label: string }[];
  /** Default: what the curves need. */
  x_range?: readonly [number, number];
  y_range?: readonly [number, number];
  curves: readonly Curve[];
  /** Horizontal lines, such as the set point of a queue. */
  levels?: readonly { label: string; value: number }[];
  /** Vertical lines, such as the time of a change. */
  marks?: readonly { label: string; x: number }[];
}

/** Plots below each other under one heading. */
export interface PlotColumn {
  heading: string;
  plots: readonly Plot[];
}
