/**
 * Makes a message graph of what programs did with their queue pairs. A process is a rank. What it posts it posts when it has seen all that
 * it had seen before, and has calculated for as long as it took. A process that looks for completions and finds none waits from
 * then on, and calculates no more until one comes.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileReason, UnreadableFile, WeirError } from "../../base/error.js";
import { GraphBuilder, kMostNanoseconds, type MessageGraph, type Operation } from "./graph.js";
import { type RecordedEvent, readRecording } from "./recording_file.js";

/** ibv_wr_opcode. */
const kWrite = 0;
const kWriteImmediate = 1;
const kSends = [2, 3, 9];
const kRead = 4;
const kAtomics = [5, 6];
/** ibv_wc_opcode of what was received. */
const kReceived = 128;
const kReadDone = 2;
const kAtomicsDone = [3, 4];
/** Bytes that an atomic operation brings back, and those that a READ or an atomic takes to ask. */
const kAtomicBytes = 8;
const kAsked = 16;

export interface RecordedGraph {
  graph: MessageGraph;
  /** What could not be seen, in words. */
  notes: string[];
}

/** @param folder As WEIR_RECORD named it. @throws WeirError when there is nothing in it. */
export function readRecordedGraph(folder: string): RecordedGraph {
  const processes = filesOf(folder)
    .map((file) => readRecording(join(folder, file)))
    .filter((events) => events.some(({ kind }) => kind === "posts" || kind === "completes"))
    .sort((a, b) => firstOf(a) - firstOf(b));
  if (processes.length === 0) {
    throw new WeirError(`${folder}: no process has sent or received by a queue pair`, {
      hint: "did the program use the NIC? weir show qp, while it runs, tells",
    });
  }
  return new Recorded(folder, processes).graph();
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((file) => file.endsWith(".rec"))
      .sort();
  } catch (error) {
    throw new UnreadableFile(`${folder}: ${fileReason(error) ?? (error as Error).message}`, { cause: error });
  }
}

const firstOf = (events: readonly RecordedEvent[]) =>
  events.find(({ kind }) => kind === "posts" || kind === "completes")?.at ?? 0;

/** One direction between two queue pairs. */
interface Way {
  from: number;
  to: number;
  /** Messages that the receiver hears of; each is a send that waits for its receive. */
  told: { operation: Operation; bytes: number }[];
  /** Receives that have completed. */
  heard: Operation[];
  tag: number;
}

interface Pair {
  peer: number;
  out: Way;
  in: Way;
  /** Posted operations whose completion is to come, the oldest first. */
  posted: { end: Operation; opcode: number }[];
  /** Asked-for data that is to come, the oldest first. */
  asked: Operation[];
}

class Recorded {
  private readonly builder: GraphBuilder;
  private readonly notes: string[] = [];
  /** By process and number. */
  private readonly pairs: Map<number, Pair>[];
  private unknown = 0;
  private unseen = 0;
  private failed = 0;

  constructor(
    source: string,
    private readonly processes: readonly RecordedEvent[][],
  ) {
    this.builder = new GraphBuilder(source, processes.length);
    this.pairs = processes.map(() => new Map());
    this.connect();
  }

  graph(): RecordedGraph {
    const begin = Math.min(...this.processes.map(firstOf));
    for (const [rank, events] of this.processes.entries()) this.walk(rank, events, begin);
    for (const own of this.pairs) for (const { out } of own.values()) this.match(out);
    this.tell();
    return { graph: this.builder.build(), notes: this.notes };
  }

  /** Finds whose queue pairs lead to whose: by numbers and GIDs of both ends. */
  private connect(): void {
    interface End {
      rank: number;
      queuePair: number;
      other: number;
      peer: string;
      own: string;
    }
    const ends: End[] = [];
    for (const [rank, events] of this.processes.entries()) {
      // An address follows the connection that has it.
      const latest = new Map<number, End>();
      for (const { kind, queuePair, other, gid } of events) {
        if (kind === "connects") {
          const end = { rank, queuePair, other, peer: gid, own: "" };
          latest.set(queuePair, end);
          ends.push(end);
        }
        const end = kind === "address" ? latest.get(queuePair) : undefined;
        if (end !== undefined) end.own = gid;
      }
    }
    const byEnd = new Map(ends.map((end) => [`${end.own} ${end.queuePair} ${end.other}`, end]));
    const ways = new Map<string, Way>();
    for (const { rank, queuePair, other, peer, own } of ends) {
      const far = byEnd.get(`${peer} ${other} ${queuePair}`);
      if (far === undefined || far.peer !== own) continue;
      const wayOf = (from: number, to: number, key: string): Way => {
        const known = ways.get(key) ?? { from, to, told: [], heard: [], tag: ways.size };
        ways.set(key, known);
        return known;
      };
      this.pairs[rank]?.set(queuePair, {
        peer: far.rank,
        out: wayOf(rank, far.rank, `${own} ${queuePair} > ${peer} ${other}`),
        in: wayOf(far.rank, rank, `${peer} ${other} > ${own} ${queuePair}`),
        posted: [],
        asked: [],
      });
    }
  }

