// Swift (Kumar et al., SIGCOMM 2020) and its parameters. Equations: native/congestion/swift_sender.h.
import type { Findings } from "../base/findings.js";
import { type Algorithm, warnOfThreshold } from "./algorithm.js";
import { kSwift } from "./described.js";
import { defaultsOf, ofCore } from "./of_core.js";

const core = ofCore("swift", kSwift);

const kHtsim = "csg-htsim swift.cpp, a guess of its authors; the paper does not print it";

const defaults = defaultsOf(core.parameters, {
  swift_ai: kHtsim,
  swift_beta: kHtsim,
  swift_max_mdf: kHtsim,
  swift_base_target: kHtsim,
  swift_hop_scaling: `${kHtsim}: the base target / 6.55`,
  swift_hops: "one switch: two hosts of a rack. Set it for longer paths",
  swift_fs_range: `${kHtsim}: 5 base targets`,
  swift_fs_min_cwnd: "csg-htsim swift.cpp",
  swift_fs_max_cwnd: "csg-htsim swift.cpp",
  swift_min_cwnd: "csg-htsim swift.cpp has 10 bytes",
  swift_max_cwnd: "csg-htsim swift.cpp",
  swift_initial_cwnd: "RFC 6928, as DCTCP has it; the paper says nothing",
  swift_retx_reset_threshold: kHtsim,
});

export type SwiftParameters = ReturnType<typeof core.resolve>;

function check(p: SwiftParameters, lineRate: number, found: Findings): void {
  warnOfThreshold("swift_base_target", p.swift_base_target, lineRate, found);
  const problem = (name: keyof typeof kSwift, message: string, hint: string) =>
    found.problem(["congestion", "parameters", name], message, hint);
  if (p.swift_fs_min_cwnd >= p.swift_fs_max_cwnd) {
    const message = `${p.swift_fs_min_cwnd} is not below swift_fs_max_cwnd ${p.swift_fs_max_cwnd}`;
    problem("swift_fs_min_cwnd", message, "swift_fs_min_cwnd must be below swift_fs_max_cwnd");
  }
  if (p.swift_min_cwnd > p.swift_max_cwnd) {
    const message = `${p.swift_min_cwnd} is more than swift_max_cwnd ${p.swift_max_cwnd}`;
    problem("swift_min_cwnd", message, "swift_min_cwnd must be at most swift_max_cwnd");
  }
}

const doc = `With \`algorithm: swift\` each flow has a window of packets in flight that holds their delay at a target (Kumar et al., SIGCOMM 2020); below one
packet it has a rate. Switches need not mark. The delay is that of the fabric: the paper's second window, for delays of hosts, has nothing to go
by here.`;

export const swift = {
  title: "Swift",
  needs: "needs `transport.type: rc`",
  names: "the paper's, behind `swift_` (`swift_base_target`)",
  feedback: "RTT",
  state: { rates: false, window: true, alpha: false },
  ...core,
  tuned: ["swift_ai", "swift_beta", "swift_base_target", "swift_fs_range"],
  defaults,
  doc,
  check,
  feedbackInterval: ({ swift_base_target }: SwiftParameters) => swift_base_target,
} as const satisfies Algorithm;
