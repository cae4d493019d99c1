import type { Paper } from "../engine/experiment.js";

/** Only its abstract was at hand: statements are from there, and what they are read as is ours. */
export const ECN_OR_DELAY: Paper = {
  name: "Zhu et al. 2016",
  citation:
    "Y. Zhu, M. Ghobadi, V. Misra, J. Padhye: ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY, CoNEXT 2016",
};

/** Patched TIMELY instead of TIMELY, and DCQCN instead of either, in the scenarios of this folder. */
export const PATCHED = ["congestion.variant=timely-patched"] as const;
export const DCQCN = ["congestion={algorithm: dcqcn, profile: paper-sigcomm15}", "switch.ecn.enabled=true"] as const;
