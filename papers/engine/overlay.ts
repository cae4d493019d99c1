/**
 * Clocks laid over each other: for each trace the curves of all clocks that have it and of other simulators, in one plot, and how
 * far each two of them are apart (trace.ts).
 */
import type { Curve, Plot, PlotColumn } from "../../src/result/report/plot.js";
import type { Clock, Experiment, Trace, TraceValues } from "./experiment.js";
import type { References } from "./reference.js";
import { meanDifference } from "./trace.js";
import type { ClockEvidence } from "./verdict.js";

export interface OverlaidCurve {
  /** The clock, or the label of a reference. */
  source: string;
  reference: boolean;
  /** False: a run of the clock is invalid. */
  valid: boolean;
  values: TraceValues;
}

/** Difference of two curves over the range of the trace, in the unit of y; null: they have no part in common. */
export interface Difference {
  between: readonly [string, string];
  mean_absolute: number | null;
}

export interface Overlay {
  name: string;
  trace: Trace;
  /** Clocks in their order, then references; at least one. */
  curves: readonly OverlaidCurve[];
  /** Clocks with each other, and each clock with each reference. */
  differences: readonly Difference[];
}

/** A clock looks the same in every figure. */
const kLooks: Readonly<Record<Clock, Pick<Curve, "color" | "style">>> = {
  wire: { color: 0, style: "dashed" },
  sim: { color: 1, style: "solid" },
  model: { color: 2, style: "dotted" },
};
const kReferences = { color: 3, styles: ["solid", "dashed", "dotted"] } as const;

/** Returns those traces that any clock or reference has. */
export function overlaysOf(
  { traces = {} }: Experiment,
  evidence: readonly ClockEvidence[],
  references: References,
): Overlay[] {
  return Object.entries(traces).flatMap(([name, trace]) => {
    const clocks = evidence.flatMap(({ clock, observation, doubt }) => {
      const values = observation?.traces?.[name];
      return values === undefined ? [] : [{ source: clock, reference: false, valid: doubt === undefined, values }];
    });
    const others = (references[name] ?? []).map(({ label, values }) => {
      return { source: label, reference: true, valid: true, values };
    });
    const pairs = [
      ...clocks.flatMap((one, i) => clocks.slice(i + 1).map((other) => [one, other] as const)),
      ...clocks.flatMap((one) => others.map((other) => [one, other] as const)),
    ];
    const differences = pairs.map(([one, other]) => difference(one, other, trace));
    return clocks.length + others.length === 0 ? [] : [{ name, trace, curves: [...clocks, ...others], differences }];
  });
}

function difference(one: OverlaidCurve, other: OverlaidCurve, { x_range }: Trace): Difference {
  const mean = meanDifference(one.values, other.values, x_range);
  return { between: [one.source, other.source], mean_absolute: Number.isNaN(mean) ? null : mean };
}

/** The plots of traces that have at least two curves; undefined where none has. */
export function overlayColumn(overlays: readonly Overlay[]): PlotColumn | undefined {
  const plots = overlays.filter(({ curves }) => curves.length > 1).map(plotOf);
  return plots.length === 0 ? undefined : { heading: "all clocks", plots };
}

function plotOf({ trace, curves }: Overlay): Plot {
  const { title, x_label, y_label, x_range } = trace;
  const clocks = curves.filter(({ reference }) => !reference).length;
  const drawn = curves.map((curve, i): Curve => {
    const { source, reference, valid, values } = curve;
    const label = valid ? source : `${source}, invalid`;
    return { label, ...within(values, x_range), ...(reference ? lookOf(i - clocks) : kLooks[source as Clock]) };
  });
  return { title, x_label, y_label, x_range, curves: drawn };
}

/** `position` of a reference, from 0. */
function lookOf(position: number): Pick<Curve, "color" | "style"> {
  const { color, styles } = kReferences;
  return { color: color + position, style: styles[position % styles.length] as (typeof styles)[number] };
}

/** Points outside must not stretch the y axis. One point on each side lets the curve reach the edges. */
function within({ x, y }: TraceValues, [low, high]: readonly [number, number]): TraceValues {
  const first = x.findIndex((at) => at >= low);
  const from = first < 0 ? x.length : Math.max(0, first - 1);
  const last = x.findIndex((at) => at > high);
  const to = last < 0 ? x.length : last + 1;
  return { x: x.slice(from, to), y: y.slice(from, to) };
}
