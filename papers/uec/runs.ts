/** Readings of a run of this network for the experiments. */
import type { Evidence } from "../engine/experiment.js";

/** When the last flow is complete, us; Infinity: not all are. */
export function lastCompletion({ result: { fct } }: Evidence): number {
  return fct === undefined || fct.incomplete > 0 ? Number.POSITIVE_INFINITY : (fct.fct_us?.max ?? Number.NaN);
}
