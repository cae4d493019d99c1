/**
 * Connection management on a virtual clock, under frames that are right, nearly right, and hostile: what
 * peers say throws nothing and holds nothing for ever. Each frame is also read as the probe reads it, by its second implementation.
 */

import { WeirError } from "../../src/base/error.js";
import { readFrame, readUnreachable } from "../../src/probe/roce_frame.js";
import { gidOfAddress } from "../../src/wire/address.js";
import { ConnectionManager, type IncomingRequest } from "../../src/wire/cm/connection_manager.js";
import { buildMadFrame, type MadFrame, readMadFrame } from "../../src/wire/cm/frame.js";
import type { Clock, FrameLink } from "../../src/wire/cm/link.js";
import {
  buildIpHeader,
  buildMessage,
  type Fields,
  type MessageKind,
  readMessage,
  serviceId,
} from "../../src/wire/cm/messages.js";
import type { Established } from "../../src/wire/cm/parameters.js";
import { buildEthernet } from "../../src/wire/ethernet.js";
import { kEtherType } from "../../src/wire/headers.js";
import { capturedFrames } from "../wire/cm/fakes.js";
import { icmpPacket } from "../wire/icmp_packet.js";
import type { OpenTarget } from "./engine.js";
import { Finding, type Input, requireThat } from "./input.js";

const kOwnMac = 0x0200_0000_0001;
const kPeerMac = 0x0200_0000_0002;
const kAddresses = { 4: ["10.0.0.1", "10.0.0.2", "10.0.0.3"], 6: ["fe80::1", "fe80::2", "fe80::3"] } as const;
const kConnected = 7000;
const kDatagrams = 7001;
const kKinds = ["REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP"] as const;
const kCaptures = ["rping", "rping6", "ucmatose", "cm_reject"];
const kEthernet = 14;
/** Time that is longer than any message can make it wait, ms. */
const kForever = 20_000_000;
/** Communication IDs that a peer remembers of what it was sent. */
const kRemembered = 64;
/** Most timers at a time: those of 4096 connections, and of the device itself. */
const kMostTimers = 2 * 4096 + 100;
/** Bytes of an input; longer ones must not leave more behind. */
const kLong = 8000;
const kMostLeft = 1 << 20;

export const open: OpenTarget = () => {
  const captured = kCaptures.flatMap((name) =>
    capturedFrames(name).filter((frame) => readMadFrame(frame) !== undefined),
  );
  return {
    longest: 1 << 14,
    async run(input) {
      const isMeasured = input.length > kLong && globalThis.gc !== undefined;
      const run = async () => {
        const bytes = input.again();
        const before = isMeasured ? heapInUse() : 0;
        const world = new World(bytes, captured);
        await world.run(bytes);
        return { seen: world.seen, left: isMeasured ? heapInUse() - before : 0 };
      };
      const first = await run();
      // Code that has run for the first time stays, too, but only once.
      const left = first.left < kMostLeft ? first.left : (await run()).left;
      requireThat(left < kMostLeft, `${left} bytes are held after everything has ended`);
      return first.seen;
    },
  };
};

