// DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) and its parameters. Equations: native/congestion/dctcp_sender.h.
import type { Algorithm } from "./algorithm.js";
import { kDctcp } from "./described.js";
import { defaultsOf, ofCore } from "./of_core.js";

/** Names are those of Linux: tcp_dctcp's module parameters and `ip route`; `min_cwnd` has none there. `alpha_on_init`: 0..1. */
const core = ofCore("dctcp", kDctcp, ({ dctcp_alpha_on_init, ...same }) => ({
  ...same,
  alpha_on_init: dctcp_alpha_on_init / 1024,
}));

const defaults = defaultsOf(core.parameters, {
  dctcp_shift_g: "RFC 8257 section 4.2, Alizadeh et al. section 3.4, Linux: g = 1/16",
  dctcp_alpha_on_init: "RFC 8257 section 3.3, Linux: alpha starts at 1",
  initcwnd: "RFC 6928, Linux",
  min_cwnd: "Linux; RFC 8257 has none",
});

export type DctcpParameters = ReturnType<typeof core.resolve>;

const doc = `With \`algorithm: dctcp\` each flow has a window of packets in flight, and no rate (Alizadeh et al., SIGCOMM 2010; RFC 8257). The receiver
says with the BECN bit of each acknowledgement whether the packet was marked. Switches mark as DCTCP wants it with \`ecn.kmin\` =
\`ecn.kmax\`. Parameters are called as in Linux.`;

export const dctcp = {
  title: "DCTCP",
  needs: "needs `transport.type: rc`",
  names: "those of Linux (`dctcp_shift_g`)",
  feedback: "ECN echo",
  state: { rates: false, window: true, alpha: true },
  ...core,
  tuned: ["dctcp_shift_g", "initcwnd"],
  defaults,
  doc,
  feedbackInterval: () => 0,
} as const satisfies Algorithm;
