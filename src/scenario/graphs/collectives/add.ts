/** Collectives become parts of message graphs. */
import { nearest } from "../../../base/nearest.js";
import type { GraphBuilder, Operation } from "../graph.js";
import { direct, pairwise } from "./direct.js";
import { halvingDoubling } from "./halving_doubling.js";
import { doublings, type Shape } from "./layout.js";
import { binomialBroadcast, dissemination } from "./logarithmic.js";
import { lowerProgram } from "./lower.js";
import { pat } from "./pat.js";
import type { Program } from "./program.js";
import { pxn } from "./pxn.js";
import {
  type CollectiveAlgorithm,
  type CollectiveOperation,
  type CollectiveRequest,
  checkedShape,
  requestError,
} from "./request.js";
import { ring, ringBroadcast } from "./ring.js";
import { tree } from "./tree.js";
import { twoLevelRing, twoLevelTree } from "./two_level.js";

export type { CollectiveAlgorithm, CollectiveOperation, CollectiveRequest } from "./request.js";

type Size = Pick<Shape, "ranks" | "perNode">;

interface Algorithm {
  program: (shape: Shape) => Program;
  /** Shape.messages: what fits into memory depends on them. */
  messages: (shape: Size) => number;
}

const quadratic = ({ ranks }: Size): number => ranks * ranks;
const logarithmic = ({ ranks }: Size): number => 2 * ranks * (doublings(ranks) + 1);
const linear = ({ ranks }: Size): number => 4 * ranks;
const twoLevel = ({ ranks, perNode }: Size): number => 2 * ranks * (perNode + ranks / perNode);

const kAlgorithms: Record<CollectiveOperation, Partial<Record<CollectiveAlgorithm, Algorithm>>> = {
  allreduce: {
    ring: { program: (shape) => ring(shape, true, true), messages: (shape) => 2 * quadratic(shape) },
    tree: { program: tree, messages: linear },
    "halving-doubling": { program: (shape) => halvingDoubling(shape, true, true), messages: logarithmic },
    "two-level-ring": { program: twoLevelRing, messages: twoLevel },
    "two-level-tree": { program: twoLevelTree, messages: ({ ranks, perNode }) => 4 * ranks * (perNode + 1) },
    direct: { program: (shape) => direct(shape, true, true), messages: (shape) => 2 * quadratic(shape) },
  },
  allgather: {
    ring: { program: (shape) => ring(shape, false, true), messages: quadratic },
    pat: { program: (shape) => pat(shape, true), messages: quadratic },
    "halving-doubling": { program: (shape) => halvingDoubling(shape, false, true), messages: logarithmic },
    direct: { program: (shape) => direct(shape, false, true), messages: quadratic },
  },
  reducescatter: {
    ring: { program: (shape) => ring(shape, true, false), messages: quadratic },
    pat: { program: (shape) => pat(shape, false), messages: quadratic },
    "halving-doubling": { program: (shape) => halvingDoubling(shape, true, false), messages: logarithmic },
    direct: { program: (shape) => direct(shape, true, false), messages: quadratic },
  },
  alltoall: {
    pairwise: { program: pairwise, messages: quadratic },
    pxn: { program: pxn, messages: (shape) => 2 * quadratic(shape) },
  },
  broadcast: {
    ring: { program: ringBroadcast, messages: linear },
    binomial: { program: binomialBroadcast, messages: linear },
  },
  barrier: { dissemination: { program: dissemination, messages: logarithmic } },
};

/** Algorithms that an operation has; the first is the default. */
export function algorithmsOf(operation: CollectiveOperation): readonly CollectiveAlgorithm[] {
  return Object.keys(kAlgorithms[operation]) as CollectiveAlgorithm[];
}

/**
 * Adds a collective to a graph, with tags of its own.
 *
 * @param after after[i]: operation of ranks[i] that its part waits for, or undefined.
 * @returns for each of `ranks` the operation with which its part ends.
 * @throws WeirError for what cannot be, naming the field.
 */
export function addCollective(
  graph: GraphBuilder,
  request: CollectiveRequest,
  after?: readonly (Operation | undefined)[],
): Operation[] {
  for (const rank of request.ranks) {
    if (!Number.isInteger(rank) || rank < 0 || rank >= graph.ranks) {
      throw requestError(request, "ranks", `${rank} is none`, `ranks are from 0 to ${graph.ranks - 1}`);
    }
  }
  return lowerProgram(graph, collectiveProgram(request), request.ranks, after);
}

/** The program of a collective; its ranks are places in request.ranks. */
export function collectiveProgram(request: CollectiveRequest): Program {
  const algorithm = algorithmOf(request);
  const { program, messages } = kAlgorithms[request.operation][algorithm] as Algorithm;
  const shape = checkedShape(request, algorithm);
  return program({ ...shape, messages: messages(shape) });
}

/** The algorithm of a request. @throws WeirError when the operation does not have it. */
export function algorithmOf(request: CollectiveRequest): CollectiveAlgorithm {
  const known = algorithmsOf(request.operation);
  const name = request.algorithm ?? (known[0] as CollectiveAlgorithm);
  if (known.includes(name)) return name;
  const meant = nearest(name, known);
  const hint = `${meant === undefined ? "" : `${meant}? `}it has ${known.join(", ")}`;
  throw requestError(request, "algorithm", `${name} is none that it has`, hint);
}
