// Swift (Kumar et al., SIGCOMM 2020) and its parameters. Equations: native/congestion/swift_sender.h.
import type { Findings } from "../base/findings.js";
import { type Algorithm, type NativeSetting, type Sourced, scaled, warnOfThreshold } from "./algorithm.js";
import { number, percent, time, type Values } from "./parameter.js";

const parameters = {
  swift_ai: number("ai: additive increase in a round-trip time.", "packets", 0, 1_000, false),
  swift_beta: percent("beta: multiplicative decrease, times how far the delay is above the target."),
  swift_max_mdf: percent("One decrease takes this part of the window at most, and a loss this part."),
  swift_base_target: time("Target delay, there and back, without hops and flow scaling.", 1_000, 10e9),
  swift_hop_scaling: time("Target delay of each hop.", 0, 10e9),
  swift_hops: number(
    "Hops of a path, its switches: the paper takes them from the TTL, which bridges leave alone.",
    "count",
    0,
    64,
  ),
  swift_fs_range: time("Flow scaling: what small windows add to the target at most; 0 switches it off.", 0, 10e9),
  swift_fs_min_cwnd: number("Window at which they do.", "packets", 0.001, 65_536, false),
  swift_fs_max_cwnd: number("Window from which on they add nothing.", "packets", 0.001, 65_536, false),
  swift_min_cwnd: number(
    "Lowest window; below 1 packets are paced a round-trip time over the window apart.",
    "packets",
    0.001,
    65_536,
    false,
  ),
  swift_max_cwnd: number("Highest window.", "packets", 0.001, 65_536, false),
  swift_initial_cwnd: number("Window at the start.", "packets", 0.001, 65_536, false),
  swift_retx_reset_threshold: number("Timeouts in a row after which the window is the lowest.", "count", 1, 1_000),
};

const kHtsim = "csg-htsim swift.cpp, a guess of its authors; the paper does not print it";

const defaults: Record<keyof typeof parameters, Sourced> = {
  swift_ai: [1, kHtsim],
  swift_beta: ["80%", kHtsim],
  swift_max_mdf: ["50%", kHtsim],
  swift_base_target: ["20us", kHtsim],
  swift_hop_scaling: ["3.053us", `${kHtsim}: the base target / 6.55`],
  swift_hops: [1, "one switch: two hosts of a rack. Set it for longer paths"],
  swift_fs_range: ["100us", `${kHtsim}: 5 base targets`],
  swift_fs_min_cwnd: [0.1, "csg-htsim swift.cpp"],
  swift_fs_max_cwnd: [100, "csg-htsim swift.cpp"],
  swift_min_cwnd: [0.01, "csg-htsim swift.cpp has 10 bytes"],
  swift_max_cwnd: [1_000, "csg-htsim swift.cpp"],
  swift_initial_cwnd: [10, "RFC 6928, as DCTCP has it; the paper says nothing"],
  swift_retx_reset_threshold: [5, kHtsim],
};

export type SwiftParameters = ReturnType<typeof resolve>;

const resolve = (values: Values<typeof parameters>) => values;

function check(p: SwiftParameters, lineRate: number, found: Findings): void {
  warnOfThreshold("swift_base_target", p.swift_base_target, lineRate, found);
  const problem = (name: keyof typeof parameters, message: string, hint: string) =>
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
packet it has a rate. It is of reliable connections, \`transport.type: rc\`, whose \`window\` bounds it, and which have each packet
acknowledged. Switches need not mark. The delay is that of the fabric: the paper's second window, for delays of hosts, has nothing to go
by here. There are no profiles. How round-trip times are measured, and what to make of the results, is in [congestion control](../guides/congestion-control.md).`;

export const swift = {
  title: "Swift",
  needs: "needs `transport.type: rc`",
  names: "the paper's, behind `swift_` (`swift_base_target`)",
  feedback: "RTT",
  state: { rates: false, window: true, alpha: false },
  parameters,
  tuned: ["swift_ai", "swift_beta", "swift_base_target", "swift_fs_range"],
  defaults,
  doc,
  resolve,
  check,
  feedbackInterval: ({ swift_base_target }: SwiftParameters) => swift_base_target,
  native(resolved: SwiftParameters, { scale }: NativeSetting) {
    const p = scaled(parameters, resolved, scale);
    return {
      swift: {
        ai: p.swift_ai,
        beta: p.swift_beta,
        max_mdf: p.swift_max_mdf,
        base_target: p.swift_base_target,
        hop_scaling: p.swift_hop_scaling,
        hops: p.swift_hops,
        fs_range: p.swift_fs_range,
        fs_min_cwnd: p.swift_fs_min_cwnd,
        fs_max_cwnd: p.swift_fs_max_cwnd,
        min_cwnd: p.swift_min_cwnd,
        max_cwnd: p.swift_max_cwnd,
        initcwnd: p.swift_initial_cwnd,
        retx_reset_threshold: p.swift_retx_reset_threshold,
      },
      cnp_interval: 0,
    };
  },
} as const satisfies Algorithm;
