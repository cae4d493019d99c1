/** The model's sums and state machine written out as the paper states them, term by term: slow, and independent of src/. */
import type { QcnModelParameters } from "../model/index.js";

/** Terms of no weight beside the first ones. */
const kTail = 1e-18;

/** Cycles that have to pass before increase j, in cycles of fast recovery: j, then (j+5)/2 for the baseline (18, 19). */
const cycles = ({ rpg_threshold, ai_cycle }: QcnModelParameters, j: number) =>
  Math.min(j, rpg_threshold) + Math.max(0, j - rpg_threshold) * ai_cycle;

/** Samples of the congestion point in a cycle: C/R (17), or C T_t / T_s. */
export function samplesPerCycle(parameters: QcnModelParameters, rate: number): number {
  const { variant, bandwidth, rpg_time_reset, rpg_byte_reset, cp_sample_base } = parameters;
  const sample = (8 * cp_sample_base) / bandwidth;
  return (variant === "qcn-t" ? rpg_time_reset / 1e9 : (8 * rpg_byte_reset) / rate) / sample;
}

/** CR before each increase of a reaction point, and the increases, by the rules of equations 2, 3, 4 and 27. */
export class ReactionPoint {
  readonly #parameters: QcnModelParameters;
  readonly #steps: { before: number; increase: number }[] = [];
  #target: number;
  #rate: number;

  /** `current`: CR when it was cut. */
  constructor(parameters: QcnModelParameters, current: number) {
    this.#parameters = parameters;
    this.#target = current;
    this.#rate = current * (1 - parameters.gd * parameters.feedback);
  }

  /** Increase `j`, from 1. */
  step(j: number): { before: number; increase: number } {
    const { variant, rpg_threshold, rpg_ai_rate } = this.#parameters;
    while (this.#steps.length < j) {
      if (this.#steps.length >= rpg_threshold) this.#target += rpg_ai_rate;
      const before = this.#rate;
      this.#rate = variant === "qcn-aimd" ? before + rpg_ai_rate : (before + this.#target) / 2;
      this.#steps.push({ before, increase: this.#rate - before });
    }
    return this.#steps[j - 1] as { before: number; increase: number };
  }
}

/** R_inc,j of a reaction point whose rate is `rate` right before increase j. All is linear in the rate before the cut. */
export function increasesAt(parameters: QcnModelParameters, rate: number): (j: number) => number {
  const fromNothing = new ReactionPoint(parameters, 0);
  const perRate = new ReactionPoint({ ...parameters, rpg_ai_rate: 0 }, 1);
  return (j) => {
    const beforeCut = (rate - fromNothing.step(j).before) / perRate.step(j).before;
    return fromNothing.step(j).increase + beforeCut * perRate.step(j).increase;
  };
}

/** E(dR) / p by adding up its terms (6). `increase`: R_inc,j. */
export function summed(
  parameters: QcnModelParameters,
  rate: number,
  probability: number,
  increase: (j: number) => number,
): number {
  const { bandwidth, gd, feedback } = parameters;
  const p = (probability * rate) / bandwidth;
  const samples = samplesPerCycle(parameters, rate);
  let sum = 0;
  for (let j = 1; ; j++) {
    const periods = parameters.variant === "qcn-aimd" ? j : cycles(parameters, j);
    const weight = (1 - p) ** (periods * samples);
    sum += increase(j) * weight;
    if (weight < kTail) return sum - gd * feedback * rate;
  }
}

/** R_inc,j of equations 21 and 22. */
export function simplified({ gd, feedback, rpg_ai_rate, rpg_threshold }: QcnModelParameters, rate: number, j: number) {
  const recovery = (gd * feedback * rate) / 2 ** j;
  return j <= rpg_threshold ? recovery : recovery + (1 - 1 / 2 ** (j - rpg_threshold)) * rpg_ai_rate;
}
