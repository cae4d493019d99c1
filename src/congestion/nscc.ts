// NSCC of Ultra Ethernet and its parameters. Equations: native/congestion/nscc_sender.h.
import type { Findings } from "../base/findings.js";
import { type Algorithm, type NativeSetting, type Sourced, scaled, warnOfThreshold } from "./algorithm.js";
import { number, percent, time, type Values } from "./parameter.js";

const parameters = {
  nscc_base_rtt: time(
    "The longest round-trip time of the network without queues. Windows begin at `nscc_max_window` times what it holds, and all increases grow with that.",
    1_000,
    10e9,
  ),
  nscc_target: number("Delay of queues that is aimed at, in `nscc_base_rtt`.", "base RTTs", 0.01, 100, false),
  nscc_alpha: number(
    "alpha: proportional increase of a window in a round-trip time, of a delay 12 us below the target.",
    "packets",
    0,
    1_000,
    false,
  ),
  nscc_fi: number(
    "fi: fair increase of a window in a round-trip time, where the delay is above the target and nothing is marked.",
    "packets",
    0,
    1_000,
    false,
  ),
  nscc_eta: number("eta: increase in `nscc_base_rtt`, whatever is heard.", "packets", 0, 1_000, false),
  nscc_fi_scale: number(
    "fi_scale: fast increase after a window without delay, for each packet that is acknowledged.",
    "packets",
    0,
    100,
    false,
  ),
  nscc_no_delay: time("A shorter delay of queues is none.", 0, 10e9),
  nscc_gamma: percent("gamma: multiplicative decrease, times how far the average delay is above the target."),
  nscc_max_md: percent("One decrease takes this part of the window at most."),
  nscc_delay_alpha: percent("Gain of the average delay; above 0."),
  nscc_adjust_packets: number("Acknowledged packets between two adjustments of the window.", "packets", 1, 65_536),
  nscc_qa_gate: number(
    "Quick adaptation: where less than 2^-nscc_qa_gate of the largest window came through, the window is what came.",
    "log2",
    0,
    31,
  ),
  nscc_max_window: number("Largest window, in what the round-trip time holds.", "BDP", 0.01, 100, false),
};

const kHtsim = "uet-htsim uec.cpp, initNsccParams";

const defaults: Record<keyof typeof parameters, Sourced> = {
  nscc_base_rtt: ["12us", `${kHtsim}: of its reference network. It is of the network: set it`],
  nscc_target: [0.75, `${kHtsim}: where switches trim; it has 1 where they do not`],
  nscc_alpha: [4, kHtsim],
  nscc_fi: [5, kHtsim],
  nscc_eta: [0.15, kHtsim],
  nscc_fi_scale: [0.25, kHtsim],
  nscc_no_delay: ["1us", "uet-htsim uec.cpp, fast_increase"],
  nscc_gamma: ["80%", kHtsim],
  nscc_max_md: ["50%", "uet-htsim uec.cpp, multiplicative_decrease"],
  nscc_delay_alpha: ["1.25%", kHtsim],
  nscc_adjust_packets: [8, kHtsim],
  nscc_qa_gate: [3, kHtsim],
  nscc_max_window: [1.5, "uet-htsim uec.cpp, initNscc"],
};

export type NsccParameters = ReturnType<typeof resolve>;

const resolve = (values: Values<typeof parameters>) => values;

/** Of the network that the increases are for, ns; its rate is 100 Gb/s. */
const kReferenceRtt = 12_000;

function check(p: NsccParameters, lineRate: number, found: Findings): void {
  if (p.nscc_delay_alpha === 0) {
    const message = "the average delay would never change";
    found.problem(["congestion", "parameters", "nscc_delay_alpha"], message, "must be above 0%");
  }
  warnOfThreshold("nscc_base_rtt", p.nscc_base_rtt, lineRate, found);
}

const doc = `With \`algorithm: nscc\` each flow has a window that goes by marks and by the delay of queues, both of each packet: network signalled congestion
control of the Ultra Ethernet Specification, read by its simulator, uet-htsim. It is of reliable connections, \`transport.type: rc\`, whose \`window\` bounds
it, and which have each packet acknowledged. Switches mark (\`switch.ecn\`). It is meant for packets sprayed over all paths
(\`transport.spraying: reps\`) and for switches that trim (\`switch.trimming\`), and needs neither. There are no profiles: increases are those of 100 Gb/s and
12 us, and grow with line rate and base round-trip time, so that the same numbers are for 400 Gb/s. What to make of the results is in
[congestion control](../guides/congestion-control.md#nscc).`;

export const nscc = {
  title: "NSCC",
  needs: "needs `transport.type: rc`",
  names: "the simulator's, behind `nscc_` (`nscc_fi`)",
  feedback: "ECN echo and RTT",
  state: { rates: false, window: true, alpha: false },
  parameters,
  tuned: ["nscc_target", "nscc_fi", "nscc_alpha", "nscc_gamma"],
  defaults,
  doc,
  resolve,
  check,
  feedbackInterval: ({ nscc_base_rtt }: NsccParameters) => nscc_base_rtt,
  native(resolved: NsccParameters, { scale }: NativeSetting) {
    const p = scaled(parameters, resolved, scale);
    return {
      nscc: {
        base_rtt: p.nscc_base_rtt,
        target: p.nscc_target,
        alpha: p.nscc_alpha,
        fair_increase: p.nscc_fi,
        eta: p.nscc_eta,
        fast_increase: p.nscc_fi_scale,
        no_delay: p.nscc_no_delay,
        gamma: p.nscc_gamma,
        max_decrease: p.nscc_max_md,
        delay_gain: p.nscc_delay_alpha,
        adjust_packets: p.nscc_adjust_packets,
        qa_gate: p.nscc_qa_gate,
        max_window: p.nscc_max_window,
        reference_rtt: Math.round(kReferenceRtt * scale),
      },
      cnp_interval: 0,
    };
  },
} as const satisfies Algorithm;
