/** The guests' program `opcodes` as done by Weir: either end of it, with the same tests, checks and output. */
import { isIPv6 } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { Destination, Device, SendRequest, WorkCompletion } from "../../src/verbs/index.js";
import { addressBytes } from "../../src/wire/address.js";
import { eventually } from "../patience.js";
import type { Program } from "./exchange.js";
import type { InteropNetwork } from "./network.js";
import {
  Connection,
  type EndOptions,
  fill,
  hex,
  isFilled,
  kGrh,
  kLayout,
  kOpcodesPort,
  kQueueKey,
  kSlot,
  kVariable,
  OpcodesEnd,
  placeOf,
} from "./opcodes_end.js";

/** Time for which the peer of test `rnr` has no receive posted. */
const kLateMs = 300;

type Say = (line: string) => void;

export interface WeirOptions extends EndOptions {
  /** Address of the server's TCP; absent: this is the server. */
  connect?: string;
  test?: string;
}

/** One end on `device`, whose TCP goes through the bridge. */
export function opcodesOfWeir(network: InteropNetwork, device: Device, options: WeirOptions): Program {
  return (limit) => {
    const relay = network.relay(kOpcodesPort, options.connect);
    let output = "";
    const say: Say = (line) => {
      output += `${line}\n`;
    };
    const end = new OpcodesEnd(device, options);
    const run = async () => {
      const connection = new Connection(relay.child);
      await end.introduce(connection, options.connect === undefined ? "-" : (options.test ?? "ops"));
      if (options.connect === undefined) {
        await new Server(end, say).run(connection);
      } else {
        const [, window] = (await connection.line()).split(" ");
        await new Client(end, say, hex(window)).run(options.test ?? "ops");
      }
    };
    const late = new AbortController();
    const limited = delay(limit * 1000, undefined, { signal: late.signal }).then(() =>
      say("FAILED: it takes too long"),
    );
    const finished = Promise.race([run(), limited])
      .catch((error) => say(`FAILED: ${error}`))
      .finally(() => {
        late.abort();
        limited.catch(() => {});
        relay.child.kill("SIGKILL");
        end.close();
      })
      .then(() => ({ status: output.includes("FAILED") ? 1 : 0, stdout: output }));
    return {
      finished,
      listening: () => eventually(() => expect(relay.output().stderr).toContain("listening")),
      kill: () => void relay.child.kill("SIGKILL"),
    };
  };
}

class Client {
  #first = 0;
  #to: Destination | undefined;

  constructor(
    private readonly end: OpcodesEnd,
    private readonly say: Say,
    private readonly window: number,
  ) {}

  async run(test: string): Promise<void> {
    const { device, peer, options } = this.end;
    if (options.transport === "ud") {
      this.#to = { address: await device.createAddressHandle(peer.ip), qpn: peer.qpn, queueKey: kQueueKey };
    }
    if (test === "ops") return this.#all();
    if (test === "many") return this.#many();
    if (test === "rnr") {
      for (let i = 0; i < 5; i++) await this.#send(1000);
      return;
    }
    peer.key ^= 0x5500;
    if (test === "rkey") await this.#refused("RDMA WRITE with a wrong rkey", this.#remote("rdma_write", 64), 64);
    if (test === "read-rkey") await this.#refused("RDMA READ with a wrong rkey", this.#remote("rdma_read", 64), 64);
    if (test === "long") {
      await this.#refused("SEND that is too long", { opcode: "send", local: this.#local(kSlot + 1) }, kSlot + 1);
    }
  }

  async #all(): Promise<void> {
    const { transport, pathMtu: mtu } = this.end.options;
    const lengths = [0, 1, 2, 3, 64, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5].slice(0, transport === "ud" ? 6 : 9);
    for (const length of lengths) await this.#send(length);
    await this.#send(32, { solicited: true });
    await this.#send(33, { immediate: 33 });
    if (transport === "ud") return;
    await this.#send(2 * mtu + 6, { immediate: 2 * mtu + 6, solicited: true });
    for (const length of lengths) {
      const first = this.#fill(length);
      await this.#succeed("RDMA WRITE", this.#remote("rdma_write", length), length);
      await this.#readBack(kLayout.written, length, first);
    }
    for (const length of [0, 31, 3 * mtu + 1]) {
      this.#fill(length);
      const request = {
        ...this.#remote("rdma_write", length, placeOf(length)),
        opcode: "rdma_write_with_imm",
        immediate: length,
      } as const;
      await this.#succeed("RDMA WRITE with immediate", request, length);
    }
    for (const length of lengths) await this.#readBack(kLayout.source, length, 0);
    await this.#atomics();
    if (this.window === 0) return;
    this.#fill(40);
    const request = { opcode: "send_with_inv", local: this.#local(40), invalidateKey: this.window } as const;
    await this.#succeed("SEND with invalidate", request, 40);
  }

