/**
 * All-reduce in two levels: ranks of a node (perNode that follow each other) reduce-scatter directly, those of the same place in
 * all nodes all-reduce their part, and ranks of a node gather the parts (Cho et al.: "BlueConnect", MLSys 2019).
 */
import { addDirectReceives, addDirectReduction, addDirectSends, type DirectPlace } from "./direct.js";
import { Layout, type Shape, times } from "./layout.js";
import type { Program, ThreadBlock } from "./program.js";
import { addRingSteps } from "./ring.js";
import { addTreeSteps, doubleTree } from "./tree.js";

/** A ring across the nodes. */
export function twoLevelRing(shape: Shape): Program {
  const { perNode } = shape;
  const nodes = shape.ranks / perNode;
  // Part i of the nodes' ring, within the part of a place in the node.
  const layout = new Layout(shape, shape.ranks, shape.channels, nodes);
  times(shape.channels, (channel) => {
    const one = layout.lister(channel);
    const whole = (place: number, piece: number) => layout.list(place * nodes, channel, piece, nodes);
    forEachRank(layout.program, perNode, nodes, channel, layout.pieces, whole, (inside, node) => {
      const rankOf = (other: number) => ((other + nodes) % nodes) * perNode + inside.own;
      reduceWithin(inside);
      const cells = (at: number, piece: number) => one(inside.own * nodes + (at % nodes), piece);
      const { block, pieces } = inside;
      const around = { previous: rankOf(node - 1), next: rankOf(node + 1), position: node, positions: nodes };
      addRingSteps({ block, pieces, cells, ...around }, true, true);
      gatherWithin(inside);
    });
  });
  return layout.program;
}

/** Double binary trees across the nodes. */
export function twoLevelTree(shape: Shape): Program {
  const { perNode } = shape;
  const nodes = shape.ranks / perNode;
  const layout = new Layout(shape, perNode, 2 * shape.channels);
  const { program, pieces } = layout;
  times(2 * shape.channels, (lane) => {
    const list = layout.lister(lane);
    forEachRank(program, perNode, nodes, lane, pieces, list, (inside, node) => {
      const { block, own } = inside;
      reduceWithin(inside);
      const { parent, children } = doubleTree(nodes, (lane & 1) as 0 | 1, node);
      const neighbours = {
        ...(parent === undefined ? {} : { parent: parent * perNode + own }),
        children: children.map((child) => child * perNode + own),
      };
      const steps = { program, channel: lane, pieces, cells: (piece: number) => list(own, piece) };
      const start = block.length === 0 ? {} : { start: block.last };
      block.await(addTreeSteps({ ...steps, ...start }, block.rank, neighbours));
      gatherWithin(inside);
    });
  });
  return program;
}

function forEachRank(
  program: Program,
  perNode: number,
  nodes: number,
  channel: number,
  pieces: number,
  cells: DirectPlace["cells"],
  action: (inside: DirectPlace & { block: ThreadBlock }, node: number) => void,
): void {
  times(nodes, (node) => {
    const members = Array.from({ length: perNode }, (_, place) => node * perNode + place);
    for (const [own, rank] of members.entries())
      action({ block: program.block(rank, channel), members, own, pieces, cells }, node);
  });
}

function reduceWithin(place: DirectPlace): void {
  times(place.pieces, (piece) => addDirectSends(place, "theirs", piece));
  times(place.pieces, (piece) => addDirectReduction(place, piece));
}

function gatherWithin(place: DirectPlace): void {
  times(place.pieces, (piece) => addDirectSends(place, "own", piece));
  addDirectReceives(place);
}
