/**
 * Recursive halving (reduce-scatter) and doubling (all-gather): ranks exchange with those whose number differs in one bit. Both
 * make Rabenseifner's all-reduce. Where ranks are no power of two, the first ones are folded in pairs, of which one waits
 * (Thakur, Rabenseifner, Gropp: "Optimization of Collective Communication Operations in MPICH", IJHPCA 2005, section 4.5).
 */
import { Layout, powerBelow, type Shape, times } from "./layout.js";
import type { CellList, Program, ThreadBlock } from "./program.js";

/** Which ranks take part: `active`, a power of two, of which the first `folded` each stand for a rank that waits, too. */
export function foldingOf(ranks: number) {
  const active = powerBelow(ranks);
  const folded = ranks - active;
  return {
    active,
    folded,
    rankOf: (member: number) => (member < folded ? 2 * member + 1 : member + folded),
    /** The first rank that a member and all behind it stand for. */
    firstOf: (member: number) => (member < folded ? 2 * member : member + folded),
  };
}

export function halvingDoubling(shape: Shape, reducing: boolean, gathering: boolean): Program {
  const { active, folded, rankOf, firstOf } = foldingOf(shape.ranks);
  // All of it is reduced at all ranks, so blocks of ranks that wait would only make messages uneven.
  const both = reducing && gathering;
  const blocks = both ? active : shape.ranks;
  const first = both ? (member: number) => member : firstOf;
  const layout = new Layout(shape, blocks, shape.channels, blocks);
  const { program, pieces } = layout;
  times(shape.channels, (channel) => {
    const group = (from: number, to: number) => (piece: number) =>
      layout.list(first(from), channel, piece, first(to) - first(from));
    const all = (piece: number) => layout.list(0, channel, piece, blocks);
    const others = (rank: number) => (piece: number) =>
      program.cells(layout.cell(0, channel, piece), rank, layout.cell(rank + 1, channel, piece), blocks - rank - 1);
    const own = (rank: number) => (piece: number) => layout.list(rank, channel, piece);
    const send = (block: ThreadBlock, to: number, cells: (piece: number) => CellList) =>
      times(pieces, (piece) => block.send(to, cells(piece)));
    const receive = (block: ThreadBlock, from: number, cells: (piece: number) => CellList, adding: boolean) =>
      times(pieces, (piece) => block[adding ? "receiveReduce" : "receive"](from, cells(piece)));

    times(folded, (pair) => {
      const rank = 2 * pair;
      const block = program.block(rank, channel);
      send(block, rank + 1, both ? all : reducing ? others(rank) : own(rank));
      receive(block, rank + 1, both ? all : reducing ? own(rank) : others(rank), reducing && !gathering);
    });
    times(active, (member) => {
      const rank = rankOf(member);
      const waiting = member < folded ? rank - 1 : undefined;
      const block = program.block(rank, channel);
      const exchange = (distance: number, adding: boolean) => {
        const partner = member ^ distance;
        const mine = member & -distance;
        const theirs = partner & -distance;
        const [sent, received] = adding ? [theirs, mine] : [mine, theirs];
        send(block, rankOf(partner), group(sent, sent + distance));
        receive(block, rankOf(partner), group(received, received + distance), adding);
      };
      if (waiting !== undefined)
        receive(block, waiting, both ? all : reducing ? others(waiting) : own(waiting), reducing);
      if (reducing) for (let distance = active / 2; distance >= 1; distance /= 2) exchange(distance, true);
      if (gathering) for (let distance = 1; distance < active; distance *= 2) exchange(distance, false);
      if (waiting !== undefined) send(block, waiting, both ? all : reducing ? own(waiting) : others(waiting));
    });
  });
  return program;
}
