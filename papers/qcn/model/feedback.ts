/**
 * p[F_b > 0], the probability that a sample of the congestion point tells its source to cut, from sum_i E(dR_i) = 0: the queue
 * stays where it is, so do the rates in sum (section IV.B).
 *
 * There is one solution or none. sum_i E(dR_i) / P = sum_i R_i/C changePerCut_i, and changePerCut_i strictly decreases in P: a
 * larger P only takes weight from increases, all of which are positive. It begins at infinity, so a solution in 0 < P <= 1
 * exists if and only if the sum is not positive at P = 1. Where it is, feedback in every sample does not outweigh the
 * increases: too many flows, too large a step or too short a cycle, and a queue that grows until F_b does.
 *
 * The paper says that a timer of 15 ms does not always have a solution, as it is so slow. By its own equation it has one
 * whenever a faster timer has one: the increases between two cuts become fewer. It is the fast timer that can have none.
 */

import type { QcnModelParameters } from "./parameters.js";
import { changePerCut } from "./rate_change.js";

/** P; or, where none balances the rates, the bit/s by which they then grow in sum in a sampling period at P = 1. */
export type FeedbackSolution = { solved: true; probability: number } | { solved: false; growth: number };

/** P is found to this part of itself. */
const kTolerance = 1e-13;

/** P for flows that send at `rates`, bit/s. */
export function feedbackProbability(parameters: QcnModelParameters, rates: readonly number[]): FeedbackSolution {
  const balance = (probability: number) =>
    rates.reduce((sum, rate) => sum + (rate / parameters.bandwidth) * changePerCut(parameters, rate, probability), 0);
  const growth = balance(1);
  if (growth > 0) return { solved: false, growth };
  let high = 1;
  let low = 0.5;
  while (balance(low) <= 0) {
    high = low;
    low /= 2;
  }
  return { solved: true, probability: root(balance, low, high) };
}

/** Finds where `f` is 0 between `low`, at which it is positive, and `high`, at which it is not: regula falsi, Illinois variant. */
function root(f: (x: number) => number, low: number, high: number): number {
  let above = f(low);
  let below = f(high);
  let side = 0;
  while (high - low > kTolerance * high) {
    const x = (low * below - high * above) / (below - above);
    if (x <= low || x >= high) return x;
    const y = f(x);
    if (y === 0) return x;
    if (y > 0) {
      low = x;
      above = y;
      if (side > 0) below /= 2;
      side = 1;
    } else {
      high = x;
      below = y;
      if (side < 0) above /= 2;
      side = -1;
    }
  }
  return (low + high) / 2;
}
