/**
 * Message graphs: operations of ranks, and what each waits for. The meaning is that of GOAL (Hoefler, Siebert, Lumsdaine: "Group
 * Operation Assembly Language", ICPP 2009): an operation starts when all that it `requires` has ended, and all that it `irequires`
 * has started. All formats that can be read become this, and the native core (native/graph) carries it out on every clock.
 */
import { WeirError } from "../../base/error.js";

export const kSend = 0;
export const kReceive = 1;
export const kCalculate = 2;
export type OperationKind = typeof kSend | typeof kReceive | typeof kCalculate;

/** Peer of a receive that takes from whoever sends; also, in place of a tag, one that takes any. */
export const kAny = 0xffff_ffff;
/** Set in an entry of `dependencies`: the operation need only have started. */
export const kStartOnly = 0x8000_0000;

export const kMostRanks = 1_000_000;
export const kMostOperations = 0x7fff_ffff;
/** Names of phases, with the one that is none. */
export const kMostPhases = 0x1_0000;
/** Longest message, bytes, and longest calculation, ns: what is exact in a double, and within all clocks. */
export const kMostBytes = 1e15;
export const kMostNanoseconds = 1e15;

/** A position among all operations of a graph. */
export type Operation = number;

/** A column for each field, an entry for each operation; those of one rank stand together, ranks in order. */
export interface MessageGraph {
  /** Name of the file, or what else it was made from; for messages. */
  source: string;
  ranks: number;
  /** First operation of each rank, and behind them the number of all. */
  first: Uint32Array;
  kind: Uint8Array;
  /** The other rank, or kAny; of a calculation 0. */
  peer: Uint32Array;
  /** Of messages: receives match sends of the same tag, or take any by kAny. */
  tag: Uint32Array;
  /** Bytes of a message; ns of a calculation. */
  size: Float64Array;
  /** Which of the rank's processors calculates: those of one processor do not overlap. */
  processor: Uint8Array;
  /** First of what each operation waits for among `dependencies`, and behind them the number of all. */
  firstDependency: Uint32Array;
  /** Operations of the same rank, with kStartOnly. */
  dependencies: Uint32Array;
  /** Line of the source at which it stands, from 1; 0: none. */
  line: Uint32Array;
  /** Names of phases, of which each operation has one: `phase` is an index. The first is "", which is none. */
  phases: readonly string[];
  phase: Uint16Array;
}

/** Rank of an operation. */
export function rankOf({ first, ranks }: Pick<MessageGraph, "first" | "ranks">, operation: Operation): number {
  let low = 0;
  for (let high = ranks; high - low > 1; ) {
    const middle = (low + high) >>> 1;
    if ((first[middle] as number) <= operation) low = middle;
    else high = middle;
  }
  return low;
}

/** Where an operation stands and what it is called, for errors. */
export function operationName(graph: MessageGraph, operation: Operation): string {
  const rank = rankOf(graph, operation);
  const kind = ["send", "receive", "calculation"][graph.kind[operation] as number];
  const peer = graph.peer[operation];
  const other =
    graph.kind[operation] === kCalculate
      ? ""
      : peer === kAny
        ? " from any rank"
        : ` ${graph.kind[operation] === kSend ? "to" : "from"} rank ${peer}`;
  const line = graph.line[operation];
  return `rank ${rank}, operation ${operation - (graph.first[rank] as number)} (${kind}${other}${line ? `, line ${line}` : ""})`;
}

export interface Placed {
  /** Line of the source, from 1. */
  line?: number;
  /** Which processor of the rank; 0 by default, 255 at most. */
  processor?: number;
}

/** A growing column. */
class Growing<A extends Uint8Array | Uint16Array | Uint32Array | Float64Array> {
  length = 0;
  constructor(private array: A) {}
  push(value: number): void {
    if (this.length === this.array.length) {
      const larger = new (this.array.constructor as new (length: number) => A)(Math.ceil(this.length * 1.6));
      larger.set(this.array);
      this.array = larger;
    }
    this.array[this.length++] = value;
  }
  get(i: number): number {
    return this.array[i] as number;
  }
  taken(): A {
    return this.array.slice(0, this.length) as A;
  }
}

const kBegin = 1024;

/**
 * Collects operations in any order of ranks. Handles that it returns are for requires() and irequires(); in the finished graph
 * operations have other positions, unless ranks came in order.
 */
export class GraphBuilder {
  private readonly rank = new Growing(new Uint32Array(kBegin));
  private readonly kind = new Growing(new Uint8Array(kBegin));
  private readonly peer = new Growing(new Uint32Array(kBegin));
  private readonly tagOf = new Growing(new Uint32Array(kBegin));
  private readonly size = new Growing(new Float64Array(kBegin));
  private readonly processor = new Growing(new Uint8Array(kBegin));
  private readonly line = new Growing(new Uint32Array(kBegin));
  private readonly phaseOf = new Growing(new Uint16Array(kBegin));
  private readonly waiting = new Growing(new Uint32Array(kBegin));
  private readonly awaited = new Growing(new Uint32Array(kBegin));
  /** Numbers of phases by their names. */
  private readonly phases = new Map([["", 0]]);
  private phase = 0;
  private tags = 0;

  /** `source`: name of the file. */
  constructor(
    readonly source: string,
    readonly ranks: number,
  ) {
    if (!Number.isInteger(ranks) || ranks < 1 || ranks > kMostRanks) {
      throw new WeirError(`${source}: ${ranks} ranks`, { hint: `from 1 to ${kMostRanks} are possible` });
    }
  }

  get operations(): number {
    return this.rank.length;
  }

  /** A tag that no call before has returned; those of files are theirs, and should be below 2^31. */
  newTag(): number {
    return 0x8000_0000 + this.tags++;
  }

