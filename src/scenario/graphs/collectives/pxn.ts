/**
 * All-to-all by PXN, as NCCL has it since version 2.12 (NVIDIA, "Doubling all2all Performance with NVIDIA Collective Communication
 * Library 2.12", 2022): what is for another rail goes inside the node to the rank of the destination's place, and from there on its
 * own rail. NCCL puts what several ranks have for one destination into one message; here each goes by itself.
 */
import { exchangeLayout } from "./direct.js";
import { type Shape, times } from "./layout.js";
import type { CellList, Program, ThreadBlock } from "./program.js";

/** A message from one rank to another; the rank that passes it on, or undefined: nobody does. */
interface Route {
  from: number;
  to: number;
  relay: number | undefined;
}

/** A channel is for what ranks of one place in their nodes have sent first: so no relay of theirs waits for those of others. */
export function pxn(shape: Shape): Program {
  const { ranks, perNode, nics } = shape;
  const layout = exchangeLayout(shape);
  const nodeOf = (rank: number) => Math.floor(rank / perNode);
  const railOf = (rank: number) => Math.floor((rank % perNode) / (perNode / nics));
  const routeOf = (from: number, to: number): Route => {
    const direct = nodeOf(from) === nodeOf(to) || railOf(from) === railOf(to);
    return { from, to, relay: direct ? undefined : nodeOf(from) * perNode + (to % perNode) };
  };
  /** In the order in which they leave the rank: the next rank's first. */
  const routesFrom = (from: number) =>
    Array.from({ length: ranks - 1 }, (_, i) => routeOf(from, (from + 1 + i) % ranks));
  times(shape.channels, (lane) => {
    const forEachList = ({ from, to }: Route, action: (list: CellList) => void) =>
      times(layout.pieces, (piece) => {
        const list = layout.list(from * ranks + to, lane, piece);
        if (layout.program.bytesOf(list) > 0) action(list);
      });
    times(perNode, (place) => {
      const blocks = Array.from({ length: ranks }, (_, rank) => layout.program.block(rank, lane * perNode + place));
      const blockOf = (rank: number) => blocks[rank] as ThreadBlock;
      const routes = Array.from({ length: ranks / perNode }, (_, node) => routesFrom(node * perNode + place)).flat();
      for (const route of routes) forEachList(route, (list) => blockOf(route.from).send(route.relay ?? route.to, list));
      // What comes from within the node does so in the order in which it was sent. Behind it is what comes from other nodes, so that
      // nothing is passed on later because of that.
      for (const route of routes) {
        const { from, to, relay } = route;
        if (relay !== undefined) forEachList(route, (list) => blockOf(relay).pass(from, to, list));
        else if (nodeOf(from) === nodeOf(to)) forEachList(route, (list) => blockOf(to).receive(from, list));
      }
      for (const route of routes) {
        const { from, to, relay } = route;
        if (nodeOf(from) !== nodeOf(to)) forEachList(route, (list) => blockOf(to).receive(relay ?? from, list));
      }
    });
  });
  return layout.program;
}
