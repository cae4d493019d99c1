/**
 * Parameters of the convergence model of QCN: Shu, Zhang, Ren, Lin, "Analysing Convergence of Quantized Congestion Notification
 * in Data Center Ethernet" (sections II, IV and V). Base units: bit/s, bytes, ns.
 */

/** `qcn`: byte counter (equation 25). `qcn-t`: timer in its place (26). `qcn-aimd`: byte counter, no fast recovery (28). */
export type QcnVariant = "qcn" | "qcn-t" | "qcn-aimd";

/**
 * Degree to which the expected change of a rate is simplified. `paper`: equations 25, 26, 28. `summed`: equation 24, which still
 * has the two small terms that 25 leaves out. `exact`: equation 6 with 11, 16, 18 and 19, where 1 - G_d F_b / 2^(j-1) is not
 * taken for 1. The forms of `qcn-aimd` are one.
 */
export type QcnForm = "paper" | "summed" | "exact";

/** Names as in 802.1Q where it has one. */
export interface QcnModelParameters {
  variant: QcnVariant;
  form: QcnForm;
  /** C: of the bottleneck, bit/s. */
  bandwidth: number;
  /** G_d: a cut is CR <- CR (1 - G_d F_b). */
  gd: number;
  /** F_b of every feedback that is not zero. */
  feedback: number;
  /** R_AI, bit/s. */
  rpg_ai_rate: number;
  /** Cycles of fast recovery. */
  rpg_threshold: number;
  /** Bytes of a cycle of fast recovery, and for `qcn-aimd` of every cycle. Not for `qcn-t`. */
  rpg_byte_reset: number;
  /** T_t: ns of a cycle of fast recovery; for `qcn-t` only. */
  rpg_time_reset: number;
  /** A cycle of active increase as a part of one of fast recovery; not for `qcn-aimd`. T_AI = ai_cycle rpg_byte_reset. */
  ai_cycle: number;
  /** T_s: bytes that arrive between two samples of the congestion point. */
  cp_sample_base: number;
}

/** Rates at the start as well, bit/s, one for each flow. They add up to the bandwidth. */
export type QcnModelInput = Partial<QcnModelParameters> & { rates: readonly number[] };

/** The baseline implementation at 1 Gb/s (section III), and the timer of QCN-T (section VI). */
export const QCN_BASELINE: Readonly<QcnModelParameters> = {
  variant: "qcn",
  form: "paper",
  bandwidth: 1e9,
  gd: 1 / 128,
  feedback: 1,
  rpg_ai_rate: 500e3,
  rpg_threshold: 5,
  rpg_byte_reset: 150_000,
  rpg_time_reset: 2_400_000,
  ai_cycle: 0.5,
  cp_sample_base: 150_000,
};

/** Rates that add up to something else than the bandwidth by more than this part of it are refused. */
const kSumTolerance = 1e-6;

/** The input with the baseline where it is silent. Throws RangeError for what the model has no meaning for. */
export function completeInput({ rates, ...given }: QcnModelInput): {
  parameters: QcnModelParameters;
  rates: readonly number[];
} {
  const parameters = { ...QCN_BASELINE, ...given };
  const { bandwidth, gd, feedback, rpg_threshold } = parameters;
  for (const name of [
    "bandwidth",
    "gd",
    "feedback",
    "rpg_ai_rate",
    "rpg_byte_reset",
    "rpg_time_reset",
    "ai_cycle",
    "cp_sample_base",
  ] as const) {
    if (!(parameters[name] > 0 && Number.isFinite(parameters[name]))) throw new RangeError(`${name} must be positive`);
  }
  if (!(gd * feedback <= 0.5)) throw new RangeError("gd * feedback must not exceed 0.5: no cut is deeper");
  if (!(Number.isInteger(rpg_threshold) && rpg_threshold >= 1 && rpg_threshold <= 31)) {
    throw new RangeError("rpg_threshold must be a whole number from 1 to 31");
  }
  if (rates.length === 0 || !rates.every((rate) => rate > 0)) throw new RangeError("every rate must be positive");
  const sum = rates.reduce((total, rate) => total + rate, 0);
  if (!(Math.abs(sum - bandwidth) <= kSumTolerance * bandwidth)) {
    throw new RangeError(`the rates add up to ${sum} bit/s rather than to the bandwidth, ${bandwidth} bit/s`);
  }
  return { parameters, rates };
}
