/** A Weir device on a veth pair with a bad peer, and a queue pair of it for each test with all that may be done to it. */
import { expect } from "vitest";
import { NetworkNamespace } from "../../src/host/namespace.js";
import {
  type CompletionQueue,
  type Device,
  type MemoryRegion,
  openDevice,
  type ProtectionDomain,
  type QueuePair,
  type QueuePairAttributes,
  type WorkCompletion,
} from "../../src/verbs/index.js";
import { eventually } from "../patience.js";
import {
  type Answer,
  BadPeer,
  kOpcode,
  kPeerMac,
  kPeerQpn,
  type Packet,
  type Route,
  reth,
  roceFrame,
} from "./bad_peer.js";

export const kVictim = { ipv4: "10.9.0.1", ipv6: "fd09::1" };
export const kPeer = { ipv4: "10.9.0.2", ipv6: "fd09::2" };
export const kMtu = 1024;
/** Bytes of a region. */
export const kRegion = 16_384;
export const kQueueKey = 0x1234_5678;
/** Syndrome of an ACK with any number of credits. */
export const kAck = 0x00;
/** First PSN that is expected: the next one wraps. */
const kPsn = 0xff_ffff;
const kWitnessPsn = 0x40_0000;
const kNobody = 0x02_57_00_00_00_77;

export class BadNetwork {
  /** Queue pair whose answer shows that all before has been looked at. */
  readonly #witness: QueuePair;
  #witnessed = 0;

