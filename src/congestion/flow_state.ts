// What a congestion control algorithm keeps of a flow: the one answer for whoever records or shows it.
import type { Congestion } from "../scenario/types.js";

type Algorithm = Congestion["algorithm"];

/** A reaction point with a current rate R_C and a target rate R_T. */
export const hasRates = (algorithm: Algorithm): boolean => algorithm === "dcqcn" || algorithm === "qcn";

/** A congestion window. */
export const hasWindow = (algorithm: Algorithm): boolean => algorithm === "dctcp";

/** An estimate alpha of the congestion. QCN has none: its messages say how bad it is. */
export const hasAlpha = (algorithm: Algorithm): boolean => algorithm === "dcqcn" || algorithm === "dctcp";