  private walk(rank: number, events: readonly RecordedEvent[], begin: number): void {
    const { builder } = this;
    const state = { last: undefined as Operation | undefined, at: begin, waits: undefined as number | undefined };
    /** Calculates until `at`, and returns what follows waits for. */
    const calculate = (at: number): Operation | undefined => {
      const gap = Math.min(kMostNanoseconds, Math.max(0, Math.round(at - state.at)));
      if (gap === 0 && state.last !== undefined) return state.last;
      const calculation = builder.calculate(rank, gap);
      if (state.last !== undefined) builder.requires(calculation, state.last);
      return calculation;
    };
    const join = (done: Operation, at: number) => {
      const before = calculate(Math.min(state.waits ?? at, at));
      const joint = builder.calculate(rank, 0);
      if (before !== undefined) builder.requires(joint, before);
      builder.requires(joint, done);
      state.last = joint;
      state.at = at;
    };
    for (const event of events) {
      const pair = this.pairs[rank]?.get(event.queuePair);
      if (event.kind === "waits") state.waits ??= event.at;
      if (event.kind !== "posts" && event.kind !== "completes") continue;
      if (pair === undefined) {
        this.unknown++;
      } else if (event.kind === "posts") {
        const before = calculate(event.at);
        this.post(rank, pair, event, before);
        state.last = before;
        state.at = event.at;
      } else {
        const done = this.completed(rank, pair, event);
        if (done !== undefined) join(done, event.at);
      }
      state.waits = undefined;
    }
  }

  private post(rank: number, pair: Pair, { opcode, bytes }: RecordedEvent, before: Operation | undefined): void {
    const { builder } = this;
    const { peer, out } = pair;
    const after = (operation: Operation) => {
      if (before !== undefined) builder.requires(operation, before);
      return operation;
    };
    if (kSends.includes(opcode) || opcode === kWriteImmediate) {
      const send = after(builder.send(rank, peer, bytes, out.tag));
      out.told.push({ operation: send, bytes });
      pair.posted.push({ end: send, opcode });
    } else if (opcode === kWrite) {
      // Nobody is told of it: it is received by memory.
      const tag = builder.newTag();
      const send = after(builder.send(rank, peer, bytes, tag));
      builder.receive(peer, rank, bytes, tag);
      pair.posted.push({ end: send, opcode });
      this.unseen++;
    } else if (opcode === kRead || kAtomics.includes(opcode)) {
      // The peer's NIC answers by itself.
      const [ask, answer] = [builder.newTag(), builder.newTag()];
      after(builder.send(rank, peer, kAsked, ask));
      const asked = builder.receive(peer, rank, kAsked, ask);
      const size = opcode === kRead ? bytes : kAtomicBytes;
      builder.requires(builder.send(peer, rank, size, answer, { processor: 255 }), asked);
      const arrives = builder.receive(rank, peer, size, answer);
      pair.posted.push({ end: arrives, opcode });
    }
  }

  /** Returns what a completion waited for. */
  private completed(rank: number, pair: Pair, { opcode, status, bytes }: RecordedEvent): Operation | undefined {
    if (status !== 0) {
      this.failed++;
      return undefined;
    }
    if ((opcode & kReceived) !== 0) {
      const receive = this.builder.receive(rank, pair.peer, bytes, pair.in.tag);
      pair.in.heard.push(receive);
      return receive;
    }
    // Those before it that were not to be told of are complete as well.
    const fetches = opcode === kReadDone || kAtomicsDone.includes(opcode);
    for (let one = pair.posted.shift(); one !== undefined; one = pair.posted.shift()) {
      if ((one.opcode === kRead || kAtomics.includes(one.opcode)) === fetches) return one.end;
    }
    return undefined;
  }

  /** The nth message that is told of is the nth that was received; the rest were received unseen. */
  private match({ from, to, told, heard, tag }: Way): void {
    if (heard.length > told.length) {
      throw new WeirError(
        `rank ${to} has received ${heard.length} messages of rank ${from}, which has sent ${told.length}`,
        {
          hint: "was each process recorded from its beginning?",
        },
      );
    }
    for (const { bytes } of told.slice(heard.length)) this.builder.receive(to, from, bytes, tag);
  }

  private tell(): void {
    const { notes } = this;
    if (this.unseen > 0)
      notes.push(
        `${this.unseen} RDMA WRITEs without immediate data: who looks at the memory that they change, and when, cannot be seen; nothing waits for them`,
      );
    if (this.unknown > 0)
      notes.push(
        `${this.unknown} posts and completions of queue pairs without a recorded peer (datagrams, processes elsewhere) are left out`,
      );
    if (this.failed > 0) notes.push(`${this.failed} operations failed and are left out`);
    if (this.processes.length > 1)
      notes.push(
        "what processes of one host tell each other by shared memory or sockets cannot be seen: it is calculation here",
      );
  }
}
