/**
 * In virtual time nothing but the scenario makes senders differ. Equal ones that send all the time fall into step with the queue that
 * drops: always the same one finds room (Floyd and Jacobson, "Traffic Phase Effects in Packet-Switched Gateways", 1991).
 */

import { percent } from "../../result/report/format.js";
import type { Result } from "../../result/result.js";
import type { Scenario } from "../../scenario/types.js";

/** Parts of its packets: a flow that loses more than the first is locked out, where another one loses less than the second. */
const kLockedOut = 0.99;
const kServed = 0.9;

/** Returns a warning with advice when the flows look as if that had happened. */
export function phaseEffect({ transport, links }: Scenario, { flows }: Result): string | undefined {
  if (transport.type !== "stream" || links.some(({ impairment }) => (impairment?.jitter ?? 0) > 0)) return undefined;
  const shares = flows
    .filter(({ packets }) => packets >= 100)
    .map(({ id, packets, lost }) => ({ id, lost: lost / packets }));
  shares.sort((a, b) => a.lost - b.lost);
  const [least, most] = [shares[0], shares.at(-1)];
  if (least === undefined || most === undefined || most.lost <= kLockedOut || least.lost >= kServed) return undefined;
  return (
    `${most.id} lost ${percent(most.lost)} of its packets, ${least.id} ${percent(least.lost)}: equal senders fall into step in virtual ` +
    "time; to break it: --set topology.link.impairment.jitter=200ns"
  );
}
