/**
 * Alpha of a flow at line rate. By the DCQCN paper's section 3.1 it decays there, too, and nothing resets it, which is the
 * default of its profile. Newer NICs start it anew with the first CNP, and so does much of what was built after the paper, so its
 * statements are judged by both if that makes a difference: if a flow has been alone, or comes back to its line rate.
 */
import { isDcqcn } from "../../src/congestion/algorithms.js";
import type { DcqcnModelParameters } from "../../src/models/dcqcn/index.js";
import type { Alternative } from "../engine/experiment.js";

export const ALPHA_RESET: Alternative = {
  name: "alpha reset",
  reading:
    "A flow at line rate has no alpha: it gets one, of 1, with its next CNP (alpha_decays_at_line_rate: false). By section 3.1 alpha decays there as anywhere, so that a flow that was alone for long is hardly cut by its first CNPs.",
  set: ["congestion.parameters.alpha_decays_at_line_rate=false"],
  concerns: ({ congestion }) => isDcqcn(congestion),
};

/** Parameters of the equations under a reading; undefined: the paper's. */
export function equationsOf(
  alternative: Alternative | undefined,
): Pick<DcqcnModelParameters, "alpha_decays_at_line_rate"> {
  return { alpha_decays_at_line_rate: alternative === undefined };
}
