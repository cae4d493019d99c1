/** Causes for which statements of the papers on QCN fall short. */
import type { Cause } from "../engine/experiment.js";

export const FEEDBACK_DELAY: Cause = {
  id: "feedback-delay",
  by: "us",
  what: "Here feedback is at its source within microseconds, and the first messages part the rates little; what it takes on the boards and servers of Shu et al. is not printed.",
  proof:
    "the paper prints a round trip of tens of microseconds and nothing of its hosts; with 1 ms (slow feedback, beside it) rates part to 768 and 244 Mb/s and are fair after 7.3 s, medians of ten seeds, which is on the way to its figures and not there",
};

export const SHORT_ROUND_TRIPS: Cause = {
  id: "round-trips-of-shu",
  by: "us",
  what: "Up to 0.5 ms of feedback delay are less than the 1.2 ms between two samples of the congestion point, and change next to nothing.",
  proof:
    "the paper prints no round trips for it; with 1 ms (qcn-shu-fig5, slow feedback) the queue deviates by 1.2 times as much, and flows are fair as soon",
};

export const CHANCE_OF_FEEDBACK: Cause = {
  id: "one-walk-of-chance",
  by: "algorithm",
  what: "As packets rates are a walk of chance around the expectation that the model follows, and the paper shows one run of it: the median of ten seeds is another time.",
  proof:
    "fluctuations bring rates to a line before their expectation is there, so that the first passage of a walk comes earlier than that of its mean, and scatters by as much as it takes",
};

export const LARGE_FEEDBACK: Cause = {
  id: "feedback-above-one",
  by: "algorithm",
  what: "As packets feedback above 1 is common where R_AI or G_d is large, and hyper-active increase comes by the timer; the paper's model leaves both out.",
  proof: "its assumptions 1 to 5, section IV-A: F_b is 0 or 1, and increases come by the byte counter alone",
};

export const HAS_A_SOLUTION: Cause = {
  id: "a-solution-always",
  by: "algorithm",
  what: "By equation 26 a slower timer has a solution wherever a faster one has.",
  proof:
    "the sum of expected changes is positive as p goes to 0 and negative at p = 1, and continuous between them, so it has a root for any timer",
};

export const QUANTIZED_FEEDBACK: Cause = {
  id: "quantization-of-feedback",
  by: "us",
  what: "How F_b becomes 6 bits is not printed; Weir rounds down, as 802.1Qau's reference code does.",
  proof: "Weir has no other rounding to try",
};

export const UNEQUAL_FOR_SECONDS: Cause = {
  id: "qcn-is-unfair-for-seconds",
  by: "algorithm",
  what: "Reaction points of QCN take seconds to become equal, and these runs are shorter.",
  proof: "Shu et al. measured more than 10 s on boards of their own, and their equations say so",
};

export const TWO_PAPERS: Cause = {
  id: "parameters-of-two-papers",
  by: "us",
  what: "A requirement of one paper is asked of another's algorithm, with parameters that are meant for another rate.",
  proof: "no paper has this comparison; the setup is ours",
};

export const CUT_BY_EACH_INCAST: Cause = {
  id: "cut-by-each-incast",
  by: "us",
  what: "Each incast makes the congestion point tell whoever is sampled, mostly the long flows, which then take tens of ms to find their rate again; the incast is over before its own senders hear of it. What the adapters and the switch of Liss were set to is not printed.",
  proof:
    "without the incast the link is used by 100%; with it by 15%, with the timer of QCN-T by 34%, with ten times R_AI and R_HAI beside it by 60%, with Q_eq 260 KB by 85%",
};
