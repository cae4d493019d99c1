/**
 * Two flows at one bottleneck of 1 Gb/s, as the figures of Shu et al. have them: rates over time by the paper's model, and how
 * they are drawn.
 */

import type { Curve, Plot } from "../../src/result/report/plot.js";
import { plot } from "../engine/study.js";
import { type QcnConvergence, type QcnModelInput, qcnConvergence } from "./model/index.js";

/** Setup of the paper's figures (sections III and V). */
export const LINK = 1e9;
export const FAIR = 0.9;
export const CONVERGED =
  "Converged: the smaller rate first has 0.9 of the larger (the paper's line of epsilon = 0.9, section V-B).";

/** Rates at the start in all of the analysis (section V-B), bit/s. */
export const UNEVEN = [900e6, 100e6] as const;

/** Horizon beyond the slowest of the curves, ns; most of the figures end at 20 s. */
const kHorizon = 30e9;
const kStep = 50e6;

export interface ModelCase {
  /** "1/16": as in the legend. */
  label: string;
  input: Omit<QcnModelInput, "rates">;
  rates?: readonly number[];
}

export interface ModelRun {
  label: string;
  convergence: QcnConvergence;
  /** s; Infinity: not within half a minute, or not at all. */
  converged: number;
}

/** `untilConverged`: what comes after is not asked for. */
export function followModel({ label, input, rates = UNEVEN }: ModelCase, untilConverged = false): ModelRun {
  const convergence = qcnConvergence({ ...input, rates }, { horizon: kHorizon, step: kStep, untilConverged });
  const { convergedAt } = convergence;
  return { label, convergence, converged: convergedAt === null ? Number.POSITIVE_INFINITY : convergedAt / 1e9 };
}

/** Both rates of each case: one colour for a case, the lower rate dashed. */
export function modelCurves(runs: readonly ModelRun[]): Curve[] {
  return runs.flatMap(({ label, convergence: { series } }, color) => {
    const x = series.time.map((time) => time / 1e9);
    return series.rates.map(
      (rates, flow): Curve => ({
        label: runs.length === 1 ? `model, RP ${flow + 1}` : flow === 0 ? label : "",
        x,
        y: rates.map((rate) => rate / 1e6),
        color,
        style: flow === 0 ? "solid" : "dashed",
      }),
    );
  });
}

/** Rates, and how even they are with the paper's line of 0.9. */
export function modelPlots(runs: readonly ModelRun[], seconds = 20): Plot[] {
  return [
    plot("Rates: RP 1 solid, RP 2 dashed", ["time, s", 0, seconds], ["rate, Mb/s", 0, 1000], modelCurves(runs), {
      levels: [{ label: "fair share", value: LINK / 2e6 }],
    }),
    evennessPlot(
      runs.map(({ label, convergence: { series } }) => ({
        label,
        x: series.time.map((time) => time / 1e9),
        y: series.time.map((_, i) => {
          const here = series.rates.map((rates) => rates[i] as number);
          return Math.min(...here) / Math.max(...here);
        }),
      })),
      seconds,
    ),
  ];
}

/** The plot has the paper's line of 0.9. */
export function evennessPlot(curves: readonly Curve[], seconds: number): Plot {
  return plot("Evenness: smallest / largest rate", ["time, s", 0, seconds], ["epsilon", 0, 1.05], curves, {
    levels: [{ label: "epsilon 0.9", value: FAIR }],
  });
}
