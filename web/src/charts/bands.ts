/** Draws many curves of one run as three: their mean, and between the lowest and the highest a shade through which other runs are seen. */
import type { Curve } from "../data/gather.js";
import type { Look } from "./palette.js";
import type { Line } from "./panel.js";

/** Most lines of several runs that a reader can follow. */
const kLinesCompared = 6;
/** Parts of the time that a band over samples has: in each of them it goes from the lowest to the highest. */
export const kBandPoints = 160;

/** Tells whether flows are drawn as bands. @param chosen The reader's choice to have each flow drawn. */
export function areBanded(runs: number, flows: number, chosen: boolean | null): boolean {
  return runs > 1 && flows > 1 && (chosen === null ? runs * flows > kLinesCompared : !chosen);
}

interface Banded {
  look: Look;
  run: number;
  label: string;
}

/** Band over flows, at each moment. */
export function bandOverFlows(curve: Omit<Curve, "across">, banded: Banded): Line[] {
  return bandOf(banded, {
    high: { ...curve, across: "max" },
    low: { ...curve, across: "min" },
    mean: { ...curve, across: "mean" },
  });
}

/** Band over the samples of each part of the time. */
export function bandOverTime(curve: Omit<Curve, "fold">, banded: Banded): Line[] {
  return bandOf(banded, {
    high: { ...curve, fold: "max" },
    low: { ...curve, fold: "min" },
    mean: { ...curve, fold: "mean" },
  });
}

/** The shade is drawn with the higher edge, and the mean over it. */
function bandOf({ look, run, label }: Banded, { high, low, mean }: Record<"high" | "low" | "mean", Curve>): Line[] {
  return [
    { ...look, run, label: `${label}, highest`, edge: "high", curve: high },
    { ...look, run, label: `${label}, lowest`, edge: "low", curve: low },
    { ...look, run, label, curve: mean },
  ];
}

/** Places of the edges among the lines. */
export function bandEdges(lines: readonly Line[]): { high: number; low: number; color: string }[] {
  return lines.flatMap(({ edge, color }, high) => (edge === "high" ? [{ high, low: high + 1, color }] : []));
}
