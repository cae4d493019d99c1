// Tells what state a congestion control algorithm keeps for a flow, and how it hears of congestion: the one answer for whoever records or
// shows it. Undefined: the result does not say.
import type { Feedback } from "./algorithm.js";
import { type AlgorithmName, kAlgorithms } from "./algorithms.js";

type MaybeAlgorithm = AlgorithmName | undefined;

const keeps = (algorithm: MaybeAlgorithm, what: "rates" | "window" | "alpha"): boolean =>
  algorithm !== undefined && kAlgorithms[algorithm].state[what];
const hears = (algorithm: MaybeAlgorithm, feedback: Feedback): boolean =>
  algorithm !== undefined && kAlgorithms[algorithm].feedback === feedback;

/** The algorithm has a reaction point with a current rate R_C and a target rate R_T. */
export const hasRates = (algorithm: MaybeAlgorithm): boolean => keeps(algorithm, "rates");

/** The algorithm keeps a congestion window. */
export const hasWindow = (algorithm: MaybeAlgorithm): boolean => keeps(algorithm, "window");

/** The algorithm keeps an estimate alpha of the congestion. */
export const hasAlpha = (algorithm: MaybeAlgorithm): boolean => keeps(algorithm, "alpha");

/** The rate increases in stages, as DCQCN has them of QCN: fast recovery and so on. */
export const hasStages = (algorithm: MaybeAlgorithm): boolean => hearsCnps(algorithm) || hearsCnms(algorithm);

/** Receivers tell senders by notification packets (CNP). */
export const hearsCnps = (algorithm: MaybeAlgorithm): boolean => hears(algorithm, "CNP");

/** Switches tell senders by messages of their own (CNM). */
export const hearsCnms = (algorithm: MaybeAlgorithm): boolean => hears(algorithm, "CNM");

/** Acknowledgements of reliable connections bring marks back. */
export const hearsEcnEcho = (algorithm: MaybeAlgorithm): boolean =>
  hears(algorithm, "ECN echo") || hears(algorithm, "ECN echo and RTT");

/** Senders go by when acknowledgements of reliable connections come. */
const hearsRoundTrips = (algorithm: MaybeAlgorithm): boolean =>
  hears(algorithm, "RTT") || hears(algorithm, "ECN echo and RTT");

/** Acknowledgements of reliable connections bring back what switches have told of themselves (INT). */
export const hearsTelemetry = (algorithm: MaybeAlgorithm): boolean => hears(algorithm, "INT");

/** The algorithm runs on acknowledgements, whatever they tell. */
export const hearsAcknowledgements = (algorithm: MaybeAlgorithm): boolean =>
  hearsEcnEcho(algorithm) || hearsRoundTrips(algorithm) || hearsTelemetry(algorithm);

/** Congestion slows nobody. */
export const hearsNothing = (algorithm: MaybeAlgorithm): boolean => hears(algorithm, "none");
