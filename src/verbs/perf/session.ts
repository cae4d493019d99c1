/**
 * Two ends of a test: the control connection, then the queue pairs for data, then each end's memory. The order of
 * everything is perftest's with -R (perftest 4.5: write_bw.c, send_lat.c, create_rdma_cm_connection).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { WeirError } from "../../base/error.js";
import { gidOfAddress } from "../../wire/address.js";
import { ConnectionRejected, kReject } from "../../wire/cm/reject.js";
import { type Connection, connect, listen } from "../connection.js";
import type { Device } from "../device.js";
import type { MemoryRegion } from "../memory_region.js";
import type { QueuePair } from "../queue_pair.js";
import type { RemoteMemory, Slice } from "../types.js";
import { Completions } from "./completions.js";
import { Control, outOfStep, type Role } from "./control.js";
import {
  type Destination,
  decodeDestination,
  decodeVersion,
  encodeDestination,
  encodeInteger,
  encodeMtu,
  encodeVersion,
} from "./messages.js";
import { isSend, type PerfOptions } from "./options.js";
import { decodeTerms, describeTerms, encodeTerms, goTogether, type Terms, termsOf } from "./terms.js";

/** Part of the peer's memory through which perftest walks with small messages. */
const kPageBytes = 4096;
const kCacheLine = 64;
const kOldestVersion = 5.7;
/** READs that a queue pair has outstanding by default; the figure is only told. */
const kReads = 16;
const kMostReceives = 512;
/** Most receives of all queue pairs together. */
const kReceiveRoom = 1 << 16;
/** Tries to connect: perftest opens its port for data a little after it has said so. */
const kConnectTries = 10;
const kRetryMs = 100;
const kGoodbyeMs = 1000;

/** One end of a test with its resources; connected by `open()`. */
export class Session {
  readonly sent: Completions;
  readonly received: Completions;
  readonly queuePairs: QueuePair[];
  readonly control: Control;
  /** Memory of ours that the peer may use, and of the peer's that we may use, by queue pair. */
  readonly local: Destination[];
  readonly remote: Destination[] = [];
  /** Set when a connection has ended. */
  hungUp = false;

  /** Memory of each queue pair. */
  readonly #memory: MemoryRegion[];
  /** Bytes of each of a queue pair's two buffers. */
  readonly #room: number;
  readonly #connections: Connection[] = [];

