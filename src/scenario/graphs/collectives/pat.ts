/**
 * PAT, parallel aggregated trees (Jeaugey: "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
 * arXiv 2506.20252; NCCL, PatAGAlgorithm and PatRSAlgorithm in src/include/collectives.h). The block of each rank travels along
 * a binomial tree, the same for all but for its place: who is `offset` ranks below the owner has it from who is at the offset
 * without its lowest bit, and that bit away. Far exchanges come first; they are whole trees in one message, as many as a chunk
 * holds. As in NCCL, a rank has one exchange after the other under way. NCCL's further aggregation by the depth of its buffers,
 * which changes the order only, is left out.
 */
import { doublings, Layout, powerBelow, type Shape, times } from "./layout.js";
import type { CellList, Program, ThreadBlock } from "./program.js";

/** Offsets that move in one message, and how far. */
export interface PatMove {
  offsets: readonly number[];
  distance: number;
}

export interface PatStep {
  kind: "send" | "receive";
  move: PatMove;
}

/** Number of trees in one message, as NCCL has it: a power of two, and half of the ranks suffice. `block`: bytes of one. */
export function aggregationOf(ranks: number, chunk: number, block: number): number {
  let trees = 1;
  while (trees < Math.floor(ranks / 2) && chunk >= 2 * trees * block) trees *= 2;
  return trees;
}

/** Order of a rank's messages, the same for all ranks; a move's offsets are below `ranks`, and it is left out without any. */
export function patGather(ranks: number, trees: number): PatStep[] {
  const span = 2 ** doublings(ranks) / trees;
  const steps: PatStep[] = [];
  const received = new Set<number>([0]);
  const push = (kind: PatStep["kind"], move: PatMove) => {
    if (move.offsets.length > 0) steps.push({ kind, move });
  };
  for (let scale = trees / 2; scale >= 1; scale /= 2) {
    const move = farMove(ranks, scale * span);
    push("send", move);
    push("receive", move);
  }
  for (const offset of nearOffsets(span)) {
    const above = offset & (offset - 1);
    // A block is received when it is first needed, which frees the buffer soonest.
    if (!received.has(above)) {
      received.add(above);
      push("receive", nearMove(ranks, above, span));
    }
    push("send", nearMove(ranks, offset, span));
    if (offset % 2 === 1) push("receive", nearMove(ranks, offset, span));
  }
  return steps;
}

/** The same for a reduce-scatter: what is received is added to the offset without its lowest bit. */
export function patReduce(ranks: number, trees: number): PatStep[] {
  const span = 2 ** doublings(ranks) / trees;
  const steps: PatStep[] = [];
  const push = (kind: PatStep["kind"], move: PatMove) => {
    if (move.offsets.length > 0) steps.push({ kind, move });
  };
  for (let offset = span - 1; offset >= 1; offset--) {
    const move = nearMove(ranks, offset, span);
    if (offset % 2 === 1) push("send", move);
    push("receive", move);
    if (offset % 2 === 1 && offset > 1) push("send", nearMove(ranks, offset - 1, span));
  }
  for (let scale = 1; scale < trees; scale *= 2) {
    const move = farMove(ranks, scale * span);
    push("send", move);
    push("receive", move);
  }
  return steps;
}

export function pat(shape: Shape, gathering: boolean): Program {
  const { ranks } = shape;
  const layout = new Layout(shape, ranks, shape.channels);
  const cellBytes = Math.ceil(shape.bytes / ranks / (shape.channels * layout.pieces));
  const trees = aggregationOf(ranks, shape.chunk, cellBytes);
  const steps = gathering ? patGather(ranks, trees) : patReduce(ranks, trees);
  times(shape.channels, (channel) =>
    times(ranks, (rank) => {
      const block = layout.program.block(rank, channel);
      times(layout.pieces, (piece) => {
        for (const step of steps) addStep(layout, block, step, gathering, channel, piece);
      });
    }),
  );
  return layout.program;
}

function addStep(
  layout: Layout,
  block: ThreadBlock,
  step: PatStep,
  gathering: boolean,
  channel: number,
  piece: number,
) {
  const { program } = layout;
  const { distance, offsets } = step.move;
  const { rank } = block;
  const below = (rank + program.ranks - distance) % program.ranks;
  const above = (rank + distance) % program.ranks;
  // Of the two ends of a move, one has the data at its offset, the other at the offset less the distance.
  const shift = (step.kind === "send") === gathering ? distance : 0;
  const list: CellList = program.cells(
    ...offsets.flatMap((offset) => [layout.cell((rank + offset - shift) % program.ranks, channel, piece), 1]),
  );
  if (step.kind === "send") block.send(gathering ? below : above, list);
  else if (gathering) block.receive(above, list);
  else block.receiveReduce(below, list);
}

/** An exchange of phases 2 and 3 in NCCL: roots of trees, an odd multiple of `distance` away. */
function farMove(ranks: number, distance: number): PatMove {
  const offsets = [];
  for (let offset = distance; offset < ranks; offset += 2 * distance) offsets.push(offset);
  return { offsets, distance };
}

/** The same place in all trees. */
function nearMove(ranks: number, first: number, span: number): PatMove {
  const offsets = [];
  for (let offset = first; offset < ranks; offset += span) offsets.push(offset);
  return { offsets, distance: first & -first };
}

/** Offsets in a tree in the order of NCCL's nextAs(): all from 1 to `span` - 1, and each after those above it. */
export function nearOffsets(span: number): number[] {
  const dimensions = doublings(span);
  const count = Array.from({ length: dimensions }, (_, i) => dimensions - i);
  const zeroStep = new Array<number>(dimensions).fill(1);
  let offset = 0;
  return Array.from({ length: span - 1 }, () => {
    for (let d = 0; d < dimensions; d++) {
      const bit = 2 ** d;
      count[d] = (count[d] as number) - 1;
      if (count[d] !== 0) continue;
      offset ^= bit;
      count[d] = bit;
      if ((offset & bit) !== 0) continue;
      const zero = zeroStep[d] as number;
      count[d] = bit + Math.log2(powerBelow(zero & -zero)) - 1;
      if (count[d] === 0) {
        offset ^= bit;
        count[d] = bit;
      }
      zeroStep[d] = zero + 1;
    }
    return offset;
  });
}
