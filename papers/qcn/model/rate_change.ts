/**
 * Expected change of a rate in one sampling period of the congestion point.
 *
 * A reaction point that sends at R of the bandwidth C is sampled with probability R/C, and the feedback is not zero with
 * probability P = p[F_b > 0]; so p = P R/C is its probability to be told to cut in one period (equation 8). Each cut starts
 * cycles j = 1, 2, ... at whose ends the rate increases, until the next cut. Cycle j ends when n_j periods have gone by since
 * the cut, and is reached with probability (1-p)^n_j, hence
 *
 *     E(dR) = -G_d F_b R p + p sum_j R_inc,j (1-p)^n_j                                  (6, 7, 18, 19)
 *
 * Fast recovery has cycles of X periods, active increase of Y: n_j = j X for j <= 5, then 5 X + (j-5) Y. A byte counter has
 * X = (T_c / T_s) C/R, a timer X = C T_t / T_s; Y = ai_cycle X, half of it in QCN. With u = (1-p)^X, v = (1-p)^Y
 *
 *     R_inc,j = G_d F_b R / 2^j                       j = 1..5                                    (21)
 *     R_inc,j = G_d F_b R / 2^j + (1 - 1/2^(j-5)) R_AI     j = 6, 7, ...                          (22)
 *
 *     E(dR) / p = -G_d F_b R + G_d F_b R (u/2) / (1 - u/2)                                        (25, 26)
 *                 + R_AI u^5 (v / (1-v) - (v/2) / (1 - v/2))
 *     more in (24): G_d F_b R / 64 u^5 (v / (1 - v/2) - u / (1 - u/2))
 *     QCN-AIMD:     E(dR) / p = -G_d F_b R + R_AI u / (1-u)                                       (28)
 *
 * Print and derivation (the sums above) agree in 24 and 25. They differ in
 * - 14, where the sum over earlier target rates has TR_(i-1): it has to be TR_(j-i). The lines that follow are right;
 * - 17, whose numerator and denominator are one: it has to be (T_c/R) / (T_s/C) = C/R;
 * - 26, whose exponents C T_t / T_s, 11 C T_t / (2 T_s) and C T_t / (2 T_s) stand as factors beside (1-p) in the copy that
 *   was read. As factors they leave p for a denominator at a timer of 2 T_s / C, and less than 0 at a slower one;
 * - 28, where R_p has to be R p.
 *
 * That n_j periods have n_j samples is the paper's assumption. With jitter it is half a sample less, counted from the cut.
 */
import type { QcnModelParameters } from "./parameters.js";

/** From this cycle on R_inc,j is R_AI to the last bit: the rest of the exact sum is a geometric one. */
const kClosedFrom = 96;

/** 1 - x^n and x^n for x = 1 - p, exact for small p too. */
function survival(p: number, periods: number): { of: number; against: number } {
  const exponent = periods * Math.log1p(-p);
  return { of: Math.exp(exponent), against: -Math.expm1(exponent) };
}

/** X: sampling periods in a cycle of fast recovery of a flow that sends at `rate`. */
export function periodsPerCycle(parameters: QcnModelParameters, rate: number): number {
  const { variant, bandwidth, rpg_byte_reset, rpg_time_reset, cp_sample_base } = parameters;
  if (variant === "qcn-t") return (bandwidth * rpg_time_reset * 1e-9) / (8 * cp_sample_base);
  return ((rpg_byte_reset / cp_sample_base) * bandwidth) / rate;
}

/**
 * E(dR) / p, bit/s: the expected change from one cut of a flow that sends at `rate` until it is cut again. `probability` is
 * P, in 0 < P <= 1. Decreases in P, from infinity at 0.
 */
export function changePerCut(parameters: QcnModelParameters, rate: number, probability: number): number {
  const { variant, form, bandwidth, gd, feedback, rpg_ai_rate, rpg_threshold, ai_cycle } = parameters;
  const p = (probability * rate) / bandwidth;
  const cycle = periodsPerCycle(parameters, rate);
  const cut = gd * feedback * rate;
  const u = survival(p, cycle);
  if (variant === "qcn-aimd") return -cut + (rpg_ai_rate * u.of) / u.against;
  if (form === "exact") return -cut + exactIncreases(parameters, rate, p, cycle);
  const v = survival(p, ai_cycle * cycle);
  const recovered = u.of ** rpg_threshold;
  const recovery = (cut * 0.5 * u.of) / (1 - 0.5 * u.of);
  const active = rpg_ai_rate * recovered * (v.of / v.against - (0.5 * v.of) / (1 - 0.5 * v.of));
  if (form === "paper") return -cut + recovery + active;
  const late = v.of / (1 - 0.5 * v.of) - u.of / (1 - 0.5 * u.of);
  return -cut + recovery + active + cut * 0.5 ** (rpg_threshold + 1) * recovered * late;
}

/** sum_j R_inc,j (1-p)^n_j with R_inc,j of equations 11 and 16. */
function exactIncreases(parameters: QcnModelParameters, rate: number, p: number, cycle: number): number {
  const { gd, feedback, rpg_ai_rate, rpg_threshold, ai_cycle } = parameters;
  const u = survival(p, cycle);
  const v = survival(p, ai_cycle * cycle);
  const g = gd * feedback;
  const scale = 2 ** rpg_threshold;
  let sum = 0;
  let reached = 1;
  let part = 1; // 1 / 2^(j-1)
  for (let j = 1; j < kClosedFrom; j++, part /= 2) {
    const steps = j - rpg_threshold;
    reached *= steps > 0 ? v.of : u.of;
    const left = 1 - g * part;
    let increase = (part * g * rate) / (2 * left);
    if (steps > 0) increase += 0.5 * (steps - (steps - 2 + scale * part) / left) * rpg_ai_rate;
    sum += increase * reached;
  }
  return sum + (reached * rpg_ai_rate * v.of) / v.against;
}
