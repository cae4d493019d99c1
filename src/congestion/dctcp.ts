// DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) and its parameters. Equations: native/congestion/dctcp_sender.h.
import { type Algorithm, type NativeSetting, type Sourced, scaled } from "./algorithm.js";
import { number, type Values } from "./parameter.js";

/** By the names of Linux: tcp_dctcp's module parameters and `ip route`; `min_cwnd` has none there. */
const parameters = {
  dctcp_shift_g: number("Gain of alpha: g = 2^-dctcp_shift_g; 4 is the paper's 1/16.", "log2", 0, 10),
  dctcp_alpha_on_init: number("alpha at the start; 1024 is 1.", "1/1024", 0, 1024),
  initcwnd: number("Packets in flight at the start.", "packets", 1, 65_536),
  min_cwnd: number("Packets in flight that a cut leaves at least.", "packets", 1, 65_536),
};

const defaults: Record<keyof typeof parameters, Sourced> = {
  dctcp_shift_g: [4, "RFC 8257 section 4.2, Alizadeh et al. section 3.4, Linux: g = 1/16"],
  dctcp_alpha_on_init: [1024, "RFC 8257 section 3.3, Linux: alpha starts at 1"],
  initcwnd: [10, "RFC 6928, Linux"],
  min_cwnd: [2, "Linux; RFC 8257 has none"],
};

export type DctcpParameters = ReturnType<typeof resolve>;

/** `alpha_on_init`: 0..1. */
function resolve({ dctcp_alpha_on_init, ...same }: Values<typeof parameters>) {
  return { ...same, alpha_on_init: dctcp_alpha_on_init / 1024 };
}

const doc = `With \`algorithm: dctcp\` each flow has a window of packets in flight, and no rate (Alizadeh et al., SIGCOMM 2010; RFC 8257). It is of
reliable connections, \`transport.type: rc\`, whose \`window\` bounds it. The receiver acknowledges every packet and says
with the BECN bit of the acknowledgement whether the packet was marked. Switches mark as DCTCP wants it with \`ecn.kmin\` =
\`ecn.kmax\`. Parameters are called as in Linux; there are no profiles.`;

export const dctcp = {
  title: "DCTCP",
  needs: "needs `transport.type: rc`",
  names: "those of Linux (`dctcp_shift_g`)",
  feedback: "ECN echo",
  state: { rates: false, window: true, alpha: true },
  parameters,
  tuned: ["dctcp_shift_g", "initcwnd"],
  defaults,
  doc,
  resolve,
  feedbackInterval: () => 0,
  native: (p: DctcpParameters, { scale }: NativeSetting) => ({ dctcp: scaled(parameters, p, scale), cnp_interval: 0 }),
} as const satisfies Algorithm;