  async #atomics(): Promise<void> {
    const { address, key } = this.end.peer;
    const remote = { address: address + BigInt(kLayout.variable), key };
    const common = { local: this.#local(8), remote };
    const steps: [string, SendRequest, bigint][] = [
      ["FETCH AND ADD", { opcode: "atomic_fetch_and_add", add: 5n, ...common }, kVariable],
      ["COMPARE AND SWAP", { opcode: "atomic_cmp_and_swp", compare: kVariable, swap: 1n, ...common }, kVariable + 5n],
      [
        "COMPARE AND SWAP",
        { opcode: "atomic_cmp_and_swp", compare: kVariable + 5n, swap: 77n, ...common },
        kVariable + 5n,
      ],
      ["FETCH AND ADD", { opcode: "atomic_fetch_and_add", add: 0n, ...common }, 77n],
    ];
    for (const [what, request, expected] of steps) {
      await this.#succeed(what, request, 8);
      const found = this.end.bytes.readBigUInt64LE(kLayout.local);
      if (found !== expected) this.say(`FAILED: ${what} found ${found}, not ${expected}`);
    }
  }

  /** Messages of several packets posted all at once: WRITEs, then READs of the same, more than may be under way. */
  async #many(): Promise<void> {
    const kEach = 3000;
    const kCount = 20;
    const { bytes, region, queuePair, peer, sent } = this.end;
    const piece = (i: number) => ({ region, offset: kLayout.slots + i * kEach, length: kEach });
    const at = (i: number) => bytes.subarray(kLayout.slots + i * kEach, kLayout.slots + (i + 1) * kEach);
    const remote = (i: number) => ({ address: peer.address + BigInt(kLayout.written + i * kEach), key: peer.key });
    for (let i = 0; i < kCount; i++) {
      fill(at(i), i);
      queuePair.postSend({ opcode: "rdma_write", id: i, local: piece(i), remote: remote(i) });
    }
    for (let i = 0; i < kCount; i++) {
      queuePair.postSend({ opcode: "rdma_read", id: kCount + i, local: piece(kCount + i), remote: remote(i) });
    }
    for (let i = 0; i < 2 * kCount; i++) {
      const { id, status } = await sent.next();
      if (id !== i || status !== "success") this.say(`FAILED: ${i}: ${id} ${status}`);
    }
    for (let i = 0; i < kCount; i++) {
      if (!isFilled(at(kCount + i), i)) this.say(`FAILED: READ ${i} brought others`);
    }
    this.say(`many: ${2 * kCount}`);
  }

  async #send(length: number, more: { immediate?: number; solicited?: boolean } = {}): Promise<void> {
    this.#fill(length);
    const { immediate, solicited } = more;
    const base = { local: this.#local(length), ...(this.#to && { to: this.#to }), ...(solicited && { solicited }) };
    if (immediate === undefined) return this.#succeed("SEND", { opcode: "send", ...base }, length);
    return this.#succeed("SEND with immediate", { opcode: "send_with_imm", immediate, ...base }, length);
  }

  async #readBack(offset: number, length: number, first: number): Promise<void> {
    const target = this.end.bytes.subarray(kLayout.local, kLayout.local + length + 1);
    target.fill(0xee);
    await this.#succeed("RDMA READ", this.#remote("rdma_read", length, offset), length);
    if (!isFilled(target.subarray(0, length), first)) this.say(`FAILED: RDMA READ of ${length} bytes brought others`);
    if (target[length] !== 0xee) this.say(`FAILED: RDMA READ of ${length} bytes brought more`);
  }

  /** The first byte of each message is another one. */
  #fill(length: number): number {
    this.#first = (this.#first + 17) & 0xff;
    fill(this.end.bytes.subarray(kLayout.local, kLayout.local + length), this.#first);
    return this.#first;
  }

  #local(length: number) {
    return { region: this.end.region, offset: kLayout.local, length };
  }

  #remote(opcode: "rdma_write" | "rdma_read", length: number, offset = kLayout.written) {
    const { address, key } = this.end.peer;
    return { opcode, local: this.#local(length), remote: { address: address + BigInt(offset), key } };
  }

  async #succeed(what: string, request: SendRequest, length: number): Promise<void> {
    const { status, byteLength, opcode } = await this.#execute(what, request, length);
    if (status !== "success") throw new Error(`${what} of ${length} bytes`);
    if (byteLength !== length || opcode !== request.opcode)
      this.say(`FAILED: completed as ${opcode} of ${byteLength} bytes`);
  }

  /** Afterwards the queue pair is in the error state: what follows is flushed. */
  async #refused(what: string, request: SendRequest, length: number): Promise<void> {
    await this.#execute(what, request, length);
    const { status } = await this.#execute("after it", { opcode: "send", local: this.#local(1) }, 1);
    if (status !== "wr_flush_err") this.say(`FAILED: ${what} left the queue pair working`);
  }

  async #execute(what: string, request: SendRequest, length: number): Promise<WorkCompletion> {
    this.end.queuePair.postSend(request);
    const completion = await this.end.sent.next();
    this.say(`${what}, ${length} bytes: ${completion.status}`);
    return completion;
  }
}

