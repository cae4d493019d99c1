/** A Weir device meets peers that break the rules: memory stays, the answer is the standard's, a counter says so. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { MemoryRegion, QueuePairAttributes } from "../../src/verbs/index.js";
import { buildMadFrame } from "../../src/wire/cm/frame.js";
import { kEtherType } from "../../src/wire/headers.js";
import { arpRequest, neighbourOf, neighbourSolicitation } from "../fixtures/neighbour_messages.js";
import { eventually } from "../patience.js";
import { atomic, ethernet, kOpcode, kPeerMac, type Packet, reth, roceFrame, word } from "./bad_peer.js";
import {
  answer,
  BadNetwork,
  kAck,
  kMtu,
  kPeer,
  kQueueKey,
  kRegion,
  kVictim,
  Target,
  type Wrong,
} from "./bad_peer_target.js";
import { describeLive } from "./capability.js";

const kNak = { sequence: 0x60, invalidRequest: 0x61, remoteAccess: 0x62 };
const kRnr = 0x2c;

let network: BadNetwork;

const kNoExtension = Buffer.alloc(0);
const kFull = Buffer.alloc(kMtu, 0xa5);

describeLive("bad peers", () => {
  beforeAll(async () => {
    network = await BadNetwork.create();
  });
  afterAll(() => network?.close());

  it("a sound WRITE, READ and atomic are done: the frames are right but for what a test makes wrong", async () => {
    const target = new Target(network);
    expect(await target.answers(target.write(0, "hello"))).toEqual([answer(0, kAck)]);
    target.untouched([0, "hello"]);
    const { key } = target.region;
    const read = target.packet(1, kOpcode.readRequest, reth(target.at(0), key, 5));
    expect(await target.answers(read)).toMatchObject([{ opcode: kOpcode.readResponseOnly }]);
    const before = target.bytes.readBigUInt64LE(64);
    const add = target.packet(2, kOpcode.fetchAdd, atomic(target.at(64), key, 1n));
    const [told] = await target.answers(add);
    expect(told?.opcode).toBe(kOpcode.atomicAcknowledge);
    expect(told?.rest.readBigUInt64BE(0)).toBe(before);
    expect(target.bytes.readBigUInt64LE(64)).toBe(before + 1n);
  });

  it("every single bit that is wrong: nothing is done, nothing said", async () => {
    const target = new Target(network);
    const sound = target.write(0, "sixteen bytes ..");
    // Neither IP's nor the invariant checksum covers the UDP checksum, and the byte of the BTH with FECN and BECN.
    const uncovered = [40, 41, 46];
    const frames: Buffer[] = [];
    for (let bit = 14 * 8; bit < sound.length * 8; bit++) {
      if (uncovered.includes(bit >> 3)) continue;
      const frame = Buffer.from(sound);
      frame[bit >> 3] = frame.readUInt8(bit >> 3) ^ (0x80 >> (bit & 7));
      frames.push(frame);
    }
    for (let i = 0; i < frames.length; i += 64) expect(await target.answers(...frames.slice(i, i + 64))).toEqual([]);
    target.untouched();
    target.counted(frames.filter(isForRoce).length, "rx_icrc_encapsulated", "drop_malformed");
    await target.serves(0);
  });

  it("frames cut short anywhere: nothing is done, nothing said", async () => {
    const target = new Target(network);
    const sound = target.write(0, "sixteen bytes ..");
    const frames = Array.from({ length: sound.length - 15 }, (_, i) => sound.subarray(0, 15 + i));
    for (let i = 0; i < frames.length; i += 64) expect(await target.answers(...frames.slice(i, i + 64))).toEqual([]);
    target.untouched();
    target.counted(frames.filter(isForRoce).length, "drop_malformed");
    await target.serves(0);
  });

  it.each<[string, string, Wrong]>([
    ["a wrong ICRC", "rx_icrc_encapsulated", { corrupt: true }],
    ["transport version 1", "drop_malformed", { transportVersion: 1 }],
    ["no room for its RETH", "drop_malformed", { extension: kNoExtension, payload: kNoExtension }],
    ["another partition", "drop_partition_key", { partitionKey: 0x8001 }],
    ["another source", "drop_wrong_peer", { from: { source: "10.9.0.3" } }],
    ["another source, with IPv6", "drop_wrong_peer", { from: { source: kPeer.ipv6, destination: kVictim.ipv6 } }],
    ["a queue pair that is not there", "drop_unknown_qp", { qpn: 0xabcdef }],
    ["an opcode of UC", "drop_unsupported_opcode", { opcode: kOpcode.ucWriteOnly }],
    ["an opcode of UD", "drop_unsupported_opcode", { opcode: kOpcode.udSendOnly }],
  ])("%s: dropped and counted", async (_, counter, more) => {
    const target = new Target(network);
    expect(await target.answers(target.write(0, "hello", more))).toEqual([]);
    target.untouched();
    target.counted(1, counter);
    await target.serves(0);
  });

  it.each<[string, Partial<Packet>]>([
    ["the migration bit", { migration: true }],
    ["a limited member of the partition", { partitionKey: 0x7fff }],
  ])("%s is taken", async (_, more) => {
    const target = new Target(network);
    expect(await target.answers(target.write(0, "hello", more))).toEqual([answer(0, kAck)]);
    target.untouched([0, "hello"]);
  });

  it.each(["init", "error"] as const)("a queue pair in state %s takes nothing", async (state) => {
    const target = new Target(network, { state: state === "init" ? "init" : "rts" });
    if (state === "error") target.queuePair.modify("error");
    expect(await target.answers(target.write(0, "hello"))).toEqual([]);
    target.untouched();
    target.counted(1, "drop_wrong_state");
  });

  const kOther = { access: [] as const };
  it.each<[string, number, (target: Target) => Buffer[], Partial<QueuePairAttributes>?]>([
    ["a wrong key", kNak.remoteAccess, (t) => [t.write(0, "hello", { key: (t.region.key ^ 0x5500) >>> 0 })]],
    ["a key of before", kNak.remoteAccess, (t) => [t.write(0, "hello", gone(t))]],
    ["key 0", kNak.remoteAccess, (t) => [t.write(0, "hello", { key: 0 })]],
    ["a key of another domain", kNak.remoteAccess, (t) => [t.write(0, "hello", foreign(t))]],
    ["memory that is only read", kNak.remoteAccess, (t) => [t.write(0, "hello", readOnly(t))]],
    ["a byte behind the end", kNak.remoteAccess, (t) => [t.write(0, "hello", { offset: kRegion - 4 })]],
    ["a byte before the start", kNak.remoteAccess, (t) => [t.write(0, "hello", { offset: -1 })]],
    [
      "the end of all addresses",
      kNak.remoteAccess,
      (t) => [t.packet(0, kOpcode.writeOnly, reth(-2n, t.region.key, 5), "hello")],
    ],
    [
      "more announced than there is",
      kNak.remoteAccess,
      (t) => [t.packet(0, kOpcode.writeFirst, reth(t.at(0), t.region.key, kRegion + 1), kFull)],
    ],
    [
      "READ behind the end",
      kNak.remoteAccess,
      (t) => [t.packet(0, kOpcode.readRequest, reth(t.at(1), t.region.key, kRegion))],
    ],
    ["READ with a wrong key", kNak.remoteAccess, (t) => [t.packet(0, kOpcode.readRequest, reth(t.at(0), 77, 8))]],
    ["atomic with a wrong key", kNak.remoteAccess, (t) => [t.packet(0, kOpcode.fetchAdd, atomic(t.at(0), 77, 1n))]],
    [
      "atomic behind the end",
      kNak.remoteAccess,
      (t) => [t.packet(0, kOpcode.compareSwap, atomic(t.at(kRegion), t.region.key, 1n))],
    ],
    [
      "atomic that is not aligned",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.fetchAdd, atomic(t.at(4), t.region.key, 1n))],
    ],
    [
      "more than 2 GiB",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.writeFirst, reth(t.at(0), t.region.key, 0x8000_0001), kFull)],
    ],
    [
      "READ of more than 2 GiB",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.readRequest, reth(t.at(0), t.region.key, 0xffff_ffff))],
    ],
    ["WRITE without the right", kNak.invalidRequest, (t) => [t.write(0, "hello")], kOther],
    [
      "READ without the right",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.readRequest, reth(t.at(0), t.region.key, 8))],
      kOther,
    ],
    [
      "atomic without the right",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.fetchAdd, atomic(t.at(0), t.region.key, 1n))],
      kOther,
    ],
    [
      "less than announced",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.writeOnly, reth(t.at(0), t.region.key, 9), "hello")],
    ],
    [
      "more than announced",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.writeOnly, reth(t.at(0), t.region.key, 3), "hello")],
    ],
    [
      "FIRST that is not full",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.writeFirst, reth(t.at(0), t.region.key, 2000), "hello")],
    ],
    [
      "ONLY above the path MTU",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.writeOnly, reth(t.at(0), t.region.key, 1028), Buffer.alloc(1028))],
    ],
    [
      "READ with a payload",
      kNak.invalidRequest,
      (t) => [t.packet(0, kOpcode.readRequest, reth(t.at(0), t.region.key, 8), "hello")],
    ],
    ["MIDDLE without FIRST", kNak.invalidRequest, (t) => [t.packet(0, kOpcode.writeMiddle, kNoExtension, kFull)]],
    ["LAST without FIRST", kNak.invalidRequest, (t) => [t.packet(0, kOpcode.writeLast, kNoExtension, "hello")]],
    ["SEND MIDDLE without FIRST", kNak.invalidRequest, (t) => [t.packet(0, kOpcode.sendMiddle, kNoExtension, kFull)]],
    ["an opcode that is reserved", kNak.invalidRequest, (t) => [t.packet(0, kOpcode.reserved, kNoExtension, "hello")]],
  ])("%s: refused, and the queue pair has failed", async (_, syndrome, frames, attributes) => {
    const target = new Target(network, attributes);
    expect(await target.answers(...frames(target))).toEqual([answer(0, syndrome)]);
    target.untouched();
    const counter = syndrome === kNak.remoteAccess ? "resp_remote_access_errors" : "resp_invalid_requests";
    target.counted(1, counter);
    await eventually(() => expect(target.queuePair.state).toBe("error"));
    // Later packets are not looked at any more.
    expect(await target.answers(target.write(0, "hello"), target.write(1, "hello"))).toEqual([]);
    target.untouched();
  });

  it.each<[string, (t: Target) => Buffer]>([
    ["a WRITE ONLY", (t) => t.write(1, "hello")],
    ["a SEND MIDDLE", (t) => t.packet(1, kOpcode.sendMiddle, kNoExtension, kFull)],
    ["a LAST that is too short", (t) => t.packet(1, kOpcode.writeLast, kNoExtension, "hello")],
    ["a LAST that is empty", (t) => t.packet(1, kOpcode.writeLast, kNoExtension)],
    ["a MIDDLE that leaves nothing", (t) => t.packet(1, kOpcode.writeMiddle, kNoExtension, kFull)],
  ])("%s in the middle of a WRITE is refused; the first packet has been written", async (_, frame) => {
    const target = new Target(network);
    const first = target.packet(0, kOpcode.writeFirst, reth(target.at(0), target.region.key, 2 * kMtu), kFull);
    expect((await target.answers(first, frame(target))).at(-1)).toEqual(answer(1, kNak.invalidRequest));
    target.untouched([0, kFull]);
    target.counted(1, "resp_invalid_requests");
  });

  it("a PSN ahead is asked for once, and what comes then is served", async () => {
    const target = new Target(network);
    const early = [2, 1, 3].map((psn) => target.write(psn, "early"));
    expect(await target.answers(...early)).toEqual([answer(0, kNak.sequence)]);
    target.untouched();
    target.counted(3, "out_of_sequence");
    await target.serves(0);
  });

  it("a WRITE that is replayed is acknowledged and not done again", async () => {
    const target = new Target(network);
    const [first, second] = [target.write(0, "first"), target.write(1, "other")];
    await target.answers(first, second);
    expect(await target.answers(first)).toEqual([answer(1, kAck)]);
    // A repetition with other contents, key or address is not written either.
    expect(await target.answers(target.write(0, "third", { offset: 100, key: 5 }))).toEqual([answer(1, kAck)]);
    target.untouched([0, "other"]);
    target.counted(2, "duplicate_request");
    await target.serves(2);
  });

  it("an atomic that is replayed is answered as before and not done again", async () => {
    const target = new Target(network);
    const before = target.bytes.readBigUInt64LE(0);
    const add = target.packet(0, kOpcode.fetchAdd, atomic(target.at(0), target.region.key, 5n));
    for (let i = 0; i < 3; i++) {
      const [told] = await target.answers(add);
      expect(told?.opcode).toBe(kOpcode.atomicAcknowledge);
      expect(told?.rest.readBigUInt64BE(0)).toBe(before);
    }
    const after = Buffer.alloc(8);
    after.writeBigUInt64LE(before + 5n);
    target.untouched([0, after]);
  });

  it("a READ that is replayed reads no other memory than it did", async () => {
    const target = new Target(network);
    const read = (offset: number, length: number) =>
      target.packet(0, kOpcode.readRequest, reth(target.at(offset), target.region.key, length));
    await target.answers(read(0, 16));
    expect(await target.answers(read(0, 16))).toMatchObject([{ rest: target.bytes.subarray(0, 16) }]);
    expect(await target.answers(read(16, 16), read(0, 32))).toEqual([]);
    await target.serves(1);
  });

  it("a SEND that is replayed takes one receive", async () => {
    const target = new Target(network);
    target.queuePair.postReceive({ id: 1, local: slice(target, 64) }, { id: 2, local: slice(target, 64) });
    const send = target.packet(0, kOpcode.sendOnly, kNoExtension, "hello");
    expect(await target.answers(send)).toEqual([answer(0, kAck)]);
    expect(await target.answers(send)).toEqual([answer(0, kAck)]);
    target.untouched([0, "hello"]);
    expect(target.completions()).toMatchObject([{ id: 1, status: "success", byteLength: 5 }]);
  });

  it("a SEND for which there is no receive is put off", async () => {
    const target = new Target(network);
    const send = target.packet(0, kOpcode.sendOnly, kNoExtension, "hello");
    expect(await target.answers(send)).toEqual([answer(0, kRnr)]);
    target.untouched();
    target.counted(1, "out_of_buffer");
    target.queuePair.postReceive({ local: slice(target, 64) });
    expect(await target.answers(send)).toEqual([answer(0, kAck)]);
    target.untouched([0, "hello"]);
  });

  it("a SEND that is too long is refused, and nothing behind the receive is written", async () => {
    const target = new Target(network);
    target.queuePair.postReceive({ local: slice(target, 4) });
    const send = target.packet(0, kOpcode.sendOnly, kNoExtension, "hello");
    expect(await target.answers(send)).toEqual([answer(0, kNak.invalidRequest)]);
    target.untouched();
    expect(target.completions()).toMatchObject([{ status: "loc_len_err" }]);
  });

  it("a SEND that takes away a key that it may not: no ACK, and the key stays", async () => {
    const target = new Target(network);
    target.queuePair.postReceive({ local: slice(target, 64) });
    const send = target.packet(0, kOpcode.sendOnlyInvalidate, word(target.region.key), "hello");
    expect(await target.answers(send)).toEqual([]);
    await eventually(() => expect(target.queuePair.state).toBe("error"));
    expect(target.completions().map(({ status }) => status)).not.toContain("success");
  });

  it("responses that nobody waits for are dropped", async () => {
    const target = new Target(network);
    const aeth = word(0x1f00_0000);
    const frames = [
      target.packet(0, kOpcode.acknowledge, aeth),
      target.packet(1, kOpcode.acknowledge, word(0x6200_0000)),
      target.packet(2, kOpcode.acknowledge, word(0xffff_ffff)),
      target.packet(0, kOpcode.readResponseOnly, aeth, "hello"),
      target.packet(0, kOpcode.atomicAcknowledge, Buffer.concat([aeth, Buffer.alloc(8)])),
    ];
    expect(await target.answers(...frames)).toEqual([]);
    target.untouched();
    target.counted(frames.length, "drop_unexpected_response");
    await target.serves(0);
  });

  it.each<[string, string, number, number, Partial<Packet>]>([
    ["a wrong Q_Key", "drop_queue_key", kQueueKey + 1, 64, {}],
    ["no room for it", "drop_datagram", kQueueKey, 44, {}],
    ["another partition", "drop_partition_key", kQueueKey, 64, { partitionKey: 0x8001 }],
    ["an opcode of RC", "drop_unsupported_opcode", kQueueKey, 64, { opcode: kOpcode.sendOnly }],
  ])("a datagram with %s is dropped", async (_, counter, key, room, more) => {
    const target = new Target(network, { type: "ud" });
    target.queuePair.postReceive({ local: slice(target, room) });
    const deth = (queueKey: number) => word(queueKey, 9);
    expect(await target.answers(target.packet(0, kOpcode.udSendOnly, deth(key), "hello", more))).toEqual([]);
    target.untouched();
    target.counted(1, counter);
    expect(target.completions()).toEqual([]);
    if (room < 45) return;
    await target.answers(target.packet(0, kOpcode.udSendOnly, deth(kQueueKey), "hello"));
    expect(target.completions()).toMatchObject([{ status: "success", byteLength: 45, sourceQpn: 9 }]);
    expect(target.bytes.subarray(40, 45).toString()).toBe("hello");
  });

  it("congestion notifications that are cut short, or about nothing, change nothing", async () => {
    const target = new Target(network);
    const cnp = (qpn: number, reserved: number) =>
      roceFrame(network.route, { opcode: kOpcode.cnp, qpn, psn: 0, extension: Buffer.alloc(reserved) });
    expect(
      await target.answers(cnp(target.queuePair.qpn, 0), cnp(target.queuePair.qpn, 12), cnp(0xabcdef, 16)),
    ).toEqual([]);
    target.counted(2, "drop_malformed");
    target.counted(1, "drop_unknown_qp");
    target.counted(0, "rp_cnp_handled");
    await target.answers(cnp(target.queuePair.qpn, 16));
    target.counted(1, "rp_cnp_handled");
    await target.serves(0);
  });

  it("garbage to connection management, ARP and neighbour discovery", async () => {
    const target = new Target(network);
    const random = generator(42);
    const noise = (length: number) => Buffer.from(Array.from({ length }, () => random() & 0xff));
    const mac = network.victim.mac;
    const addresses = { source: kPeer.ipv4, destination: kVictim.ipv4 };
    const arp = arpRequest(kPeerMac, kPeer.ipv4, kVictim.ipv4);
    const solicitation = neighbourSolicitation(kPeerMac, kPeer.ipv6, kVictim.ipv6);
    for (let round = 0; round < 20; round++) {
      const mad = noise(256);
      // Every other one looks like connection management from the start.
      if (round % 2 === 0) Buffer.from([1, 7, 2, 3]).copy(mad);
      if (round % 4 === 0) mad.writeUInt16BE(0x0010 + (round >> 2), 16);
      const gsi = { opcode: kOpcode.udSendOnly, qpn: 1, psn: round, extension: word(0x8001_0000, 1) };
      await target.answers(
        buildMadFrame({ destinationMac: mac, sourceMac: kPeerMac, ...addresses, psn: round, mad }, round + 1),
        roceFrame(network.route, { ...gsi, payload: noise(round * 7) }),
        roceFrame(network.route, { ...gsi, opcode: random() & 0xff, extension: noise(16) }),
        ethernet(mac, kEtherType.arp, noise(round * 3)),
        mutated(arp, random),
        ethernet(mac, kEtherType.ipv6, noise(round * 5)),
        mutated(solicitation, random),
        ethernet(mac, random() & 0xffff, noise(100)),
      );
    }
    target.untouched();
    network.peer.heard.length = 0;
    await target.answers(arp, solicitation);
    await eventually(() => {
      const told = network.peer.heard.map(neighbourOf);
      for (const address of [kVictim.ipv4, kVictim.ipv6]) expect(told).toContainEqual({ address, mac });
    });
    await target.serves(0);
  });
});

function slice({ region }: { region: MemoryRegion }, length: number) {
  return { region, length };
}

/** Tells whether the kernel's filter takes an IPv4 frame for one of RoCEv2: the rest does not reach the device. */
function isForRoce(frame: Buffer): boolean {
  const udp = 14 + 4 * (frame.readUInt8(14) & 15);
  if (frame.length < udp + 4) return false;
  return frame[23] === 17 && (frame.readUInt16BE(20) & 0x1fff) === 0 && frame.readUInt16BE(udp + 2) === 4791;
}

/** A region that queue pairs of other domains must not reach. */
function foreign(target: Target): { key: number } {
  return other(target, network.victim.allocateProtectionDomain().registerMemory(kRegion));
}

function gone(target: Target): { key: number } {
  const region = target.domain.registerMemory(kRegion);
  region.deregister();
  return { key: region.key };
}

function readOnly(target: Target): { key: number } {
  return other(target, target.domain.registerMemory(kRegion, ["remote_read"]));
}

/** The address is a good one, too. */
function other(target: Target, region: MemoryRegion) {
  target.others.push(region);
  return { key: region.key, offset: region.start - target.region.start };
}

/** Changes a few bytes behind the Ethernet header. */
function mutated(frame: Buffer, random: () => number): Buffer {
  const copy = Buffer.from(frame);
  for (let i = 0; i < 3; i++) copy[14 + (random() % (copy.length - 14))] = random() & 0xff;
  return copy;
}

/** Numbers of 31 bits, the same ones for a seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return state >> 8;
  };
}
