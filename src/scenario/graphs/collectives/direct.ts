/**
 * Each rank sends to all others at once, as between ranks that a switch connects: one step for a reduce-scatter, an all-gather or
 * an all-to-all. The rank behind the sender comes first, so that not all send to one.
 */
import { type CheckedRequest, Layout, partOf, type Shape, times } from "./layout.js";
import type { CellList, Program, ThreadBlock } from "./program.js";

/** Members of a group, of which `own` is the position of the block's rank; cells(i) is what belongs to member i. */
export interface DirectPlace {
  block: ThreadBlock;
  members: readonly number[];
  own: number;
  pieces: number;
  cells: (member: number, piece: number) => CellList;
}

/** Positions of the other members, from the next one on. */
function others(place: DirectPlace): number[] {
  const { members, own } = place;
  return Array.from({ length: members.length - 1 }, (_, i) => (own + 1 + i) % members.length);
}

export function addDirectSends(place: DirectPlace, what: "own" | "theirs", piece: number): void {
  for (const other of others(place)) {
    place.block.send(place.members[other] as number, place.cells(what === "own" ? place.own : other, piece));
  }
}

/** Receives contributions to the own data. */
export function addDirectReduction(place: DirectPlace, piece: number): void {
  for (const other of others(place).reverse())
    place.block.receiveReduce(place.members[other] as number, place.cells(place.own, piece));
}

/** Receives what others have. */
export function addDirectReceives(place: DirectPlace): void {
  times(place.pieces, (piece) => {
    for (const other of others(place).reverse())
      place.block.receive(place.members[other] as number, place.cells(other, piece));
  });
}

/** Block i of the data is that of rank i. */
export function direct(shape: Shape, reducing: boolean, gathering: boolean): Program {
  const layout = new Layout(shape, shape.ranks, shape.channels);
  const members = Array.from({ length: shape.ranks }, (_, rank) => rank);
  times(shape.channels, (channel) => {
    const cells = layout.lister(channel);
    for (const own of members) {
      const block = layout.program.block(own, channel);
      const place: DirectPlace = { block, members, own, pieces: layout.pieces, cells };
      if (reducing) times(layout.pieces, (piece) => addDirectSends(place, "theirs", piece));
      times(layout.pieces, (piece) => {
        if (reducing) addDirectReduction(place, piece);
        if (gathering) addDirectSends(place, "own", piece);
      });
      if (gathering) addDirectReceives(place);
    }
  });
  return layout.program;
}

/** Data of an all-to-all: block i * ranks + j is what rank i has for rank j. */
export function exchangeLayout(shape: Shape): Layout {
  const { ranks } = shape;
  const bytesOf = (block: number) => exchanged(shape, Math.floor(block / ranks), block % ranks);
  return new Layout(shape, ranks * ranks, shape.channels, 1, { bytesOf, largest: mostExchanged(shape) });
}

/**
 * All-to-all by pairwise exchange: in step k rank i sends to i + k and receives from i - k (Thakur, Rabenseifner, Gropp 2005,
 * section 4.3; NCCL's send and receive groups). Nothing is sent of blocks that are empty. At most shape.inFlight steps are under
 * way at a rank.
 */
export function pairwise(shape: Shape): Program {
  const { ranks, inFlight } = shape;
  const layout = exchangeLayout(shape);
  times(shape.channels, (channel) =>
    times(ranks, (rank) => {
      const block = layout.program.block(rank, channel);
      const sent: number[] = [];
      const forEachList = (from: number, to: number, action: (list: CellList) => void) =>
        times(layout.pieces, (piece) => {
          const list = layout.list(from * ranks + to, channel, piece);
          if (layout.program.bytesOf(list) > 0) action(list);
        });
      const receive = (k: number) => {
        const from = (rank + ranks - k) % ranks;
        forEachList(from, rank, (list) => block.receive(from, list));
      };
      for (let k = 1; k < ranks; k++) {
        const done = k - inFlight;
        if (done >= 1) {
          receive(done);
          const end = sent[done];
          if (end !== undefined) block.await({ block, step: end });
        }
        const to = (rank + k) % ranks;
        forEachList(rank, to, (list) => {
          block.send(to, list);
          sent[k] = block.last.step;
        });
      }
      for (let k = Math.max(1, ranks - inFlight); k < ranks; k++) receive(k);
    }),
  );
  return layout.program;
}

/** Bytes from one rank to another; what all send and all receive is the same, also where it does not divide evenly. */
export function exchanged({ ranks, bytes, sizes }: CheckedRequest, from: number, to: number): number {
  if (sizes !== undefined) return sizes[from]?.[to] as number;
  return partOf(bytes, ranks, (from + to) % ranks);
}

/** Most bytes from one rank to another. */
export function mostExchanged({ ranks, bytes, sizes }: CheckedRequest): number {
  if (sizes === undefined) return Math.ceil(bytes / ranks);
  return sizes.reduce((most, row) => row.reduce((a, b) => Math.max(a, b), most), 0);
}
