/**
 * The fixed point of N identical flows: equation 10, and p, alpha, R_T and q from equations 6 to 9 with left-hand
 * sides of 0 (section 5.1).
 *
 * With R = C/N, a = 1 - (1-p)^(tau R), a' = 1 - (1-p)^(tau' R), E increases in a second and A additive ones (terms.ts)
 *
 *     alpha     = a'                                           (7)
 *     R_T - R   = R alpha a / (tau E)                          (9)
 *     R a' a^2 / tau^2 = R_AI E A                              (8) with the two above
 *
 * **One solution, always.** The left side increases strictly in p, from 0 at p = 0 to R / tau^2 at 1. Both E and A decrease
 * strictly in p (p / ((1-p)^-n - 1) does: its denominator is convex and 0 at p = 0), from a positive value to 0. So there is one
 * p in 0 < p < 1, and with it one alpha and one R_T.
 *
 * q follows from equation 5 where p <= Pmax: q = Kmin + p / Pmax (Kmax - Kmin). A larger p is that of no queue: equation 5 jumps
 * from Pmax to 1 at Kmax, and the queue swings about Kmax. The same with cut-off marking (Kmin = Kmax).
 */
import { checkParameters, type DcqcnModelParameters, inPackets, type PacketParameters } from "./parameters.js";
import { type Increases, increases, logUnmarked, marked } from "./terms.js";

export interface FixedPoint {
  p: number;
  alpha: number;
  /** R_C = C/N, bit/s. */
  rate_bps: number;
  /** R_T, bit/s. The equations know no line rate; this may exceed it. */
  target_rate_bps: number;
  /** Bytes; null: no queue has this p. */
  queue_bytes: number | null;
}

/** The fixed point in packets and seconds. */
export interface PacketFixedPoint {
  p: number;
  alpha: number;
  rate: number;
  target: number;
  /** null: no queue has this p. */
  queue: number | null;
}

/** Smallest p that is tried: far below that of any rates that fit into doubles. */
const kLeast = 1e-300;

/** Fixed point of `flows` identical flows. Throws RangeError for parameters that the model has no meaning for. */
export function dcqcnFixedPoint(parameters: DcqcnModelParameters, flows: number): FixedPoint {
  checkParameters(parameters);
  if (!(Number.isInteger(flows) && flows >= 1)) throw new RangeError("flows must be a whole number from 1 on");
  const { p, alpha, target, queue } = packetFixedPoint(inPackets(parameters), flows);
  return {
    p,
    alpha,
    rate_bps: parameters.bandwidth / flows,
    target_rate_bps: target * 8 * parameters.packet,
    queue_bytes: queue === null ? null : queue * parameters.queued,
  };
}

export function packetFixedPoint(parameters: PacketParameters, flows: number): PacketFixedPoint {
  const { capacity, interval, alphaInterval, kmin, kmax, pmax } = parameters;
  const rate = capacity / flows;
  // The search is over the logarithm of p, whose size is not known beforehand.
  let low = Math.log(kLeast);
  let high = 0;
  for (let middle = low / 2; middle > low && middle < high; middle = low + (high - low) / 2) {
    if (excess(parameters, Math.exp(middle), rate) < 0) low = middle;
    else high = middle;
  }
  const p = Math.exp(high);
  const l = logUnmarked(p);
  const alpha = marked(alphaInterval * rate, l);
  const events: Increases = increases(parameters, p, rate, { all: 0, additive: 0 });
  const target = rate + (rate * alpha * marked(interval * rate, l)) / (interval * events.all);
  const queue = p <= pmax && kmax > kmin ? kmin + (p / pmax) * (kmax - kmin) : null;
  return { p, alpha, rate, target, queue };
}

/** Decreases less increases, for a flow at `rate`: strictly increasing in p, and 0 at the fixed point. */
export function excess(parameters: PacketParameters, p: number, rate: number): number {
  const { interval, alphaInterval, increase } = parameters;
  const l = logUnmarked(p);
  const cuts = marked(interval * rate, l) / interval;
  const { all, additive } = increases(parameters, p, rate, { all: 0, additive: 0 });
  return rate * marked(alphaInterval * rate, l) * cuts * cuts - increase * all * additive;
}