  private constructor(
    private readonly namespace: NetworkNamespace,
    readonly victim: Device,
    readonly peer: BadPeer,
  ) {
    const domain = victim.allocateProtectionDomain();
    this.#witness = domain.createQueuePair({ sendCompletions: victim.createCompletionQueue() });
    connect(this.#witness, kWitnessPsn, "rts", {});
  }

  static async create(): Promise<BadNetwork> {
    const namespace = await NetworkNamespace.create();
    const opened: { close(): void }[] = [namespace];
    try {
      const lines = ["link add bad0 type veth peer name good0", "link set bad0 up", "link set good0 up"];
      await namespace.run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
      const place = (name: string) => ({ interface: name, namespace: namespace.path });
      const address = [`${kVictim.ipv4}/24`, `${kVictim.ipv6}/64`];
      const victim = await openDevice({ ...place("good0"), address });
      opened.push(victim);
      return new BadNetwork(namespace, victim, await BadPeer.create(place("bad0"), kPeer.ipv4));
    } catch (error) {
      for (const one of opened.reverse()) one.close();
      throw error;
    }
  }

  get route(): Route {
    return { mac: this.victim.mac, source: kPeer.ipv4, destination: kVictim.ipv4 };
  }

  /** Answers to these frames that the peer hears, once the device has looked at all of them, and its counters say so. */
  async answers(...frames: Buffer[]): Promise<Answer[]> {
    const { peer, victim, route } = this;
    const from = peer.heard.length;
    const psn = kWitnessPsn + this.#witnessed++;
    // Its response leaves behind all ACKs, NAKs and earlier responses.
    const last = { opcode: kOpcode.readRequest, extension: reth(0n, 0, 0), qpn: this.#witness.qpn, psn };
    // Counters are published after a turn, all together.
    const forNobody = roceFrame({ ...route, mac: kNobody }, last);
    await peer.send(...frames, roceFrame(route, last), forNobody);
    const isLast = (answer: Answer) => answer.psn === psn;
    await eventually(() => {
      expect(peer.answers(from).some(isLast)).toBe(true);
      expect(victim.counters().get("drop_not_for_us")).toBe(this.#witnessed);
    });
    return peer.answers(from).filter((answer) => !isLast(answer));
  }

  close(): void {
    this.peer.close();
    this.victim.close();
    this.namespace.close();
  }
}

/** A queue pair that is ours for one test, its memory, and what has been received. */
export class Target {
  readonly domain: ProtectionDomain;
  readonly region: MemoryRegion;
  readonly bytes: Buffer;
  readonly queue: CompletionQueue;
  readonly queuePair: QueuePair;
  readonly #counters: Map<string, number>;
  /** Other memory that frames are aimed at; zeros. */
  readonly others: MemoryRegion[] = [];
  #image: Buffer;

  constructor(
    private readonly network: BadNetwork,
    { state = "rts", type = "rc", ...attributes }: TargetOptions = {},
  ) {
    const { victim, peer } = network;
    this.domain = victim.allocateProtectionDomain();
    this.region = this.domain.registerMemory(kRegion);
    this.bytes = Buffer.from(this.region.buffer);
    this.queue = victim.createCompletionQueue();
    this.queuePair = this.domain.createQueuePair({ sendCompletions: this.queue, type });
    connect(this.queuePair, kPsn, state, attributes);
    for (let i = 0; i < kRegion; i++) this.bytes[i] = i * 31 + (i >> 8);
    this.#image = Buffer.from(this.bytes);
    this.#counters = victim.counters();
    peer.heard.length = 0;
  }

  at(offset: number): bigint {
    return this.region.remote(offset).address;
  }

  /** A request to this queue pair, `psn` counted from the first one that it expects. */
  packet(psn: number, opcode: number, extension: Buffer, payload: Buffer | string = "", more: Wrong = {}) {
    const packet = { opcode, extension, payload: Buffer.from(payload), psn: (kPsn + psn) & 0xff_ffff };
    return roceFrame({ ...this.network.route, ...more.from }, { ...packet, qpn: this.queuePair.qpn, ...more });
  }

  write(psn: number, payload: Buffer | string, { offset = 0, key = this.region.key, ...more }: WriteOptions = {}) {
    return this.packet(psn, kOpcode.writeOnly, reth(this.at(offset), key, payload.length), payload, more);
  }

  answers(...frames: Buffer[]): Promise<Answer[]> {
    return this.network.answers(...frames);
  }

  /** Checks that memory is as it was, but for these changes. */
  untouched(...changes: [offset: number, data: Buffer | string][]): void {
    for (const [offset, data] of changes) Buffer.from(data).copy(this.#image, offset);
    expect(this.bytes.equals(this.#image)).toBe(true);
    for (const { buffer } of this.others) expect(Buffer.alloc(kRegion).equals(Buffer.from(buffer))).toBe(true);
  }

  /** Checks that the device has counted so many since this was made. */
  counted(count: number, ...names: string[]): void {
    const now = this.network.victim.counters();
    const grown = names.map((name) => (now.get(name) ?? 0) - (this.#counters.get(name) ?? 0));
    expect(grown.reduce((sum, value) => sum + value)).toBe(count);
  }

  /** Checks that it still serves: PSN `psn` is the one that it expects. */
  async serves(psn: number): Promise<void> {
    expect(await this.answers(this.write(psn, "sound", { offset: 8000 }))).toEqual([answer(psn, kAck)]);
    this.untouched([8000, "sound"]);
    expect(this.queuePair.state).not.toBe("error");
  }

  completions(): WorkCompletion[] {
    return this.queue.poll();
  }
}

interface TargetOptions extends Partial<QueuePairAttributes> {
  /** State of the queue pair. Default rts. */
  state?: State;
  type?: "rc" | "ud";
}

type State = "init" | "rtr" | "rts";
export type Wrong = Partial<Packet> & { from?: Partial<Route> };
type WriteOptions = Wrong & { offset?: number; key?: number };

function connect(pair: QueuePair, psn: number, state: State, attributes: Partial<QueuePairAttributes>) {
  pair.modify("init", { queueKey: kQueueKey, ...attributes });
  const path = { address: kPeer.ipv4, mac: kPeerMac };
  const all = { route: path, remoteQpn: kPeerQpn, receivePsn: psn, sendPsn: 5000, pathMtu: kMtu, ...attributes };
  if (state !== "init") pair.modify("rtr", all);
  if (state === "rts") pair.modify("rts");
}

/** An ACK or a NAK, `psn` counted as in Target.packet(). */
export function answer(psn: number, syndrome: number) {
  const from = syndrome === kAck ? { syndrome: expect.toSatisfy((value: number) => value < 0x20) } : { syndrome };
  return { opcode: kOpcode.acknowledge, psn: (kPsn + psn) & 0xff_ffff, ...from, rest: Buffer.alloc(0) };
}
