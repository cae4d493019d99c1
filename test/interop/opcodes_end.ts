/**
 * The memory and queue pair of a Weir device in this process, laid out as the guests' program `opcodes` lays out its own, and
 * the TCP connection over which both ends are told of each other.
 */

import { isIPv6 } from "node:net";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { CompletionQueue, Device, MemoryRegion, QueuePair } from "../../src/verbs/index.js";
import { addressOfGid, gidOfAddress } from "../../src/wire/address.js";

/** Port of the TCP connection. */
export const kOpcodesPort = 18_600;
export const kQueueKey = 0x1111_1111;
export const kGrh = 40;
export const kVariable = 0x1122_3344_5566_7788n;
/** 4.096 us << 18 = 1.07 s: an emulated machine may be kept waiting. */
const kTimeout = 18;
/** Places for data that the peer writes, that it reads, an atomic variable, data that is sent, and received. */
export const kLayout = { written: 0, source: 65_536, variable: 131_072, local: 196_608, slots: 262_144 };
/** Place of a WRITE with immediate: it differs from that of the next one, for its receiver looks a moment later. */
export const placeOf = (length: number) => kLayout.written + (length > 64 ? 32_768 : 0);
export const kSlot = 16_384;
export const kReceives = 64;
const kMemory = kLayout.slots + kReceives * kSlot;

export interface EndOptions {
  transport: "rc" | "ud";
  pathMtu: number;
  /** IP version of the RoCEv2 packets. */
  version: 4 | 6;
  firstPsn: number;
}

/** The other end's description of itself. */
interface Peer {
  qpn: number;
  psn: number;
  key: number;
  address: bigint;
  ip: string;
  test: string;
}

export class OpcodesEnd {
  readonly region: MemoryRegion;
  readonly bytes: Buffer;
  readonly queuePair: QueuePair;
  readonly sent: CompletionQueue;
  readonly received: CompletionQueue;
  /** A region that a peer may take the key of away. */
  readonly window: MemoryRegion;
  peer: Peer = { qpn: 0, psn: 0, key: 0, address: 0n, ip: "", test: "" };

  constructor(
    readonly device: Device,
    readonly options: EndOptions,
  ) {
    const domain = device.allocateProtectionDomain();
    this.region = domain.registerMemory(kMemory);
    this.window = domain.registerMemory(4096, ["local_write", "remote_write", "remote_invalidate"]);
    this.bytes = Buffer.from(this.region.buffer);
    this.sent = device.createCompletionQueue();
    this.received = device.createCompletionQueue();
    this.queuePair = domain.createQueuePair({
      type: options.transport,
      sendCompletions: this.sent,
      receiveCompletions: this.received,
      receiveDepth: kReceives,
    });
    fill(this.bytes.subarray(kLayout.source, kLayout.source + 65_536), 0);
    this.bytes.writeBigUInt64LE(kVariable, kLayout.variable);
  }

  /** Tells the peer about this end, and learns the peer's; the queue pair is in RTS then. */
  async introduce(connection: Connection, test: string): Promise<void> {
    const own = this.device.addresses.find((address) => isIPv6(address) === (this.options.version === 6)) ?? "";
    const psn = this.options.firstPsn;
    const { address, key } = this.region.remote();
    const numbers = [this.queuePair.qpn, psn, key, address].map((value) => value.toString(16));
    connection.say([...numbers, gidOfAddress(own).toString("hex"), test].join(" "));
    const [qpn, theirPsn, theirKey, theirAddress, gid, theirTest] = (await connection.line()).split(" ");
    this.peer = {
      qpn: hex(qpn),
      psn: hex(theirPsn),
      key: hex(theirKey),
      address: BigInt(`0x${theirAddress}`),
      ip: addressOfGid(Buffer.from(gid ?? "", "hex")),
      test: theirTest ?? "",
    };
    this.queuePair.modify("init", { queueKey: kQueueKey });
    const route = { address: this.peer.ip, mac: await this.device.resolve(this.peer.ip) };
    const { pathMtu } = this.options;
    const recovery = { timeout: kTimeout, retryCount: 7, rnrRetry: 7 };
    const numbering = { remoteQpn: this.peer.qpn, receivePsn: this.peer.psn, sendPsn: psn };
    this.queuePair.modify("rtr", { route, pathMtu, ...numbering, ...recovery });
    this.queuePair.modify("rts");
  }

  postReceives(): void {
    for (let id = 0; id < kReceives; id++) {
      const local = { region: this.region, offset: kLayout.slots + id * kSlot, length: kSlot };
      this.queuePair.postReceive({ id, local });
    }
  }

  close(): void {
    this.queuePair.destroy();
    this.region.deregister();
    this.window.deregister();
  }
}

/** Lines of text. */
export class Connection {
  readonly #lines: AsyncIterator<string>;
  readonly #out: Writable;

  constructor({ stdin, stdout }: { stdin: Writable | null; stdout: Readable | null }) {
    if (stdin === null || stdout === null) throw new Error("no pipe to the program");
    this.#out = stdin.on("error", () => {});
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  say(line: string): void {
    this.#out.write(`${line}\n`);
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error("the peer has hung up");
    return value;
  }

  hangUp(): void {
    this.#out.end();
  }
}

/** Data names itself: byte i is the first one plus 7 i. */
export function fill(data: Buffer, first: number): void {
  for (let i = 0; i < data.length; i++) data[i] = first + 7 * i;
}

export function isFilled(data: Buffer, first = data[0] ?? 0): boolean {
  return data.every((byte, i) => byte === ((first + 7 * i) & 0xff));
}

export function hex(text: string | undefined): number {
  return Number.parseInt(text ?? "", 16);
}
