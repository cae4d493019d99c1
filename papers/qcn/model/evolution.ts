/**
 * Rates of N flows at one bottleneck over time, in rounds of one sampling period of the congestion point, T_s at the bandwidth C
 * (150 KB at 1 Gb/s: 1.2 ms). In each round P follows from the rates, and each rate changes by what is expected of it.
 *
 * The model assumes that the rates add up to C, and so that their changes add up to 0; only N - 1 of them are free. P
 * solves that to the last bits, and the rest is taken from all flows alike, so that the sum stays C in every round.
 */
import { feedbackProbability } from "./feedback.js";
import { completeInput, type QcnModelInput } from "./parameters.js";
import { changePerCut } from "./rate_change.js";

/** Flows have converged when the slowest has this part of the rate of the fastest (section V.B). */
const kFair = 0.9;

export interface QcnHorizon {
  /** Time for which the rates are followed, ns. */
  horizon: number;
  /** Time between two points of the series, ns; 0: each round is one. */
  step: number;
  /** End with convergence. */
  untilConverged?: boolean;
}

/** Point k: the time, the rate of flow i at rates[i][k], and P with these rates. The last point is where it ended. */
export interface QcnSeries {
  /** ns */
  time: number[];
  /** bit/s, by flow. */
  rates: number[][];
  probability: number[];
}

/** Rates that no P balances: feedback in every sample does not outweigh the increases. */
export interface QcnUnsolvable {
  /** ns */
  time: number;
  /** bit/s */
  rates: number[];
  /** Bit/s that the rates grow by in sum in a sampling period although every sample has feedback. */
  growth: number;
}

export interface QcnConvergence {
  series: QcnSeries;
  /** When min/max of the rates first reached 0.9, ns; null: not by the horizon. */
  convergedAt: number | null;
  /** Present if the model ended before the horizon; the series has what came before. */
  unsolvable?: QcnUnsolvable;
}

/** Follows the rates from their initial values. Throws RangeError for input that the model has no meaning for. */
export function qcnConvergence(input: QcnModelInput, { horizon, step, untilConverged }: QcnHorizon): QcnConvergence {
  if (!(horizon >= 0 && Number.isFinite(horizon))) throw new RangeError("horizon must be finite and not negative");
  if (!(step >= 0)) throw new RangeError("step must not be negative");
  const { parameters, rates: initial } = completeInput(input);
  const { bandwidth, cp_sample_base } = parameters;
  const period = (cp_sample_base * 8e9) / bandwidth;
  const series: QcnSeries = { time: [], rates: initial.map(() => []), probability: [] };
  const rates = [...initial];
  let convergedAt: number | null = null;
  let nextPoint = 0;
  for (let round = 0; ; round++) {
    const time = round * period;
    const solution = feedbackProbability(parameters, rates);
    if (!solution.solved) {
      return { series, convergedAt, unsolvable: { time, rates, growth: solution.growth } };
    }
    const { probability } = solution;
    if (convergedAt === null && Math.min(...rates) >= kFair * Math.max(...rates)) convergedAt = time;
    const last = time + period > horizon || (untilConverged === true && convergedAt !== null);
    if (last || time >= nextPoint) {
      series.time.push(time);
      series.probability.push(probability);
      for (const [flow, rate] of rates.entries()) series.rates[flow]?.push(rate);
      nextPoint += step;
    }
    if (last) return { series, convergedAt };
    for (const [flow, rate] of rates.entries()) {
      rates[flow] = rate + ((probability * rate) / bandwidth) * changePerCut(parameters, rate, probability);
    }
    const excess = rates.reduce((sum, rate) => sum + rate, -bandwidth);
    for (const [flow, rate] of rates.entries()) rates[flow] = rate - excess / rates.length;
  }
}