  /** How often one waits for another. */
  get dependencies(): number {
    return this.waiting.length;
  }

  /** Operations that follow are of this phase; "": of none. @throws WeirError for more names than kMostPhases. */
  enterPhase(name: string): void {
    const known = this.phases.get(name);
    if (known === undefined && this.phases.size === kMostPhases)
      throw new WeirError(`${this.source}: has more than ${kMostPhases - 1} phases`, {
        hint: "give several operations the same",
      });
    this.phase = known ?? this.phases.size;
    this.phases.set(name, this.phase);
  }

  send(rank: number, to: number, bytes: number, tag: number, placed: Placed = {}): Operation {
    return this.add(rank, kSend, to, tag, bytes, placed);
  }

  /** `from` and `tag` may be kAny. */
  receive(rank: number, from: number, bytes: number, tag: number, placed: Placed = {}): Operation {
    return this.add(rank, kReceive, from, tag, bytes, placed);
  }

  /** A calculation of so many ns; of 0 it is a joint, which takes no time. */
  calculate(rank: number, ns: number, placed: Placed = {}): Operation {
    return this.add(rank, kCalculate, 0, 0, ns, placed);
  }

  /** `operation` waits until `earlier`, of the same rank, has ended. */
  requires(operation: Operation, earlier: Operation): void {
    this.waiting.push(operation);
    this.awaited.push(earlier);
  }

  /** `operation` waits until `earlier`, of the same rank, has started. */
  irequires(operation: Operation, earlier: Operation): void {
    this.waiting.push(operation);
    this.awaited.push(earlier + kStartOnly);
  }

  build(): MessageGraph {
    const count = this.operations;
    const first = new Uint32Array(this.ranks + 1);
    for (let i = 0; i < count; i++) first[this.rank.get(i) + 1] = (first[this.rank.get(i) + 1] as number) + 1;
    for (let rank = 0; rank < this.ranks; rank++)
      first[rank + 1] = (first[rank + 1] as number) + (first[rank] as number);
    const next = first.slice();
    const place = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      const rank = this.rank.get(i);
      place[i] = next[rank] as number;
      next[rank] = (next[rank] as number) + 1;
    }
    const moved = <A extends Uint8Array | Uint16Array | Uint32Array | Float64Array>(column: Growing<A>): A => {
      const taken = column.taken();
      const out = new (taken.constructor as new (length: number) => A)(count);
      for (let i = 0; i < count; i++) out[place[i] as number] = taken[i] as number;
      return out;
    };
    const edges = this.waiting.length;
    const firstDependency = new Uint32Array(count + 1);
    for (let i = 0; i < edges; i++) {
      const after = (place[this.waiting.get(i)] as number) + 1;
      firstDependency[after] = (firstDependency[after] as number) + 1;
    }
    for (let i = 0; i < count; i++) {
      firstDependency[i + 1] = (firstDependency[i + 1] as number) + (firstDependency[i] as number);
    }
    const free = firstDependency.slice();
    const dependencies = new Uint32Array(edges);
    for (let i = 0; i < edges; i++) {
      const own = place[this.waiting.get(i)] as number;
      const awaited = this.awaited.get(i);
      const at = free[own] as number;
      free[own] = at + 1;
      dependencies[at] = (place[awaited % kStartOnly] as number) + (awaited >= kStartOnly ? kStartOnly : 0);
    }
    return {
      source: this.source,
      ranks: this.ranks,
      first,
      kind: moved(this.kind),
      peer: moved(this.peer),
      tag: moved(this.tagOf),
      size: moved(this.size),
      processor: moved(this.processor),
      firstDependency,
      dependencies,
      line: moved(this.line),
      phases: [...this.phases.keys()],
      phase: moved(this.phaseOf),
    };
  }

  private add(rank: number, kind: OperationKind, peer: number, tag: number, size: number, placed: Placed): Operation {
    const { line = 0, processor = 0 } = placed;
    const wrong = this.problemOf(rank, kind, peer, tag, size, processor);
    if (wrong !== undefined) {
      throw new WeirError(
        `${this.source}${line ? `:${line}` : ""}: rank ${rank}, ${["send", "receive", "calculation"][kind]}: ${wrong}`,
      );
    }
    this.rank.push(rank);
    this.kind.push(kind);
    this.peer.push(peer);
    this.tagOf.push(tag);
    this.size.push(size);
    this.processor.push(processor);
    this.line.push(line);
    this.phaseOf.push(this.phase);
    return this.rank.length - 1;
  }

  private problemOf(rank: number, kind: OperationKind, peer: number, tag: number, size: number, processor: number) {
    const whole = (value: number, least: number, most: number) =>
      Number.isInteger(value) && value >= least && value <= most;
    if (this.operations >= kMostOperations)
      return `there are ${kMostOperations} operations before it, and no more are possible`;
    if (!whole(rank, 0, this.ranks - 1)) return `ranks are from 0 to ${this.ranks - 1}`;
    if (!whole(processor, 0, 255)) return `processor ${processor}: from 0 to 255`;
    if (kind === kCalculate)
      return whole(size, 0, kMostNanoseconds) ? undefined : `${size} ns: a whole number up to ${kMostNanoseconds}`;
    const anybody = kind === kReceive && peer === kAny;
    if (!anybody && !whole(peer, 0, this.ranks - 1)) return `rank ${peer}: ranks are from 0 to ${this.ranks - 1}`;
    if (!whole(tag, 0, kAny) || (kind === kSend && tag === kAny)) return `tag ${tag}: from 0 to ${kAny - 1}`;
    return whole(size, 0, kMostBytes) ? undefined : `${size} bytes: a whole number up to ${kMostBytes}`;
  }
}
