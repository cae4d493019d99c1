/** Programs of collectives become operations of a message graph. */
import type { GraphBuilder, Operation, Placed } from "../graph.js";
import { type Program, receives, sends, type ThreadBlock } from "./program.js";

/** The operations that one step has become. */
interface StepOperations {
  receive?: Operation;
  send?: Operation;
  /** For a step without a send that others wait for. */
  joint?: Operation;
}

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
  private readonly operations = new Map<ThreadBlock, StepOperations[]>();
  /** The last operation for each pair of channel and peer. */
  private readonly lastReceive = new Map<string, Operation>();
  private readonly lastSend = new Map<string, Operation>();

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

  private operationsOf(block: ThreadBlock, awaited: ReadonlySet<number> | undefined): StepOperations[] {
    const { graph, graphRank } = this;
    const tag = this.tags[block.channel] as number;
    return block.kinds.map((kind, step) => {
      const placed: Placed = block.lines.length === 0 ? {} : { line: block.lines[step] as number };
      const bytes = block.bytes[step] as number;
      const operations: StepOperations = {};
      if (receives(kind)) {
        const from = block.from[step] as number;
        operations.receive = graph.receive(graphRank, this.ranks[from] as number, bytes, tag, placed);
        this.startBehind(this.lastReceive, `${block.channel} ${from}`, operations.receive);
      }
      if (sends(kind)) {
        const to = block.to[step] as number;
        operations.send = graph.send(graphRank, this.ranks[to] as number, bytes, tag, placed);
        this.lastSend.set(`${block.channel} ${to}`, operations.send);
      } else if (awaited?.has(step)) operations.joint = graph.calculate(graphRank, 0, placed);
      return operations;
    });
  }

  private startBehind(last: Map<string, Operation>, connection: string, operation: Operation): void {
    const before = last.get(connection);
    if (before !== undefined) this.graph.irequires(operation, before);
    else if (this.after !== undefined) this.graph.requires(operation, this.after);
    last.set(connection, operation);
  }

  /** Lets operations wait for those of the steps before them; returns those that no later one waits for, but for sends. */
  private connect(block: ThreadBlock): Operation[] {
    const { graph } = this;
    let ended: Operation[] = [];
    let started: Operation | undefined;
    let wait = 0;
    const waitForAll = (operation: Operation) => {
      for (const earlier of ended) graph.requires(operation, earlier);
      if (started !== undefined) graph.irequires(operation, started);
      else if (ended.length === 0 && this.after !== undefined) graph.requires(operation, this.after);
      ended = [];
      started = undefined;
    };
    const all = this.operations.get(block) ?? [];
    for (const [step, { receive, send, joint }] of all.entries()) {
      for (; block.waits[wait]?.step === step; wait++) {
        const { on } = block.waits[wait] as ThreadBlock["waits"][number];
        const awaited = this.operations.get(on.block)?.[on.step];
        ended.push((awaited?.send ?? awaited?.joint) as Operation);
      }
      if (receive !== undefined) ended.push(receive);
      if (send !== undefined) {
        waitForAll(send);
        started = send;
      } else if (joint !== undefined) {
        waitForAll(joint);
        ended = [joint];
      }
    }
    return ended;
  }
}
