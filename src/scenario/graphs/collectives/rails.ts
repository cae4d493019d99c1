/**
 * Rails: NICs of the same number in all nodes, which a rail-optimised network joins by a switch for each. A channel keeps to them as
 * NCCL's do, whose rings alternate since version 2.20: what leaves a node at a NIC comes into the next at that of the same rail.
 */
import type { CheckedRequest } from "./layout.js";

type Nodes = Pick<CheckedRequest, "perNode" | "nics">;

/** Place in its node of the rank at which a channel begins: channels take NICs in turns, and then the ranks of a NIC. */
export function headPlace({ perNode, nics }: Nodes, channel: number): number {
  const ofNic = perNode / nics;
  return (channel % nics) * ofNic + (Math.floor(channel / nics) % ofNic);
}

/**
 * Ranks in the order of a channel's ring, which goes through every other node backwards. The first and the last rank of a node are at
 * neighbouring NICs, so with an odd number of nodes one hop, from the last node to the first, is between two rails.
 */
export function railOrder({ ranks, perNode, nics }: Nodes & Pick<CheckedRequest, "ranks">, channel: number): number[] {
  const head = headPlace({ perNode, nics }, channel);
  const places = Array.from({ length: perNode }, (_, i) => (head + i) % perNode);
  const backwards = places.toReversed();
  return Array.from({ length: ranks / perNode }, (_, node) =>
    (node % 2 === 0 ? places : backwards).map((place) => node * perNode + place),
  ).flat();
}
