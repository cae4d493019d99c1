/**
 * GOAL as LogGOPSim's txt2bin writes it (Graph::serialize_mmap in its Parser.hpp). All numbers have their low byte first: a cookie of
 * 8 bytes; behind it, and counted from there, the number of ranks (4), the highest processor and NIC (1 each), and for each rank the
 * offsets of its beginning and end (8 each). A rank has its number of operations and of those that wait for nothing (4 each), the
 * latter's positions (4 each), a record of 39 bytes for each operation, and an appendix: positions of operations that wait for it.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { fileReason, UnreadableFile, WeirError } from "../../base/error.js";
import { GraphBuilder, kMostRanks, type MessageGraph, type Placed } from "./graph.js";

const kCookie = 4223n;
/** What a simulator leaves that has used the file as its memory. */
const kSpoilt = 2342n;
const kCookieBytes = 8;
const kHeader = 6;
const kRecord = 39;
/** Of records, so that none is in two pieces. */
const kPiece = kRecord * 26_000;

/** Whether a file that begins so is one. */
export function isGoalBinary(head: Buffer): boolean {
  return head.length >= kCookieBytes && [kCookie, kSpoilt].includes(head.readBigUInt64LE(0));
}

/** Says in `notes` what was left out. @throws WeirError with the file, and rank and operation where that is known. */
export function readGoalBinary(file: string, notes: string[] = []): MessageGraph {
  let descriptor: number;
  try {
    descriptor = openSync(file, "r");
  } catch (error) {
    throw new UnreadableFile(`${file}: ${fileReason(error) ?? (error as Error).message}`, {
      field: "file",
      cause: error,
    });
  }
  try {
    return new Reader(file, descriptor, notes).read();
  } catch (error) {
    // Files with holes have any size, and take no room.
    if (!(error instanceof RangeError)) throw error;
    throw new WeirError(`${file}: does not fit into memory: ${error.message}`, { cause: error });
  } finally {
    closeSync(descriptor);
  }
}

class Reader {
  private readonly size: number;
  private otherNic = false;

  constructor(
    private readonly file: string,
    private readonly descriptor: number,
    private readonly notes: string[],
  ) {
    // Offsets of a device mean nothing, and it has size 0.
    this.size = fstatSync(descriptor).size - kCookieBytes;
  }

  read(): MessageGraph {
    if (this.size < kHeader) throw this.error("is too short for a binary GOAL schedule");
    const cookie = this.bytes(-kCookieBytes, kCookieBytes).readBigUInt64LE(0);
    if (cookie === kSpoilt)
      throw this.error(
        "was used by a simulator as its memory, and is no schedule any more",
        "write it anew by txt2bin",
      );
    if (cookie !== kCookie) throw this.error("is no binary GOAL schedule");
    const ranks = this.bytes(0, 4).readUInt32LE(0);
    if (ranks > kMostRanks || kHeader + 16 * ranks > this.size)
      throw this.error(`says that it has ${ranks} ranks, but is too short for their offsets`);
    const graph = new GraphBuilder(this.file, ranks);
    const offsets = this.bytes(kHeader, 16 * ranks);
    let before = kHeader + 16 * ranks;
    for (let rank = 0; rank < ranks; rank++) {
      const begin = Number(offsets.readBigUInt64LE(16 * rank));
      const end = Number(offsets.readBigUInt64LE(16 * rank + 8));
      if (begin < before || end < begin + 8 || end > this.size)
        throw this.error(
          `rank ${rank} is from ${begin} to ${end}, but must be behind ${before}, and end by ${this.size}`,
        );
      this.readRank(graph, rank, begin, end);
      before = end;
    }
    if (this.otherNic)
      this.notes.push("which NIC an operation uses is left out: a rank's messages go by all that it has");
    return graph.build();
  }

