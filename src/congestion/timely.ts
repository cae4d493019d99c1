// TIMELY (Mittal et al., SIGCOMM 2015) and its patched form (Zhu et al., CoNEXT 2016), and their parameters. Equations:
// native/congestion/timely_sender.h.
import type { Findings } from "../base/findings.js";
import { formatRate, formatTime } from "../base/units.js";
import { type Algorithm, type Profile, warnOfThreshold } from "./algorithm.js";
import { kTimely } from "./described.js";
import { ofCore } from "./of_core.js";

export type TimelyVariant = "timely" | "timely-patched";

const kPaper = "TIMELY section 6";
const kModel = "not printed in TIMELY; HPCC rdma-hw.cc and ECN or Delay's model";
const kCode = "timely-code-snippet.cc of TIMELY's authors";

const profiles = {
  "timely-sigcomm15": {
    title: "Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015",
    parameters: {
      timely_alpha: ["87.5%", kModel],
      timely_beta: ["80%", kPaper],
      timely_delta: ["0.1%", `${kPaper}: 10 Mb/s, on links of 10 Gb/s`],
      timely_t_low: ["50us", kPaper],
      timely_t_high: ["500us", kPaper],
      timely_min_rtt: ["20us", kModel],
      timely_hai_threshold: [5, "TIMELY algorithm 1: five completion events"],
      timely_hai_step: [5, "TIMELY algorithm 1: N = 5"],
      timely_segment: ["16384B", `${kPaper}: 16 KB`],
      timely_min_rate: ["0.1%", "not printed; one delta"],
    },
  },
  "timely-snippet": {
    title: "timely-code-snippet.cc, published by TIMELY's authors",
    parameters: {
      timely_alpha: ["2%", `${kCode}: ewma_alpha`],
      timely_beta: ["80%", `${kCode}: decreaseFactor`],
      timely_delta: ["0.1%", `${kCode}: 10 Mb/s for a line rate of 10 Gb/s`],
      timely_t_low: ["50us", `${kCode}: 50 us for segments; it has 0 for packets that are paced by themselves`],
      timely_t_high: ["1ms", kCode],
      timely_min_rtt: ["20us", "of the network: the code has none"],
      timely_hai_threshold: [5, kCode],
      timely_hai_step: [5, kCode],
      timely_segment: ["16384B", `${kPaper}: 16 KB`],
      timely_min_rate: ["0.1%", "optional in the code; one delta"],
    },
  },
} satisfies Record<string, Profile<keyof typeof kTimely>>;

/** beta of the patched form where none is given: TIMELY's own is too much, as it is multiplied with every RTT. */
const kPatchedBeta = 0.008;

const core = ofCore("timely", kTimely, (values, { variant, overridden }) => {
  const patched = variant === ("timely-patched" satisfies TimelyVariant);
  const timely_beta = patched && !overridden.has("timely_beta") ? kPatchedBeta : values.timely_beta;
  return { ...values, timely_beta, patched };
});

export type TimelyParameters = ReturnType<typeof core.resolve>;

/** Combinations that cannot work (problems) or are unlikely to be meant (warnings). `lineRate` in bit/s. */
function check(p: TimelyParameters, lineRate: number, found: Findings): void {
  const problem = (name: keyof typeof kTimely, message: string, hint: string) =>
    found.problem(["congestion", "parameters", name], message, hint);
  if (p.timely_t_low > p.timely_t_high) {
    const message = `${formatTime(p.timely_t_low)} is more than timely_t_high ${formatTime(p.timely_t_high)}`;
    problem("timely_t_low", message, "timely_t_low must be at most timely_t_high");
  }
  if (p.timely_alpha === 0) problem("timely_alpha", "no RTT would change the gradient", "must be above 0%");
  if (p.timely_min_rate > lineRate) {
    const message = `${formatRate(p.timely_min_rate)} is greater than the line rate ${formatRate(lineRate)}`;
    problem("timely_min_rate", message, "timely_min_rate must be at most the line rate");
  }
  warnOfThreshold("timely_t_low", p.timely_t_low, lineRate, found);
  if (p.timely_t_low <= p.timely_min_rtt) {
    found.warn(
      `congestion: timely_t_low ${formatTime(p.timely_t_low)} is not more than timely_min_rtt ${formatTime(p.timely_min_rtt)}: ` +
        "rates fall though no queue stands",
    );
  }
}

const doc = `With \`algorithm: timely\` each flow has a rate, which follows how the round-trip times of its packets change (Mittal et al., SIGCOMM 2015).
Switches need not mark. The default profile is \`timely-sigcomm15\`.

\`congestion.variant\` changes the algorithm, with the parameters of any profile:

| \`variant\` | between \`timely_t_low\` and \`timely_t_high\` |
|---|---|
| \`timely\` | rates follow the gradient of round-trip times alone: no queue and no share is where they come to rest (Zhu et al., CoNEXT 2016, section 4) |
| \`timely-patched\` | also the distance from \`timely_t_low\`: N flows on a link of C come to rest at C / N each and a round-trip time of \`timely_t_low\` (1 + N \`timely_delta\` / (\`timely_beta\` C)) (section 4.3). \`timely_beta\` is 0.8% unless it is set |`;

export const timely = {
  title: "TIMELY",
  needs: "needs `transport.type: rc`",
  names: "the paper's, behind `timely_` (`timely_t_low`)",
  feedback: "RTT",
  state: { rates: true, window: false, alpha: false },
  ...core,
  profiles,
  tuned: ["timely_beta", "timely_delta", "timely_t_low", "timely_t_high"],
  variants: {
    description: 'the paper\'s; or the one of "ECN or Delay" (CoNEXT 2016), which has a fixed point',
    names: ["timely", "timely-patched"] as TimelyVariant[],
  },
  doc,
  check,
  feedbackInterval: ({ timely_min_rtt }: TimelyParameters) => timely_min_rtt,
} as const satisfies Algorithm;