function heapInUse(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

/** Time passes when it is told to. */
class VirtualClock implements Clock {
  #now = 0;
  /** Timers in order of time. */
  readonly #timers: { at: number; action: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  get pending(): number {
    return this.#timers.length;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.#now + ms, action };
    this.#timers.splice(this.#place(timer.at), 0, timer);
    return () => {
      const place = this.#timers.indexOf(timer);
      if (place >= 0) this.#timers.splice(place, 1);
    };
  }

  /** Promises settle between two timers. */
  async run(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (let next = this.#timers[0]; next !== undefined && next.at <= end; next = this.#timers[0]) {
      this.#timers.shift();
      this.#now = next.at;
      next.action();
      await settled();
    }
    this.#now = end;
  }

  /** Place behind the timers that are due at `at`, or before. */
  #place(at: number): number {
    let [from, to] = [0, this.#timers.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#timers[middle] as { at: number }).at <= at) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await undefined;
}

/** A device, whose application accepts and refuses, and connects, as the input says. */
class World {
  readonly seen = new Set<string>();
  private readonly clock = new VirtualClock();
  private readonly listeners = new Set<(frame: Buffer) => void>();
  private readonly isIpv6: boolean;
  private readonly own: string;
  private readonly peers: readonly string[];
  private readonly manager: ConnectionManager;
  /** IDs that were sent to peers, and requests of peers that the application has not answered. */
  private readonly ids = [0, 1];
  /** The last frame that was sent. */
  private sent: Buffer = Buffer.alloc(0);
  private readonly asked: IncomingRequest[] = [];
  private readonly established: Established[] = [];
  private ownId = 1;

  constructor(
    private readonly input: Input,
    private readonly captured: readonly Buffer[],
  ) {
    this.isIpv6 = input.once(2);
    const [own, ...peers] = kAddresses[this.isIpv6 ? 6 : 4];
    this.own = own;
    this.peers = peers;
    const link: FrameLink = {
      mac: kOwnMac,
      send: (frame) => this.#sent(Buffer.from(frame)),
      onFrame: (listener) => {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
      },
    };
    const { clock } = this;
    const neighbours = { resolve: (address: string) => this.#resolve(address) };
    const random = () => (Math.imul(this.ownId++, 0x9e3779b1) ^ 0x5bd1e995) >>> 0;
    this.manager = new ConnectionManager({ link, neighbours, address: own, clock, random });
    this.manager.listen(kConnected, (request) => void this.asked.push(request));
    this.manager.services.listen(kDatagrams, () => (this.input.once(2) ? { qpn: 3, qkey: 4 } : undefined));
  }

  async run(input: Input): Promise<void> {
    while (!input.empty) {
      await this.#act();
      requireThat(this.clock.pending <= kMostTimers, `${this.clock.pending} timers run`);
    }
    // The application answers in the end, and hangs up.
    for (const request of this.asked.splice(0)) request.reject();
    await this.clock.run(kForever);
    for (const connection of this.established.splice(0)) this.#expect(connection.disconnect());
    await this.clock.run(kForever);
    requireThat(this.clock.pending === 0, `${this.clock.pending} timers run after everything has ended`);
    this.#requireRoom();
    this.manager.close();
    await settled();
  }

  async #act(): Promise<void> {
    const { input, clock } = this;
    switch (input.below(16)) {
      case 0:
        return clock.run(input.once(4) ? input.below(200_000) : input.below(2000));
      case 1:
        return this.#answer();
      case 2:
        return this.#ask();
      case 3: {
        const connection = input.pick(this.established);
        if (connection !== undefined) this.#expect(connection.disconnect());
        return settled();
      }
      case 4:
        return this.#receive(this.#unreachable());
      case 6:
        return this.#receive(this.#damaged(input.pick(this.captured)));
      default:
        return this.#receive(input.once(6) ? this.#damaged(this.#message()) : this.#message());
    }
  }

  async #receive(frame: Buffer): Promise<void> {
    const frameText = frame.toString("hex");
    try {
      readAsProbe(frame);
      for (const listener of [...this.listeners]) listener(frame);
      await settled();
    } catch (error) {
      throw new Finding((error as Error).message, frameText, { cause: error });
    }
  }

  /** Checks that a frame of the device is whole, and notes IDs that it tells a peer. */
  #sent(frame: Buffer): boolean {
    const mad = readMadFrame(frame)?.mad;
    const message = mad && readMessage(mad);
    if (message === undefined) throw new Finding("what is sent is no message", frame.toString("hex"));
    this.sent = frame;
    this.seen.add(`sends ${message.kind}${"reason" in message.fields ? ` ${message.fields.reason}` : ""}`);
    const id = "localId" in message.fields ? message.fields.localId : message.fields.requestId;
    this.ids.push(id);
    if (this.ids.length > kRemembered) this.ids.shift();
    return !this.input.once(50);
  }

  /** The application's answer to a request that waits. */
  async #answer(): Promise<void> {
    const { input } = this;
    const [request] = this.asked.splice(input.below(this.asked.length), 1);
    if (request === undefined) return;
    if (input.once(3)) request.reject(Buffer.alloc(input.below(100)));
    else {
      const accepted = request.accept({ qpn: 5 + input.below(100), startingPsn: 3 });
      this.#expect(accepted.then((connection) => this.#opened(connection)));
      if (input.once(4)) request.dataReceived();
    }
    await settled();
  }

  /** Has the application ask a peer. */
  async #ask(): Promise<void> {
    const { input, manager } = this;
    const destination = input.pick(this.peers);
    if (input.once(2)) {
      this.#expect(manager.services.resolve(destination, kDatagrams));
    } else {
      const options = { destination, port: kConnected, qpn: 9, startingPsn: 1, pathMtu: 1024 as const };
      const asking = manager.connect(input.once(2) ? { ...options, timeoutMs: 1 + input.below(10_000) } : options);
      this.#expect(
        asking.then((connection) => {
          this.#opened(connection);
          if (!input.once(4)) connection.ready();
        }),
      );
    }
    await settled();
  }

  #opened(connection: Established): void {
    this.seen.add("established");
    this.established.push(connection);
    connection.onDisconnected(() => {
      const place = this.established.indexOf(connection);
      if (place >= 0) this.established.splice(place, 1);
    });
  }

  /** Expects of a promise that it may fail, in the words of the product. */
  #expect(promise: Promise<unknown>): void {
    promise.catch((error: unknown) => {
      if (!(error instanceof WeirError)) throw error;
      this.seen.add(`fails ${error.message.replace(/.*port \d+/, "")}`);
    });
  }

  /** Finds a peer at once, later, or not at all, as the input says. */
  async #resolve(address: string): Promise<number> {
    const { input, clock } = this;
    if (input.once(4)) await new Promise<void>((end) => void clock.after(input.below(3000), end));
    if (input.once(8)) throw new WeirError(`${address} does not answer`);
    return kPeerMac;
  }

  /** Checks that a peer that asks now is heard. */
  #requireRoom(): void {
    const before = this.asked.length;
    this.#deliver(
      this.#frame("REQ", this.#request(this.peers[0] as string, { localId: 0x7fff_0001, localQpn: 99 }), 0),
    );
    requireThat(this.asked.length === before + 1, "a request is not heard after everything has ended");
  }

  #deliver(frame: Buffer): void {
    for (const listener of [...this.listeners]) listener(frame);
  }

  #id(): number {
    return this.input.once(3) ? this.input.below(6) : this.input.pick(this.ids);
  }

  /** Draws a number of so many bits, with a liking for the ends of the range. */
  #number(bits: number): number {
    const { input } = this;
    const style = input.below(4);
    if (style === 0) return 2 ** bits - 1;
    return style === 1 ? 0 : input.below(2 ** Math.min(bits, 32));
  }

  #message(): Buffer {
    const { input } = this;
    const kind = input.pick(kKinds);
    const peer = input.pick(this.peers);
    return this.#frame(kind, this.#fields(kind, peer), this.peers.indexOf(peer));
  }

  #frame(kind: MessageKind, fields: object, peer: number): Buffer {
    const mad = buildMessage(kind, 1n, fields);
    const source = this.peers[peer] as string;
    const frame: MadFrame = {
      destinationMac: kOwnMac,
      sourceMac: kPeerMac,
      source,
      destination: this.own,
      psn: 0,
      mad,
    };
    return buildMadFrame(frame, 7);
  }

  #fields(kind: MessageKind, peer: string): object {
    const { input } = this;
    switch (kind) {
      case "REQ":
        return this.#request(peer, {
          localId: this.#id(),
          serviceId: input.once(8) ? BigInt(input.below(2 ** 32)) : serviceId("connected", kConnected),
          localGuid: Buffer.from([0, 0, 0, 0, 0, 0, 0, input.below(4)]),
          localQpn: input.below(6),
          responderResources: this.#number(8),
          initiatorDepth: this.#number(8),
          localResponseTimeout: this.#number(5),
          remoteResponseTimeout: this.#number(5),
          maxRetries: this.#number(4),
          retryCount: this.#number(3),
          rnrRetryCount: this.#number(3),
          pathMtu: input.once(8) ? this.#number(4) : 1 + input.below(5),
          startingPsn: this.#number(24),
          localAckTimeout: this.#number(5),
          transportService: input.once(10) ? 1 : 0,
          ...(input.once(15) && { privateData: input.take(input.below(93)) }),
        });
      case "SIDR_REQ":
        return {
          requestId: this.#id(),
          serviceId: serviceId("datagram", input.once(5) ? 1 : kDatagrams),
          privateData: input.once(6) ? Buffer.alloc(216, input.byte()) : this.#ipHeader(peer, 100),
        };
      case "SIDR_REP":
        return { requestId: this.#id(), status: this.#number(8), qpn: this.#number(24), qkey: 5 };
      default:
        return {
          localId: this.#id(),
          remoteId: this.#id(),
          ...(kind === "MRA" && { answered: input.below(4), serviceTimeout: this.#number(5) }),
          ...(kind === "REJ" && {
            answered: input.below(4),
            infoLength: this.#number(7),
            reason: input.below(30),
            info: Buffer.from([0, 0, 0, 0, 0, 0, 0, input.below(4)]),
          }),
          ...(kind === "REP" && {
            localQpn: this.#number(24),
            startingPsn: this.#number(24),
            responderResources: this.#number(8),
            initiatorDepth: this.#number(8),
            targetAckDelay: this.#number(5),
            rnrRetryCount: this.#number(3),
            localGuid: Buffer.alloc(8, 3),
          }),
          ...(kind === "DREQ" && { remoteQpn: 5 + input.below(100) }),
        };
    }
  }

  /** A request that is right, but for the given fields. */
  #request(peer: string, fields: Partial<Fields<"REQ">>): Partial<Fields<"REQ">> {
    return {
      serviceId: serviceId("connected", kConnected),
      pathMtu: 3,
      localGid: gidOfAddress(peer),
      remoteGid: gidOfAddress(this.own),
      privateData: this.#ipHeader(peer, 56),
      ...fields,
    };
  }

  #ipHeader(source: string, most: number): Buffer {
    return buildIpHeader({ sourcePort: 1, source, destination: this.own }, Buffer.alloc(this.input.below(most)));
  }

  /** A host's word that it has nothing for the last frame that was sent, or what looks like one. */
  #unreachable(): Buffer {
    const { input, isIpv6 } = this;
    const type = input.once(8) ? input.byte() : isIpv6 ? 1 : 3;
    const quoted = this.#damaged(this.sent.subarray(kEthernet));
    const message = Buffer.concat([Buffer.from([type, input.below(6), 0, 0, 0, 0, 0, 0]), quoted]);
    const packet = icmpPacket(input.pick(this.peers), this.own, message, { options: isIpv6 ? 0 : 4 * input.below(3) });
    const etherType = isIpv6 ? kEtherType.ipv6 : kEtherType.ipv4;
    return this.#damaged(buildEthernet(kOwnMac, kPeerMac, etherType, packet));
  }

  #damaged(frame: Buffer): Buffer {
    const { input } = this;
    const damaged = Buffer.from(frame);
    for (let changes = input.below(6) - 2; changes > 0; changes--) {
      const at = input.below(damaged.length);
      if (at < damaged.length) damaged[at] = (damaged[at] as number) ^ input.byte();
    }
    return input.once(8) ? damaged.subarray(0, input.below(damaged.length + 1)) : damaged;
  }
}

/** Checks that the probe reads an IPv4 packet as connection management does, and can have it quoted in an ICMP message. */
function readAsProbe(frame: Buffer): void {
  const packet = frame.subarray(kEthernet);
  const read = readFrame(packet);
  const mad = readMadFrame(frame);
  if (mad !== undefined && !mad.source.includes(":")) {
    requireThat(
      read?.icrcOk === true && read.source === mad.source && read.psn === mad.psn,
      "the probe reads another frame",
    );
  }
  const icmp = Buffer.concat([Buffer.from("4500000000000000400100000a0000020a0000010301000000000000", "hex"), packet]);
  icmp.writeUInt16BE(icmp.length, 2);
  const quoted = readUnreachable(icmp);
  requireThat(read === undefined || quoted?.destination === read.destination, "the probe reads another quotation");
  readUnreachable(packet);
}
