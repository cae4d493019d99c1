/** The `transport` section of a scenario, or of a NIC, in full, and what is wrong with it. */
import type { Full } from "../base/fields.js";
import type { Findings } from "../base/findings.js";
import { hearsCnms } from "../congestion/flow_state.js";
import type { transportSchema } from "./transport_schema.js";
import type { Scenario, Transport } from "./types.js";

const kGoBackNWindow = 2048;
/** Packets in flight that a receiver can tell apart in a selective acknowledgement. */
export const kMostSelectiveWindow = 256;
/** Packets that may overtake another one before it counts as lost, for NICs that do not expect several paths: TCP's number. */
export const kInOrder = 3;

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
