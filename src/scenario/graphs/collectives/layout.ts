/** How the data of a collective is divided into cells. */
import { WeirError } from "../../../base/error.js";
import { type CellList, Program } from "./program.js";

/** A checked request: ranks are 0 to `ranks` - 1. */
export interface CheckedRequest {
  ranks: number;
  bytes: number;
  /** Bytes that each rank sends to each, where they differ: of all-to-all. */
  sizes?: readonly (readonly number[])[];
  channels: number;
  /** Most bytes of a message. */
  chunk: number;
  root: number;
  perNode: number;
  nics: number;
  inFlight: number;
  /** Ranks in the order of each channel's ring. */
  orders?: readonly (readonly number[])[];
}

/** What a program is made for. */
export interface Shape extends CheckedRequest {
  /** Messages of all ranks in one lane and piece, about, or blocks in them where each is listed. */
  messages: number;
}

/** Most messages of a collective, or blocks in them: each takes some 250 bytes while the graph is made. */
export const kMostMessages = 2 ** 23;

/** Bytes of part `i` of `parts`: they differ by one at most, larger ones first, and together are `bytes`. */
export function partOf(bytes: number, parts: number, i: number): number {
  const rest = bytes % parts;
  return (bytes - rest) / parts + (i < rest ? 1 : 0);
}

/**
 * Blocks of data, each divided among lanes (channels, or trees of them), and in each lane into pieces, which are cells. Blocks
 * that follow each other do so in each lane and piece, too.
 */
export class Layout {
  readonly program: Program;
  readonly pieces: number;

  /**
   * @param inMessage Most blocks that one message has.
   * @param unequal Bytes of each block, and of the largest, where they are not parts of shape.bytes.
   * @throws WeirError when chunks are so small that messages cannot be, or there are too many.
   */
  constructor(
    private readonly shape: Shape,
    private readonly blocks: number,
    private readonly lanes: number,
    inMessage = 1,
    private readonly unequal?: { bytesOf: (block: number) => number; largest: number },
  ) {
    const largest = unequal?.largest ?? Math.ceil(shape.bytes / blocks);
    const most = Math.floor(shape.chunk / inMessage);
    this.pieces = Math.max(1, Math.ceil(largest / (most * lanes)));
    if (most < 1) {
      const message = `chunk: a message has up to ${inMessage} blocks of this collective, and ${shape.chunk} bytes are fewer`;
      throw new WeirError(message, { field: "chunk", hint: `at least ${inMessage}` });
    }
    const messages = shape.messages * lanes * this.pieces;
    if (messages > kMostMessages) {
      throw new WeirError(`a collective of some ${messages} messages, or blocks in them`, {
        hint: `${kMostMessages} are possible: fewer ranks or channels, larger chunks, or an algorithm of fewer messages`,
      });
    }
    this.program = new Program(shape.ranks, (first, count) => this.bytesOf(first, count));
  }

  cell(block: number, lane: number, piece: number): number {
    return (lane * this.pieces + piece) * this.blocks + block;
  }

  /** `count` blocks from `first`, of one lane and piece. */
  list(first: number, lane: number, piece: number, count = 1): CellList {
    return this.program.cells(this.cell(first, lane, piece), count);
  }

  /** A function that returns list() of one block in a lane, made once for each piece. */
  lister(lane: number): (block: number, piece: number) => CellList {
    const known = new Map<number, CellList>();
    return (block, piece) => {
      const cell = this.cell(block, lane, piece);
      const list = known.get(cell) ?? this.program.cells(cell, 1);
      known.set(cell, list);
      return list;
    };
  }

  /** Bytes of cells of one lane and piece. */
  private bytesOf(first: number, count: number): number {
    const { blocks, unequal } = this;
    const { bytes } = this.shape;
    const block = first % blocks;
    const cellBytes = (of: number) => partOf(of, this.lanes * this.pieces, Math.floor(first / blocks));
    if (unequal !== undefined) {
      let sum = 0;
      for (let i = block; i < block + count; i++) sum += cellBytes(unequal.bytesOf(i));
      return sum;
    }
    // Blocks have one of two sizes, larger ones first; messages of many blocks shall not cost more than those of one.
    const larger = Math.min(Math.max((bytes % blocks) - block, 0), count);
    return (
      larger * cellBytes(partOf(bytes, blocks, 0)) + (count - larger) * cellBytes(partOf(bytes, blocks, blocks - 1))
    );
  }
}

/** Calls `action` for 0 to `count` - 1. */
export function times(count: number, action: (i: number) => void): void {
  for (let i = 0; i < count; i++) action(i);
}

/** The largest power of two that is not above `n`, for n from 1. */
export const powerBelow = (n: number): number => 2 ** (31 - Math.clz32(n));

/** Steps of doubling from 1 until at least `n`. */
export const doublings = (n: number): number => (n <= 1 ? 0 : 32 - Math.clz32(n - 1));
