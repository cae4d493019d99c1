/**
 * Collectives as programs, between algorithms and message graphs: steps of thread blocks on cells of a rank's memory, after
 * MSCCL (Cowan et al., "MSCCLang", ASPLOS 2023; msccl-tools, msccl/language/ir.py). Cells are pieces of data that move as a
 * whole: in algorithms of our own, cell i of one rank is cell i of all.
 */

/** Bits of what a step does: a combination has one of MSCCL's names. */
const kReceives = 1;
const kReduces = 2;
const kSends = 4;
const kStores = 8;

/** Kinds by MSCCL's names. */
export const kStep = {
  /** Nothing, or waiting for steps of other blocks alone. */
  nop: 0,
  /** Send the source. */
  s: kSends,
  /** Receive into the destination. */
  r: kReceives | kStores,
  /** The same, and send it on. */
  rcs: kReceives | kStores | kSends,
  /** Receive, add the source, and send the sum on. */
  rrs: kReceives | kReduces | kSends,
  /** Receive, add the source, and put the sum into the destination. */
  rrc: kReceives | kReduces | kStores,
  /** The same, and send it on. */
  rrcs: kReceives | kReduces | kStores | kSends,
  /** Copy the source to the destination of the same rank. */
  cpy: kStores,
  /** Add the source to the destination of the same rank. */
  re: kReduces | kStores,
} as const;
export type StepKind = (typeof kStep)[keyof typeof kStep];

export const receives = (kind: StepKind): boolean => (kind & kReceives) !== 0;
export const reduces = (kind: StepKind): boolean => (kind & kReduces) !== 0;
export const sends = (kind: StepKind): boolean => (kind & kSends) !== 0;
export const stores = (kind: StepKind): boolean => (kind & kStores) !== 0;

/** Position of a list of cells in the program; equal lists need not have equal positions. */
export type CellList = number;

/** A step of a block: both by their positions. */
export interface StepPlace {
  block: ThreadBlock;
  step: number;
}

/**
 * Steps of one rank, one after the other. Its messages to one rank on one channel arrive in their order, so no two blocks of a
 * rank may send to the same rank on the same channel, or receive from the same.
 */
export class ThreadBlock {
  readonly kinds: StepKind[] = [];
  /** Peers of each step; where a step does not send or receive, the entry says nothing. */
  readonly to: number[] = [];
  readonly from: number[] = [];
  readonly sources: CellList[] = [];
  readonly destinations: CellList[] = [];
  /** Bytes of each step's message. */
  readonly bytes: number[] = [];
  /** Lines of the file, from 1; empty where there is none. */
  readonly lines: number[] = [];
  /** What steps wait for besides those before them: `step` of this block for the end of `on`. In the order of `step`. */
  readonly waits: { step: number; on: StepPlace }[] = [];

  constructor(
    readonly rank: number,
    readonly channel: number,
    private readonly program: Program,
  ) {}

  get length(): number {
    return this.kinds.length;
  }

  /** The last step so far. */
  get last(): StepPlace {
    return { block: this, step: this.length - 1 };
  }

  send(to: number, cells: CellList): void {
    this.add(kStep.s, to, 0, cells, cells);
  }

  receive(from: number, cells: CellList): void {
    this.add(kStep.r, 0, from, cells, cells);
  }

  receiveReduce(from: number, cells: CellList): void {
    this.add(kStep.rrc, 0, from, cells, cells);
  }

  /** Receives into cells, after adding what they hold if `reducing`, and sends them on. */
  pass(from: number, to: number, cells: CellList, reducing = false): void {
    this.add(reducing ? kStep.rrcs : kStep.rcs, to, from, cells, cells);
  }

  /** A step of any kind. */
  add(kind: StepKind, to: number, from: number, source: CellList, destination: CellList): void {
    this.kinds.push(kind);
    this.to.push(to);
    this.from.push(from);
    this.sources.push(source);
    this.destinations.push(destination);
    this.bytes.push(this.program.bytesOf(kind === kStep.s || kind === kStep.rrs ? source : destination));
  }

  /** The step that comes next also waits for the end of `on`, a step of this or of another block of the same rank. */
  await(on: StepPlace): void {
    this.waits.push({ step: this.length, on });
  }
}

export class Program {
  readonly blocks: ThreadBlock[] = [];
  channels = 0;
  /** Lists one after the other: bytes, number of ranges, then first cell and number of cells of each range. */
  private readonly lists: number[] = [];

  /** `bytesOfCells`: bytes that `count` cells from `first` have together. */
  constructor(
    readonly ranks: number,
    readonly bytesOfCells: (first: number, count: number) => number,
  ) {}

  block(rank: number, channel: number): ThreadBlock {
    const block = new ThreadBlock(rank, channel, this);
    this.blocks.push(block);
    this.channels = Math.max(this.channels, channel + 1);
    return block;
  }

  /** A list of ranges: first cell and number of cells of each. */
  cells(...ranges: readonly number[]): CellList {
    const list = this.lists.length;
    let bytes = 0;
    for (let i = 0; i < ranges.length; i += 2) bytes += this.bytesOfCells(ranges[i] as number, ranges[i + 1] as number);
    this.lists.push(bytes, ranges.length / 2);
    for (const number of ranges) this.lists.push(number);
    return list;
  }

  bytesOf(list: CellList): number {
    return this.lists[list] as number;
  }

  /** Calls `visit` with each cell of a list. */
  forEachCell(list: CellList, visit: (cell: number) => void): void {
    const ranges = this.lists[list + 1] as number;
    for (let i = 0; i < ranges; i++) {
      const first = this.lists[list + 2 + 2 * i] as number;
      const count = this.lists[list + 3 + 2 * i] as number;
      for (let cell = first; cell < first + count; cell++) visit(cell);
    }
  }
}
