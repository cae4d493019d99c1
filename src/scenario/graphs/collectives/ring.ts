/**
 * Rings: each rank receives from the one before it and sends to the one behind it (Patarasuk, Yuan: "Bandwidth optimal
 * all-reduce algorithms for clusters of workstations", JPDC 2009; NCCL, src/device/all_reduce.h).
 */
import { Layout, type Shape, times } from "./layout.js";
import type { CellList, Program, ThreadBlock } from "./program.js";
import { railOrder } from "./rails.js";

export interface RingPlace {
  block: ThreadBlock;
  previous: number;
  next: number;
  /** Position in the ring, and number of positions. */
  position: number;
  positions: number;
  pieces: number;
  /** Cells of the data that belongs to a position, which may be outside of the ring by one turn. */
  cells: (position: number, piece: number) => CellList;
}

/** Adds the steps of one rank: reduce-scatter, all-gather, or both, after which all positions have all. */
export function addRingSteps(place: RingPlace, reducing: boolean, gathering: boolean): void {
  const { block, previous, next, position, positions, pieces } = place;
  if (positions === 1) return;
  const cells = (at: number, piece: number) => place.cells((at + 2 * positions) % positions, piece);
  times(pieces, (piece) => block.send(next, cells(reducing ? position - 1 : position, piece)));
  if (reducing) {
    for (let k = 2; k < positions; k++)
      times(pieces, (piece) => block.pass(previous, next, cells(position - k, piece), true));
    times(pieces, (piece) => {
      if (gathering) block.pass(previous, next, cells(position, piece), true);
      else block.receiveReduce(previous, cells(position, piece));
    });
  }
  if (gathering) {
    for (let k = 1; k < positions - 1; k++)
      times(pieces, (piece) => block.pass(previous, next, cells(position - k, piece)));
    times(pieces, (piece) => block.receive(previous, cells(position + 1, piece)));
  }
}

/** Block i of the data is that of rank i. */
export function ring(shape: Shape, reducing: boolean, gathering: boolean): Program {
  const layout = new Layout(shape, shape.ranks, shape.channels);
  times(shape.channels, (channel) => {
    const order = orderOf(shape, channel);
    const list = layout.lister(channel);
    const at = (position: number) => order[(position + shape.ranks) % shape.ranks] as number;
    for (const [position, rank] of order.entries()) {
      const place: RingPlace = {
        block: layout.program.block(rank, channel),
        previous: at(position - 1),
        next: at(position + 1),
        position,
        positions: shape.ranks,
        pieces: layout.pieces,
        cells: (owner, piece) => list(at(owner), piece),
      };
      addRingSteps(place, reducing, gathering);
    }
  });
  return layout.program;
}

/** A broadcast along each ring, from the root to the rank before it (NCCL, src/device/broadcast.h). */
export function ringBroadcast(shape: Shape): Program {
  const layout = new Layout(shape, 1, shape.channels);
  times(shape.channels, (channel) => {
    const order = orderOf(shape, channel);
    const list = layout.lister(channel);
    const root = order.indexOf(shape.root);
    times(shape.ranks, (hops) => {
      const at = (distance: number) => order[(root + distance) % shape.ranks] as number;
      const block = layout.program.block(at(hops), channel);
      times(layout.pieces, (piece) => {
        const cells = list(0, piece);
        if (shape.ranks === 1) return;
        if (hops === 0) block.send(at(1), cells);
        else if (hops === shape.ranks - 1) block.receive(at(hops - 1), cells);
        else block.pass(at(hops - 1), at(hops + 1), cells);
      });
    });
  });
  return layout.program;
}

function orderOf(shape: Shape, channel: number): readonly number[] {
  return shape.orders?.[channel] ?? railOrder(shape, channel);
}