  private readRank(graph: GraphBuilder, rank: number, begin: number, end: number): void {
    const head = this.bytes(begin, 8);
    const operations = head.readUInt32LE(0);
    const roots = head.readUInt32LE(4);
    const records = begin + 8 + 4 * roots;
    const appendixAt = records + kRecord * operations;
    if (roots > operations || appendixAt > end || (end - appendixAt) % 4 !== 0)
      throw this.error(
        `rank ${rank}: ${operations} operations, ${roots} of which wait for nothing, do not fit ${end - begin} bytes`,
      );
    const appendix = this.bytes(appendixAt, end - appendixAt);
    const awaited = new Uint32Array(operations);
    const first = graph.operations;
    const waits = new Waits(appendix, operations, (operation, problem) =>
      this.error(`rank ${rank}, operation ${operation}: ${problem}`),
    );
    for (let at = 0; at < operations * kRecord; at += kPiece) {
      const piece = this.bytes(records + at, Math.min(kPiece, operations * kRecord - at));
      for (let offset = 0; offset < piece.length; offset += kRecord) {
        const own = (at + offset) / kRecord;
        awaited[own] = piece.readUInt32LE(offset);
        this.addOperation(graph, rank, own, piece, offset);
        waits.read(own, piece.readUInt32LE(offset + 23), piece.readUInt32LE(offset + 27), false);
        waits.read(own, piece.readUInt32LE(offset + 31), piece.readUInt32LE(offset + 35), true);
      }
    }
    waits.forEach((operation, earlier, startOnly) => {
      awaited[operation] = (awaited[operation] as number) - 1;
      if (startOnly) graph.irequires(first + operation, first + earlier);
      else graph.requires(first + operation, first + earlier);
    });
    const wrong = awaited.findIndex((count) => count !== 0);
    if (wrong >= 0)
      throw this.error(
        `rank ${rank}, operation ${wrong}: the number of operations that it waits for is not that of its lists`,
        "a simulator may have used the file as its memory: write it anew by txt2bin",
      );
  }

  private addOperation(graph: GraphBuilder, rank: number, own: number, piece: Buffer, offset: number): void {
    const type = piece[offset + 4] as number;
    const peer = piece.readUInt32LE(offset + 5);
    const size = piece.readUInt32LE(offset + 9) + piece.readUInt32LE(offset + 13) * 2 ** 32;
    const tag = piece.readUInt32LE(offset + 17);
    const placed: Placed = { processor: piece[offset + 21] as number };
    if ((piece[offset + 22] as number) > 0) this.otherNic = true;
    if (type === 1) graph.send(rank, peer, size, tag, placed);
    else if (type === 2) graph.receive(rank, peer, size, tag, placed);
    else if (type === 3) graph.calculate(rank, size, placed);
    else
      throw this.error(
        `rank ${rank}, operation ${own}: type ${type} is none of 1 (send), 2 (receive), 3 (calculation)`,
      );
  }

  /** Bytes that are known to be in the file. */
  private bytes(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let have = 0; have < length; ) {
      const read = readSync(
        this.descriptor,
        bytes,
        have,
        Math.min(length - have, 1 << 30),
        kCookieBytes + offset + have,
      );
      if (read === 0) throw this.error("ended while it was read");
      have += read;
    }
    return bytes;
  }

  private error(problem: string, hint?: string): WeirError {
    return new WeirError(`${this.file}: ${problem}`, { hint });
  }
}

/** Lists of a rank's appendix: of each operation those that wait for its end, and for its start. */
class Waits {
  private total = 0;
  private readonly earlier: Uint32Array;
  private readonly startOnly: Uint8Array;

  constructor(
    private readonly appendix: Buffer,
    private readonly operations: number,
    private readonly error: (operation: number, problem: string) => WeirError,
  ) {
    this.earlier = new Uint32Array(appendix.length / 4);
    this.startOnly = new Uint8Array(appendix.length / 4);
  }

  /** A list of `count` of those that wait for `operation`. Lists are one behind the other: none is used twice. */
  read(operation: number, count: number, begin: number, startOnly: boolean): void {
    if (count === 0) return;
    if (begin !== this.total || count > this.earlier.length - begin)
      throw this.error(operation, `its list of ${count} is not at ${this.total} of ${this.earlier.length}`);
    this.earlier.fill(operation, begin, begin + count);
    if (startOnly) this.startOnly.fill(1, begin, begin + count);
    this.total += count;
  }

  forEach(visit: (operation: number, earlier: number, startOnly: boolean) => void): void {
    for (let i = 0; i < this.total; i++) {
      const operation = this.appendix.readUInt32LE(4 * i);
      const earlier = this.earlier[i] as number;
      if (operation >= this.operations)
        throw this.error(earlier, `operation ${operation} waits for it, but there are ${this.operations}`);
      visit(operation, earlier, this.startOnly[i] === 1);
    }
  }
}
