/**
 * Stability of the fixed point of N identical flows, by parameters: phase margin, and growth of small deviations (linear.ts).
 *
 * The margin of a loop whose gain never reaches 1 is infinite: null, as where there is no fixed point to speak of.
 */
import { dcqcnFixedPoint, type FixedPoint } from "./fixed_point.js";
import { argument, growth, type Linearised, linearise, loop, magnitude, zerosBeyond } from "./linear.js";
import { type DcqcnModelParameters, inPackets } from "./parameters.js";

export interface Stability {
  fixedPoint: FixedPoint;
  /** null: no queue has the fixed point's p, so there is nothing to be stable; the queue swings about Kmax. */
  stable: boolean | null;
  /** Degrees, more than -180 to 180, the least of all crossovers; null: no fixed point, or no crossover. */
  phase_margin_deg: number | null;
  /** Crossover of that margin, rad/s. */
  crossover_rad_s: number | null;
  /** Growth per second: deviations that are alike in all flows grow or die out as e^(growth t). */
  growth_per_s: number | null;
  /** Growth of deviations by which flows differ: how fast they become equal. */
  growth_between_flows_per_s: number | null;
}

/** Frequencies of the search, rad/s: from far below 1 / (tau' / g) to beyond all delays. */
const kFrequencies = { from: 1e-1, to: 1e7, perDecade: 200 };

/** Stability of `flows` identical flows. Throws RangeError for parameters that the model has no meaning for. */
export function dcqcnStability(parameters: DcqcnModelParameters, flows: number): Stability {
  const fixedPoint = dcqcnFixedPoint(parameters, flows);
  const linear = linearise(inPackets(parameters), flows);
  if (linear === undefined) {
    return {
      fixedPoint,
      stable: null,
      phase_margin_deg: null,
      crossover_rad_s: null,
      growth_per_s: null,
      growth_between_flows_per_s: null,
    };
  }
  const [least] = margins(linear).sort((a, b) => a.margin - b.margin);
  return {
    fixedPoint,
    stable: zerosBeyond(linear.whole, 0) === 0 && zerosBeyond(linear.inner, 0) === 0,
    phase_margin_deg: least?.margin ?? null,
    crossover_rad_s: least?.frequency ?? null,
    growth_per_s: growth(linear.whole),
    growth_between_flows_per_s: growth(linear.inner),
  };
}

/** Margins in degrees at each gain crossover, in the order of frequencies. */
function margins(linear: Linearised): { frequency: number; margin: number }[] {
  const { from, to, perDecade } = kFrequencies;
  const gain = (logarithm: number) => Math.log(magnitude(loop(linear, Math.exp(logarithm))));
  const steps = Math.ceil(Math.log10(to / from) * perDecade);
  const width = Math.log(to / from) / steps;
  const found: { frequency: number; margin: number }[] = [];
  let before = gain(Math.log(from));
  for (let i = 1; i <= steps; i++) {
    const at = Math.log(from) + i * width;
    const now = gain(at);
    if (before > 0 !== now > 0) {
      const frequency = Math.exp(bisect(gain, at - width, at));
      const margin = 180 + (argument(loop(linear, frequency)) * 180) / Math.PI;
      found.push({ frequency, margin: margin > 180 ? margin - 360 : margin });
    }
    before = now;
  }
  return found;
}

function bisect(f: (x: number) => number, low: number, high: number): number {
  const sign = f(low) > 0;
  let [from, to] = [low, high];
  for (let i = 0; i < 60; i++) {
    const middle = (from + to) / 2;
    if (f(middle) > 0 === sign) from = middle;
    else to = middle;
  }
  return (from + to) / 2;
}
