/**
 * The factors of equations 5 to 9, exact where p or a rate is 0 and where p is 1.
 *
 * With l = ln(1 - p), which log1p gives without loss for small p,
 *
 *     1 - (1-p)^n            = -expm1(n l)                                marked among n packets        (7, 8, 9)
 *     (1-p)^n                = exp(n l)                                   survived n packets                 (8)
 *     R p / ((1-p)^-B - 1)   = (R/B) s w(-B l)                            byte counter, events/s          (8, 9)
 *     R p / ((1-p)^-TR - 1)  = (1/T) s w(-T R l)                          timer, events/s                 (8, 9)
 *     s = p / -l,   w(u) = u / expm1(u)
 *
 * s and w are 1 at 0 and 0 at p = 1 and u = infinity, so nothing is divided by 0: without marks the byte counter has R/B events
 * in a second and the timer 1/T, also at a rate of 0.
 *
 * Derivation: a marked packet starts both counters anew, and the j-th event of the byte counter after it needs
 * j B packets without a mark, so there are sum_j R p (1-p)^(jB) = R p / ((1-p)^-B - 1) events in a second; of these, those with
 * j > F raise the target: (1-p)^(FB) of them. The same with T R for B is the timer. This is how the print of 8 and 9 is read,
 * whose exponents "FTRC", "-TRC" are F T R_C and -T R_C.
 */
import type { PacketParameters } from "./parameters.js";

/** Equation 5 in pieces: below Kmin, from there to Kmax, and beyond it, where it jumps to 1. */
export type Regime = 0 | 1 | 2;

export function regimeOf({ kmin, kmax }: Pick<PacketParameters, "kmin" | "kmax">, queue: number): Regime {
  if (queue > kmax) return 2;
  return queue > kmin ? 1 : 0;
}

/** Equation 5: probability that a packet is marked at `queue` packets, by the piece `regime` of it. */
export function marking(
  { kmin, kmax, pmax }: Pick<PacketParameters, "kmin" | "kmax" | "pmax">,
  queue: number,
  regime: Regime,
): number {
  if (regime !== 1) return regime / 2;
  return kmax > kmin ? Math.min(pmax, Math.max(0, ((queue - kmin) / (kmax - kmin)) * pmax)) : 0;
}

/** ln(1 - p); -Infinity for p = 1. */
export function logUnmarked(p: number): number {
  return Math.log1p(-p);
}

/** p / -ln(1 - p). */
export function spread(p: number): number {
  return p === 0 ? 1 : p / -Math.log1p(-p);
}

/** u / (e^u - 1) for u >= 0. */
export function recurrence(u: number): number {
  if (u === 0) return 1;
  return u > 745 ? 0 : u / Math.expm1(u);
}

/** 1 - (1-p)^n with l = ln(1-p). Without packets none is marked. */
export function marked(n: number, l: number): number {
  return n === 0 ? 0 : -Math.expm1(n * l);
}

/** (1-p)^n with l = ln(1-p). */
export function survived(n: number, l: number): number {
  return n === 0 ? 1 : Math.exp(n * l);
}

/** Events in a second of the counters that raise the rate, and those of them that are beyond fast recovery. */
export interface Increases {
  all: number;
  additive: number;
}

/** Increases of a flow that sends at `rate` packets/s, with a probability `p` of marks; writes into `out`. */
export function increases(parameters: PacketParameters, p: number, rate: number, out: Increases): Increases {
  const { bytes, timer, stages } = parameters;
  const l = logUnmarked(p);
  const s = spread(p);
  const byTime = s * recurrence(timer * rate === 0 ? 0 : -timer * rate * l);
  const timed = byTime / timer;
  out.all = timed;
  out.additive = timed * survived(stages * timer * rate, l);
  const perSecond = rate / bytes;
  if (perSecond > 0) {
    const counted = perSecond * s * recurrence(-bytes * l);
    out.all += counted;
    out.additive += counted * survived(stages * bytes, l);
  }
  return out;
}
