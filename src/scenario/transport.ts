/** The `transport` section of a scenario, or of a NIC: as users write it, in full, and what is wrong with it. */
import { choice, type Full, flag, integer, section } from "../base/fields.js";
import type { Findings } from "../base/findings.js";
import { hearsCnms } from "../congestion/flow_state.js";
import type { Scenario, Transport } from "./types.js";

const kGoBackNWindow = 2048;
/** Packets in flight that a receiver can tell apart in a selective acknowledgement. */
export const kMostSelectiveWindow = 256;
/** Packets that may overtake another one before it counts as lost, for NICs that do not expect several paths: TCP's number. */
export const kInOrder = 3;

export const transportSchema = section({
  type: choice(
    "Packets that nobody acknowledges, or reliable connections (RC), which have completion times.",
    ["stream", "rc"],
    "stream",
  ),
  recovery: choice(
    "What a sender repeats after a loss: all from there on, or what is missing (both ends must be Weir's).",
    ["go-back-n", "selective-repeat"],
    "go-back-n",
  ),
  timeout: integer("Code of the local ACK timeout, 4.096 us x 2^timeout; 0: none. 14 is 67 ms.", 0, 31, 14),
  retry_count: integer("How often a packet is sent again without progress before the queue pair fails.", 0, 7, 7),
  window: integer(
    "Packets in flight of a queue pair. Default: 2048; with `selective-repeat` 256, which is also the most it allows.",
    4,
    65_536,
  ),
  reordering: integer(
    "With `selective-repeat`: how many packets sent later may arrive before one that has not counts as lost and is sent again. More for `load_balancing` that reorders; a loss is then noticed later.",
    1,
    255,
    3,
  ),
  trim_naks: flag(
    "With `selective-repeat`, at both ends: a receiver asks at once for each packet that a switch has trimmed, and its sender sends that again without waiting for others to arrive.",
    false,
  ),
  spraying: choice(
    "With `selective-repeat`: each packet has a UDP source port of its own, so that switches with `load_balancing: ecmp` send the packets of one flow by many ways. `oblivious`: all ports in turn. `reps`: a port whose packet was acknowledged without a mark is used once more, and else one is drawn; each packet is acknowledged. Set `reordering`, too.",
    ["none", "oblivious", "reps"],
    "none",
  ),
  entropies: integer("With `spraying`: how many UDP source ports a flow has.", 1, 16_384, 256),
});

export function resolveTransport(transport: Full<typeof transportSchema>): Transport {
  const { window = transport.recovery === "go-back-n" ? kGoBackNWindow : kMostSelectiveWindow } = transport;
  return { ...transport, window };
}

/** Checks the transport of a scenario, or of a NIC. */
export function checkTransport(
  {
    transport: { type, recovery, window, spraying, reordering, trim_naks },
    congestion,
  }: Pick<Scenario, "transport" | "congestion">,
  found: Findings,
): void {
  if (trim_naks && recovery !== "selective-repeat") {
    const message = `asks for single packets, and ${recovery} sends everything again from a lost one on`;
    found.problem(["transport", "trim_naks"], message, "use recovery: selective-repeat, or trim_naks: false");
  }
  if (spraying !== "none") {
    if (type !== "rc") {
      const message = `transport.type ${type} counts what comes late as lost`;
      found.problem(["transport", "spraying"], message, "use transport.type: rc, or spraying: none");
    } else if (recovery !== "selective-repeat") {
      const message = `${spraying} reorders packets, and ${recovery} sends everything again from the first that is late`;
      found.problem(["transport", "spraying"], message, "use recovery: selective-repeat, or spraying: none");
    }
    if (hearsCnms(congestion.algorithm)) {
      const message = `${congestion.algorithm} may tell flows by their UDP source port, which ${spraying} changes`;
      found.problem(["transport", "spraying"], message, "use spraying: none, or another congestion.algorithm");
    }
    if (reordering <= kInOrder) {
      found.warn(
        `transport.spraying: ${spraying} reorders packets, and one that ${reordering} have overtaken counts as lost: use transport.reordering: 250`,
      );
    }
  }
  if (recovery !== "selective-repeat" || window <= kMostSelectiveWindow) return;
  const message = `${window} packets are more than a selective acknowledgement can tell apart`;
  found.problem(["transport", "window"], message, `at most ${kMostSelectiveWindow}, or recovery: go-back-n`);
}
