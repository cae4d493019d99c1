/**
 * Double binary trees: half of the data goes up and down each of two trees, and a rank that is inside one is a leaf of the other
 * (Sanders, Speck, Träff: "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 2009), with
 * the trees of NCCL: src/graph/trees.cc.
 */
import { Layout, type Shape, times } from "./layout.js";
import type { CellList, Program, StepPlace } from "./program.js";
import { headPlace } from "./rails.js";

/** A member's neighbours; without a parent it is the root. */
export interface TreePlace {
  parent?: number;
  children: readonly number[];
}

/** NCCL's ncclGetBtree: odd numbers are leaves, 0 is the root and has one child. */
function binaryTree(members: number, member: number): TreePlace {
  const bit = member === 0 ? 2 ** (32 - Math.clz32(members - 1)) : member & -member;
  if (member === 0) return { children: members > 1 ? [bit / 2] : [] };
  const above = (member ^ bit) | (bit << 1);
  const parent = above >= members ? member ^ bit : above;
  if (bit === 1) return { parent, children: [] };
  const children = [member - bit / 2];
  let low = bit / 2;
  while (low > 0 && member + low >= members) low >>= 1;
  if (low > 0) children.push(member + low);
  return { parent, children };
}

/** NCCL's ncclGetDtree: the second tree is the first mirrored, or for an odd number shifted by one. */
export function doubleTree(members: number, tree: 0 | 1, member: number): TreePlace {
  if (tree === 0) return binaryTree(members, member);
  const map = members % 2 === 0 ? (other: number) => members - 1 - other : (other: number) => (other + 1) % members;
  const own = members % 2 === 0 ? members - 1 - member : (member + members - 1) % members;
  const { parent, children } = binaryTree(members, own);
  return { ...(parent === undefined ? {} : { parent: map(parent) }), children: children.map(map) };
}

/** Where in a program a tree's steps go. */
export interface TreeSteps {
  program: Program;
  channel: number;
  pieces: number;
  cells: (piece: number) => CellList;
  /** A step that the rank's part waits for. */
  start?: StepPlace;
}

/**
 * Adds the steps of one rank, whose neighbours are ranks: a block reduces towards the root, another one passes the sum on.
 * Returns a step that comes when the rank has all.
 */
export function addTreeSteps(steps: TreeSteps, rank: number, { parent, children }: TreePlace): StepPlace {
  const { program, channel, pieces, start } = steps;
  const up = program.block(rank, channel);
  const down = program.block(rank, channel);
  if (start !== undefined) up.await(start);
  times(pieces, (piece) => {
    const cells = steps.cells(piece);
    for (const child of children) up.receiveReduce(child, cells);
    if (parent !== undefined) {
      up.send(parent, cells);
      down.receive(parent, cells);
    } else if (children.length > 0) down.await(up.last);
    for (const child of children) down.send(child, cells);
  });
  down.add(0, 0, 0, steps.cells(0), steps.cells(0));
  return down.last;
}

/**
 * An all-reduce by trees across nodes and chains within them. Other channels have other ranks of a node, and its other NICs, at the
 * head of its chain.
 */
export function tree(shape: Shape): Program {
  const { perNode } = shape;
  const nodes = shape.ranks / perNode;
  const layout = new Layout(shape, 1, 2 * shape.channels);
  times(2 * shape.channels, (lane) => {
    const list = layout.lister(lane);
    const head = headPlace(shape, lane >> 1);
    const rankOf = (node: number, link: number) => node * perNode + ((link + head) % perNode);
    const steps = { program: layout.program, channel: lane, pieces: layout.pieces, cells: (i: number) => list(0, i) };
    times(nodes, (node) =>
      times(perNode, (link) => {
        const inside = link + 1 < perNode ? [rankOf(node, link + 1)] : [];
        const { parent, children } =
          link > 0
            ? { parent: rankOf(node, link - 1), children: [] }
            : headOf(doubleTree(nodes, (lane & 1) as 0 | 1, node), rankOf);
        addTreeSteps(steps, rankOf(node, link), {
          ...(parent === undefined ? {} : { parent }),
          children: [...inside, ...children],
        });
      }),
    );
  });
  return layout.program;
}

function headOf({ parent, children }: TreePlace, rankOf: (node: number, link: number) => number): TreePlace {
  return {
    ...(parent === undefined ? {} : { parent: rankOf(parent, 0) }),
    children: children.map((node) => rankOf(node, 0)),
  };
}
