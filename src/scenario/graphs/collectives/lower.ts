/** Programs of collectives become operations of a message graph. */
import type { GraphBuilder, Operation, Placed } from "../graph.js";
import { type Program, receives, sends, type ThreadBlock } from "./program.js";

/** Operations that the steps of a block have become; kNone where a step has none. */
interface BlockOperations {
  receives: Float64Array;
  /** Sends, and for steps without one joints, where others wait for them. */
  ends: Float64Array;
}

const kNone = -1;
const kNoLine: Placed = {};

/**
 * Adds a program to a graph. A receive is posted as soon as the rank's part starts and those before it from the same rank on the
 * same channel are; its step is done when the message is there and the steps before it are done. A step after a send need not
 * wait until the send has ended. Reductions and copies take no time.
 *
 * @param ranks Ranks of the graph that those of the program are.
 * @param after What the part of each waits for.
 * @returns for each rank of the program a joint that ends when all its receives and its last sends have ended.
 */
export function lowerProgram(
  graph: GraphBuilder,
  program: Program,
  ranks: readonly number[],
  after: readonly (Operation | undefined)[] = [],
): Operation[] {
  const tags = Array.from({ length: program.channels }, () => graph.newTag());
  const blocks: ThreadBlock[][] = Array.from({ length: program.ranks }, () => []);
  for (const block of program.blocks) blocks[block.rank]?.push(block);
  return blocks.map((own, rank) => new RankLowering(graph, ranks, tags, rank, after[rank]).lower(own));
}

class RankLowering {
  private readonly operations = new Map<ThreadBlock, BlockOperations>();
  /** The last operation of each connection(). */
  private readonly lastReceive = new Map<number, Operation>();
  private readonly lastSend = new Map<number, Operation>();

  constructor(
    private readonly graph: GraphBuilder,
    private readonly ranks: readonly number[],
    private readonly tags: readonly number[],
    private readonly rank: number,
    private readonly after: Operation | undefined,
  ) {}

  lower(blocks: readonly ThreadBlock[]): Operation {
    // A block may wait for one that comes behind it, so all operations are there before anything waits.
    const awaited = new Map<ThreadBlock, Set<number>>();
    for (const { waits } of blocks) {
      for (const { on } of waits) {
        const steps = awaited.get(on.block) ?? new Set();
        awaited.set(on.block, steps.add(on.step));
      }
    }
    for (const block of blocks) this.operations.set(block, this.operationsOf(block, awaited.get(block)));
    const open = blocks.flatMap((block) => this.connect(block));
    const end = this.graph.calculate(this.graphRank, 0);
    for (const operation of open) this.graph.requires(end, operation);
    // What is sent is in the NIC's hands; nobody waits for its acknowledgement.
    for (const operation of this.lastSend.values()) this.graph.irequires(end, operation);
    if (this.after !== undefined) this.graph.requires(end, this.after);
    return end;
  }

  private get graphRank(): number {
    return this.ranks[this.rank] as number;
  }

  private operationsOf(block: ThreadBlock, awaited: ReadonlySet<number> | undefined): BlockOperations {
    const { graph, graphRank } = this;
    const tag = this.tags[block.channel] as number;
    const starts = new Float64Array(block.length).fill(kNone);
    const ends = new Float64Array(block.length).fill(kNone);
    for (const [step, kind] of block.kinds.entries()) {
      const placed: Placed = block.lines.length === 0 ? kNoLine : { line: block.lines[step] as number };
      const bytes = block.bytes[step] as number;
      if (receives(kind)) {
        const from = block.from[step] as number;
        const receive = graph.receive(graphRank, this.ranks[from] as number, bytes, tag, placed);
        this.startBehind(this.connection(block.channel, from), receive);
        starts[step] = receive;
      }
      if (sends(kind)) {
        const to = block.to[step] as number;
        const send = graph.send(graphRank, this.ranks[to] as number, bytes, tag, placed);
        this.lastSend.set(this.connection(block.channel, to), send);
        ends[step] = send;
      } else if (awaited?.has(step)) ends[step] = graph.calculate(graphRank, 0, placed);
    }
    return { receives: starts, ends };
  }

  private connection(channel: number, peer: number): number {
    return channel * this.ranks.length + peer;
  }

  private startBehind(connection: number, receive: Operation): void {
    const before = this.lastReceive.get(connection);
    if (before !== undefined) this.graph.irequires(receive, before);
    else if (this.after !== undefined) this.graph.requires(receive, this.after);
    this.lastReceive.set(connection, receive);
  }

  /** Lets operations wait for those of the steps before them; returns those that no later one waits for, but for sends. */
  private connect(block: ThreadBlock): Operation[] {
    const { graph } = this;
    const own = this.operations.get(block) as BlockOperations;
    let ended: Operation[] = [];
    let started: Operation | undefined;
    let wait = 0;
    for (const [step, kind] of block.kinds.entries()) {
      for (; block.waits[wait]?.step === step; wait++) {
        const { on } = block.waits[wait] as ThreadBlock["waits"][number];
        ended.push((this.operations.get(on.block) as BlockOperations).ends[on.step] as number);
      }
      if (receives(kind)) ended.push(own.receives[step] as number);
      const end = own.ends[step] as number;
      if (end === kNone) continue;
      for (const earlier of ended) graph.requires(end, earlier);
      if (started !== undefined) graph.irequires(end, started);
      else if (ended.length === 0 && this.after !== undefined) graph.requires(end, this.after);
      // Who waits for a joint waits for all before it.
      ended = sends(kind) ? [] : [end];
      started = sends(kind) ? end : undefined;
    }
    return ended;
  }
}
