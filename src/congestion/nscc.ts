// NSCC of Ultra Ethernet and its parameters. Equations: native/congestion/nscc_sender.h.
import type { Findings } from "../base/findings.js";
import { type Algorithm, warnOfThreshold } from "./algorithm.js";
import { kNscc } from "./described.js";
import { defaultsOf, ofCore } from "./of_core.js";

const core = ofCore("nscc", kNscc);

const kHtsim = "uet-htsim uec.cpp, initNsccParams";

const defaults = defaultsOf(core.parameters, {
  nscc_base_rtt: `${kHtsim}: of its reference network. It is of the network: set it`,
  nscc_target: `${kHtsim}: where switches trim; it has 1 where they do not`,
  nscc_alpha: kHtsim,
  nscc_fi: kHtsim,
  nscc_eta: kHtsim,
  nscc_fi_scale: kHtsim,
  nscc_no_delay: "uet-htsim uec.cpp, fast_increase",
  nscc_gamma: kHtsim,
  nscc_max_md: "uet-htsim uec.cpp, multiplicative_decrease",
  nscc_delay_alpha: kHtsim,
  nscc_adjust_packets: kHtsim,
  nscc_qa_gate: kHtsim,
  nscc_max_window: "uet-htsim uec.cpp, initNscc",
});

export type NsccParameters = ReturnType<typeof core.resolve>;

/** RTT of the network that the increases are for, ns; its rate is 100 Gb/s. */
const kReferenceRtt = 12_000;

function check(p: NsccParameters, lineRate: number, found: Findings): void {
  if (p.nscc_delay_alpha === 0) {
    const message = "the average delay would never change";
    found.problem(["congestion", "parameters", "nscc_delay_alpha"], message, "must be above 0%");
  }
  warnOfThreshold("nscc_base_rtt", p.nscc_base_rtt, lineRate, found);
}

const doc = `With \`algorithm: nscc\` each flow has a window that goes by marks and by the delay of queues, both of each packet: network signalled congestion
control of the Ultra Ethernet Specification, read by its simulator, uet-htsim. Switches mark (\`switch.ecn\`). It is meant for packets sprayed over all paths
(\`transport.spraying: reps\`) and for switches that trim (\`switch.trimming\`), and needs neither. Increases are those of 100 Gb/s and
12 us, and grow with line rate and base round-trip time, so that the same numbers are for 400 Gb/s.`;

export const nscc = {
  title: "NSCC",
  needs: "needs `transport.type: rc`",
  names: "the simulator's, behind `nscc_` (`nscc_fi`)",
  feedback: "ECN echo and RTT",
  state: { rates: false, window: true, alpha: false },
  ...core,
  tuned: ["nscc_target", "nscc_fi", "nscc_alpha", "nscc_gamma"],
  defaults,
  doc,
  check,
  feedbackInterval: ({ nscc_base_rtt }: NsccParameters) => nscc_base_rtt,
  native(p: NsccParameters) {
    const native = core.native(p);
    return { ...native, nscc: { ...native.nscc, reference_rtt: kReferenceRtt } };
  },
} as const satisfies Algorithm;