  constructor(
    readonly device: Device,
    readonly role: Role,
    readonly options: PerfOptions,
    readonly signal: AbortSignal,
  ) {
    const { qps, sizes, depth, test } = options;
    const domain = device.allocateProtectionDomain();
    const sendCompletions = device.createCompletionQueue({ join: true });
    const receiveCompletions = device.createCompletionQueue({ join: true });
    const receiveDepth = isSend(test) ? Math.max(1, Math.min(kMostReceives, Math.floor(kReceiveRoom / qps))) : 1;
    this.sent = new Completions(device, sendCompletions, signal);
    this.received = new Completions(device, receiveCompletions, signal);
    this.#room = Math.max(...sizes, kPageBytes);
    requireMemory(qps * this.#room, options);
    this.#memory = Array.from({ length: qps }, () =>
      domain.registerMemory(2 * this.#room, ["local_write", "remote_write", "remote_read"]),
    );
    this.control = new Control(device, domain, role, signal);
    this.queuePairs = Array.from({ length: qps }, () =>
      domain.createQueuePair({ sendCompletions, receiveCompletions, sendDepth: depth, receiveDepth }),
    );
    this.local = this.queuePairs.map(({ qpn }, index) => ({
      qpn,
      rkey: this.#regionOf(index).key,
      address: this.#regionOf(index).remote(this.inbound(index).offset).address,
      reads: kReads,
      gid: new Uint8Array(16),
    }));
    if (!isSend(test)) return;
    for (const [index, queuePair] of this.queuePairs.entries()) {
      queuePair.modify("init");
      this.postReceives(index, receiveDepth);
    }
  }

  /** Memory from which queue pair `index` sends, or to which it reads. */
  outbound(index: number, length = this.#room) {
    return { region: this.#regionOf(index), offset: 0, length } satisfies Slice;
  }

  /** Memory to which the peer's data goes, or from which it is read. */
  inbound(index: number, length = this.#room) {
    return { region: this.#regionOf(index), offset: this.#room, length } satisfies Slice;
  }

  /** Memory of the peer's queue pair `index`. */
  remoteMemory(index: number): RemoteMemory {
    const { address, rkey } = this.remote[index] as Destination;
    return { address, key: rkey };
  }

  /** The memory of queue pair 0. */
  get bytes(): Uint8Array {
    return new Uint8Array(this.#regionOf(0).buffer);
  }

  /** Posts `count` receives to queue pair `index`, which is their ID. */
  postReceives(index: number, count: number): void {
    this.queuePairs[index]?.postReceive({ id: index, local: this.inbound(index), times: count });
  }

  /** Connects everything and learns the peer's memory. `server` is its address; undefined: waits for a client. */
  async open(server?: string): Promise<void> {
    if (server === undefined) await this.#accept();
    else await this.#connect(server);
    const gid = gidOfAddress(this.device.sourceFor(this.peer));
    for (const end of this.local) end.gid = gid;
    const { test } = this.options;
    if (test === "write-lat") await this.synchronize();
    await this.#learnMemory();
    if (isSend(test)) await this.synchronize();
    await this.#learnMemory();
    if (!isSend(test)) await this.synchronize();
  }

  /** Takes a step that neither end takes alone: they tell each other about a queue pair. */
  async synchronize(index = 0): Promise<void> {
    this.remote[index] = decodeDestination(await this.control.exchange(this.#about(index)));
  }

  /** Takes the same step in halves, for a server that works until the client has taken its half. */
  async synchronizeAfter(work: (step: Promise<unknown>) => Promise<void>): Promise<void> {
    const step = this.control.receive();
    step.catch(() => {}); // It is awaited below, unless the work fails first.
    await work(step);
    await step;
    await this.control.send(this.#about(0));
  }

  /** Lets the peer hang up first, for a second. */
  async awaitHangUp(): Promise<void> {
    const gone = this.#connections.map(
      (connection) => new Promise<void>((resolve) => connection.onDisconnected(() => resolve())),
    );
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, kGoodbyeMs);
      Promise.all(gone).then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /** Ends the connections. */
  async close(): Promise<void> {
    if (this.device.closed) return;
    await Promise.all(this.#connections.map((connection) => connection.disconnect()));
  }

  /** Address of the other end. */
  get peer(): string {
    return this.#connections[0]?.remoteAddress ?? "";
  }

  /** Path MTU in bytes, as agreed with the peer. */
  get pathMtu(): number {
    return this.#connections.at(-1)?.pathMtu ?? 0;
  }

  async #connect(address: string): Promise<void> {
    const { port, mtu } = this.options;
    const to = { address, port, ...(mtu === undefined ? {} : { pathMtu: mtu }) };
    await this.#ask(to);
    await this.#agree();
    await this.synchronize();
    const connectOne = async (queuePair: QueuePair) => {
      for (let tries = 1; ; tries++) {
        try {
          return this.#keep(await connect(this.device, { ...to, queuePair }));
        } catch (error) {
          const early = error instanceof ConnectionRejected && error.reason === kReject.invalidServiceId;
          if (!early || tries === kConnectTries) throw error;
          await sleep(kRetryMs);
        }
      }
    };
    await Promise.all(this.queuePairs.map(connectOne));
    await this.synchronize();
  }

  /** Connects the control connection, for this test. */
  async #ask(to: { address: string; port: number }): Promise<void> {
    const ours = termsOf(this.options);
    try {
      const privateData = encodeTerms(ours);
      this.#keep(await connect(this.device, { ...to, queuePair: this.control.queuePair, privateData }));
    } catch (error) {
      const theirs = error instanceof ConnectionRejected ? decodeTerms(error.privateData) : undefined;
      throw theirs === undefined ? error : anotherTest(`the server at ${to.address} runs`, theirs, ours);
    }
  }

  async #accept(): Promise<void> {
    const ours = termsOf(this.options);
    const waiting = [this.control.queuePair, ...this.queuePairs];
    const accepted: Promise<void>[] = [];
    let client: string | undefined;
    const stop = await new Promise<() => void>((resolve, reject) => {
      this.signal.addEventListener("abort", () => reject(this.signal.reason), { once: true });
      const stop = listen(this.device, this.options.port, (request) => {
        const theirs = client === undefined ? decodeTerms(request.privateData) : undefined;
        if (theirs !== undefined && !goTogether(theirs, ours)) {
          request.reject(encodeTerms(ours));
          stop();
          return reject(anotherTest(`the client at ${request.address} asks for`, theirs, ours));
        }
        client ??= request.address;
        const queuePair = request.address === client ? waiting.shift() : undefined;
        if (queuePair === undefined) return request.reject();
        const done = request.accept({ queuePair }).then((connection) => this.#keep(connection));
        done.catch(() => {}); // It is awaited below.
        accepted.push(done);
        resolve(stop);
      });
    });
    try {
      await accepted[0];
      await this.#agree();
      await this.synchronize();
      await this.synchronizeAfter(async (step) => {
        await step;
        const { length } = this.queuePairs;
        if (waiting.length > 0) throw outOfStep(`it opened ${length - waiting.length} of ${length} queue pairs`);
        await Promise.all(accepted);
      });
    } finally {
      stop();
    }
  }

  #regionOf(index: number): MemoryRegion {
    return this.#memory[index] as MemoryRegion;
  }

  #keep(connection: Connection): void {
    this.#connections.push(connection);
    connection.onDisconnected(() => {
      this.hungUp = true;
    });
  }

  /** Exchanges versions and sizes. */
  async #agree(): Promise<void> {
    const version = decodeVersion(await this.control.exchange(encodeVersion()));
    if (!(version >= kOldestVersion)) {
      throw new WeirError(`the peer speaks version ${version} of perftest's protocol`, {
        hint: `it must be ${kOldestVersion} or later: perftest 4.5 or later, with -R`,
      });
    }
    await this.control.exchange(encodeInteger(kPageBytes));
    await this.control.exchange(encodeInteger(kCacheLine));
    await this.control.exchange(encodeMtu(this.options.mtu ?? this.device.largestPathMtu));
  }

  async #learnMemory(): Promise<void> {
    for (const index of this.queuePairs.keys()) await this.synchronize(index);
  }

  #about(index: number): Uint8Array {
    return encodeDestination(this.local[index] as Destination);
  }
}

function anotherTest(who: string, theirs: Terms, ours: Terms): WeirError {
  return new WeirError(`${who} ${describeTerms(theirs)}, and this is ${describeTerms(ours)}`, {
    hint: "give both sides the same test and options",
  });
}

/** Checks that there is memory for data that comes in: registered memory takes room only as it is written. @throws WeirError without it. */
function requireMemory(bytes: number, { qps }: PerfOptions): void {
  const available = process.availableMemory();
  if (bytes <= available) return;
  const [needed, there] = [bytes, available].map((value) => (value / 2 ** 30).toFixed(1));
  throw new WeirError(
    `${qps} queue pairs with messages of this size take ${needed} GiB, and ${there} GiB are available`,
    {
      hint: "smaller messages (-s), or fewer queue pairs (-q)",
    },
  );
}
