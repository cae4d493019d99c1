/** Causes for which statements of the abstracts of SMaRTT and REPS fall short: the papers were not at hand. */
import type { Cause } from "../engine/experiment.js";

export const SWIFT_BEGINS_LOW: Cause = {
  id: "a-hair-below-half",
  by: "us",
  what: "The abstract says up to 50%, over loads and controls that it does not name; here it is nearly that over Swift.",
  proof: "only the abstract was at hand, so topology, traffic and limits are ours",
};

export const TIMEOUT_FIRST: Cause = {
  id: "time-out-before-another-path",
  by: "us",
  what: "A flow hears of a dead link by its local ACK timeout alone, of which RoCEv2 has 65 and 131 us.",
  proof: "only the abstract was at hand; that of the paper's transport is not known",
};

export const SLOW_LINK_OF_THEIRS: Cause = {
  id: "slow-link",
  by: "algorithm",
  what: "A permutation over a link at a quarter of its rate takes longer than the target.",
  proof: "uet-htsim's own recorded run takes 238.2 us where 210 are the target",
};
