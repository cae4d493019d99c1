// HPCC (Li et al., SIGCOMM 2019) and its parameters. Equations: native/congestion/hpcc_sender.h.
import type { Findings } from "../base/findings.js";
import { formatSize, formatTime } from "../base/units.js";
import { type Algorithm, type NativeSetting, type Sourced, scaled } from "./algorithm.js";
import { number, percent, size, time, type Values } from "./parameter.js";

const parameters = {
  hpcc_eta: percent("eta: part of the busiest link of a path that is to be in use; above 0."),
  hpcc_max_stage: number("maxStage: round-trip times of additive increase alone, at most.", "count", 0, 1_000),
  hpcc_w_ai: size(
    "W_AI: additive increase of the window. All flows of a port together should have less than (1 - eta) of rate times `hpcc_base_rtt`.",
    1,
    1 << 20,
  ),
  hpcc_base_rtt: time(
    "T: base round-trip time of the network, a little more than the longest without queues.",
    1_000,
    10e9,
  ),
};

const kPaper = "HPCC section 5.1";

const defaults: Record<keyof typeof parameters, Sourced> = {
  hpcc_eta: ["95%", kPaper],
  hpcc_max_stage: [5, kPaper],
  hpcc_w_ai: ["80B", kPaper],
  hpcc_base_rtt: ["13us", `${kPaper}: of its simulations; 9 us of its testbed. It is of the network: set it`],
};

export type HpccParameters = ReturnType<typeof resolve>;

const resolve = (values: Values<typeof parameters>) => values;

/** On the link, bytes: a packet with telemetry and the path MTU that most have, 1024; its acknowledgement. */
const kPacket = 1170;
const kAcknowledgement = 152;

function check(p: HpccParameters, lineRate: number, found: Findings): void {
  if (p.hpcc_eta === 0) {
    found.problem(["congestion", "parameters", "hpcc_eta"], "no link would be used", "must be above 0%");
  }
  const onLinks = (2 * (kPacket + kAcknowledgement) * 8e9) / lineRate;
  if (onLinks >= p.hpcc_base_rtt) {
    found.warn(
      `congestion: hpcc_base_rtt ${formatTime(p.hpcc_base_rtt)} is not more than the ${formatTime(Math.round(onLinks))} that a packet of 1 KB ` +
        "and its acknowledgement take over two links: windows are too small for the link",
    );
  }
  const inFlight = (lineRate * p.hpcc_base_rtt) / 8e9;
  if (p.hpcc_w_ai > (1 - p.hpcc_eta) * inFlight) {
    found.warn(
      `congestion: hpcc_w_ai ${formatSize(p.hpcc_w_ai)} is more than (1 - hpcc_eta) of what hpcc_base_rtt ${formatTime(p.hpcc_base_rtt)} holds ` +
        `(${formatSize(Math.round(inFlight))}): one flow alone has a queue`,
    );
  }
}

const doc = `With \`algorithm: hpcc\` each flow has a window and a rate that hold the busiest link of its path at a part \`hpcc_eta\` of its capacity (Li et al.,
SIGCOMM 2019). It goes by what each switch writes into packets as they leave: queue, bytes sent, time and link rate (INT). It is of reliable connections,
\`transport.type: rc\`, whose \`window\` bounds it, and which have each packet acknowledged. Switches need not mark. A packet and an acknowledgement are
64 bytes longer. In simulations and labs all switches and hosts take part; of daemons, \`weir switch\` with \`telemetry: true\`, and both NICs. There are no profiles. What to make of the results is in
[congestion control](../guides/congestion-control.md#hpcc).`;

export const hpcc = {
  title: "HPCC",
  needs: "needs `transport.type: rc`",
  names: "the paper's, behind `hpcc_` (`hpcc_eta`)",
  feedback: "INT",
  state: { rates: true, window: true, alpha: false },
  parameters,
  tuned: ["hpcc_eta", "hpcc_w_ai", "hpcc_max_stage"],
  defaults,
  doc,
  resolve,
  check,
  feedbackInterval: ({ hpcc_base_rtt }: HpccParameters) => hpcc_base_rtt,
  native(resolved: HpccParameters, { scale }: NativeSetting) {
    const p = scaled(parameters, resolved, scale);
    return {
      hpcc: {
        eta: p.hpcc_eta,
        max_stage: p.hpcc_max_stage,
        additive_increase: p.hpcc_w_ai,
        base_rtt: p.hpcc_base_rtt,
      },
      cnp_interval: 0,
    };
  },
} as const satisfies Algorithm;
