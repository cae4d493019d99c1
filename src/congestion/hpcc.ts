// HPCC (Li et al., SIGCOMM 2019) and its parameters. Equations: native/congestion/hpcc_sender.h.
import type { Findings } from "../base/findings.js";
import { formatSize, formatTime } from "../base/units.js";
import type { Algorithm } from "./algorithm.js";
import { kHpcc } from "./described.js";
import { defaultsOf, ofCore } from "./of_core.js";

const core = ofCore("hpcc", kHpcc);

const kPaper = "HPCC section 5.1";

const defaults = defaultsOf(core.parameters, {
  hpcc_eta: kPaper,
  hpcc_max_stage: kPaper,
  hpcc_w_ai: kPaper,
  hpcc_base_rtt: `${kPaper}: of its simulations; 9 us of its testbed. It is of the network: set it`,
});

export type HpccParameters = ReturnType<typeof core.resolve>;

/** Bytes on the link: a packet with telemetry and the path MTU that most have, 1024; its acknowledgement. */
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
SIGCOMM 2019). It goes by what each switch writes into packets as they leave: queue, bytes sent, time and link rate (INT).
Switches need not mark. A packet and an acknowledgement are 64 bytes longer. In simulations and labs all switches and hosts take part; of daemons, \`weir switch\` with \`telemetry: true\`, and both NICs.`;

export const hpcc = {
  title: "HPCC",
  needs: "needs `transport.type: rc`",
  names: "the paper's, behind `hpcc_` (`hpcc_eta`)",
  feedback: "INT",
  state: { rates: true, window: true, alpha: false },
  ...core,
  tuned: ["hpcc_eta", "hpcc_w_ai", "hpcc_max_stage"],
  defaults,
  doc,
  check,
  feedbackInterval: ({ hpcc_base_rtt }: HpccParameters) => hpcc_base_rtt,
} as const satisfies Algorithm;