class Server {
  constructor(
    private readonly end: OpcodesEnd,
    private readonly say: Say,
  ) {}

  /** Serves until the client hangs up. */
  async run(connection: Connection): Promise<void> {
    const { transport } = this.end.options;
    const late = this.end.peer.test === "rnr";
    if (!late) this.end.postReceives();
    this.end.received.onCompletion((completion) => this.#check(completion));
    this.end.queuePair.onError((status) => this.say(`queue pair failed: ${status}`));
    connection.say(`ready ${transport === "rc" ? this.end.window.key.toString(16) : "0"}`);
    if (late) {
      await delay(kLateMs);
      this.end.postReceives();
    }
    await connection.line().catch(() => {});
    // Messages that the client knows to have arrived have completed here.
    for (const completion of this.end.received.poll()) this.#check(completion);
    this.end.received.onCompletion(undefined);
  }

  #check({ id, status, opcode, byteLength, immediate, invalidatedKey, sourceQpn }: WorkCompletion): void {
    if (status === "wr_flush_err") return;
    const datagram = this.end.options.transport === "ud";
    const header = datagram ? kGrh : 0;
    const length = byteLength - header;
    const at = opcode === "recv_rdma_with_imm" ? placeOf(length) : kLayout.slots + id * kSlot;
    const buffer = this.end.bytes.subarray(at, at + byteLength);
    const details = [immediate !== undefined && "immediate", invalidatedKey !== undefined && "invalidated"];
    this.say(["received", length, opcode, ...details.filter(Boolean), status].join(" "));
    if (status !== "success") return;
    if (!isFilled(buffer.subarray(header))) this.say(`FAILED: ${length} bytes are not those that were sent`);
    if (immediate !== undefined && immediate !== length) this.say(`FAILED: immediate ${immediate}`);
    if (invalidatedKey !== undefined && invalidatedKey !== this.end.window.key)
      this.say(`FAILED: key ${invalidatedKey}`);
    if (!datagram) return;
    if (sourceQpn !== this.end.peer.qpn) this.say(`FAILED: from queue pair ${sourceQpn}`);
    if (!this.#isHeader(buffer.subarray(0, kGrh)))
      this.say(`FAILED: header ${buffer.subarray(0, kGrh).toString("hex")}`);
  }

  /** The IP header of a datagram: that of IPv4 is at the end of the 40 bytes. */
  #isHeader(grh: Buffer): boolean {
    const { ip } = this.end.peer;
    const own = this.end.device.addresses.find((address) => isIPv6(address) === isIPv6(ip)) ?? "";
    const addresses = Buffer.concat([ip, own].map(addressBytes));
    const [version, offset] = isIPv6(ip) ? [6, 8] : [4, 32];
    return grh.readUInt8(version === 6 ? 0 : 20) >> 4 === version && grh.subarray(offset, 40).equals(addresses);
  }
}
