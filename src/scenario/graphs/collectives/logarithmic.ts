/** Collectives without data to divide among ranks, in a logarithmic number of steps. */
import { Layout, type Shape, times } from "./layout.js";
import type { Program } from "./program.js";

/**
 * A broadcast along a binomial tree (Thakur, Rabenseifner, Gropp 2005, section 4.2): who is so many ranks behind the root has it
 * from who is at that distance without its lowest bit. The largest part of the tree is served first.
 */
export function binomialBroadcast(shape: Shape): Program {
  const { ranks, root } = shape;
  const layout = new Layout(shape, 1, shape.channels);
  times(shape.channels, (channel) => {
    const list = layout.lister(channel);
    const at = (distance: number) => (root + distance) % ranks;
    times(ranks, (distance) => {
      const block = layout.program.block(at(distance), channel);
      const children: number[] = [];
      for (let bit = 1; bit < ranks && (distance & bit) === 0; bit *= 2) {
        if (distance + bit < ranks) children.unshift(at(distance + bit));
      }
      times(layout.pieces, (piece) => {
        if (distance > 0) block.receive(at(distance & (distance - 1)), list(0, piece));
        for (const child of children) block.send(child, list(0, piece));
      });
    });
  });
  return layout.program;
}

/**
 * A barrier by dissemination (Hensgen, Finkel, Manber: "Two algorithms for barrier synchronization", IJPP 1988): in round k each
 * rank tells the one 2^k behind it, of which ranks it has heard.
 */
export function dissemination(shape: Shape): Program {
  const { ranks } = shape;
  const layout = new Layout({ ...shape, chunk: Number.POSITIVE_INFINITY }, 1, 1);
  const token = layout.list(0, 0, 0);
  times(ranks, (rank) => {
    const block = layout.program.block(rank, 0);
    for (let distance = 1; distance < ranks; distance *= 2) {
      block.send((rank + distance) % ranks, token);
      block.receiveReduce((rank + ranks - distance) % ranks, token);
    }
  });
  return layout.program;
}
