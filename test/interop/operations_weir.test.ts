/** Every operation between a stock Soft-RoCE guest and Weir, each as requester and as responder, verified where it arrives. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Device, openDevice } from "../../src/verbs/index.js";
import type { Guest } from "../guests/guest.js";
import { atomic, kOpcode, reth, word } from "../live/bad_peer.js";
import { describeInterop } from "./describe_interop.js";
import { exchange, inGuest } from "./exchange.js";
import { InteropNetwork, ipv4, kHostAddress } from "./network.js";
import { opcodesOfWeir, type WeirOptions } from "./opcodes_weir.js";
import { type BadPacket, type Heard, kAck, type Victim, Witness } from "./witness.js";

const kWeir = 9;
const kBad = 7;

let network: InteropNetwork;
let guest: Guest;
let device: Device;
let witness: Witness;

const kDefaults: WeirOptions = { transport: "rc", pathMtu: 1024, version: 4, firstPsn: 0 };

function guestOptions({ transport, pathMtu, version, firstPsn }: WeirOptions): string {
  return `-t ${transport} -m ${pathMtu} -g ${version === 4 ? 1 : 2} -P ${firstPsn}`;
}

/** Soft-RoCE asks Weir. */
function toWeir(changes: Partial<WeirOptions> = {}, test = "ops") {
  const options = { ...kDefaults, ...changes };
  const client = inGuest(guest, `opcodes -c ${kHostAddress} ${guestOptions(options)} -x ${test}`);
  return exchange(opcodesOfWeir(network, device, options), client);
}

/** Weir asks Soft-RoCE. */
function fromWeir(changes: Partial<WeirOptions> = {}, test = "ops") {
  const options = { ...kDefaults, ...changes };
  const client = opcodesOfWeir(network, device, { ...options, connect: ipv4(1), test });
  return exchange(inGuest(guest, `opcodes -s ${guestOptions(options)}`), client);
}

const successes = (text: string) => text.match(/: success$/gm) ?? [];
const received = (text: string) => text.match(/^received .*success$/gm) ?? [];

describeInterop("every operation between Soft-RoCE and Weir", () => {
  beforeAll(async () => {
    network = await InteropNetwork.create();
    [guest] = (await network.guests(1, 4176)) as [Guest];
    const nic = await network.nic(kWeir, 4176);
    const bad = await network.nic(kBad, 4176);
    await network.bridge("tap1", nic.port, bad.port);
    device = await openDevice(nic.device);
    witness = await Witness.create(network, guest, ipv4(1), bad);
  });
  afterAll(async () => {
    device?.close();
    witness?.close();
    await network?.close();
  });

  describe.each([4, 6] as const)("IPv%i", (version) => {
    it.each([256, 1024, 4096])("path MTU %i: Soft-RoCE asks", async (pathMtu) => {
      const { server, client } = await toWeir({ version, pathMtu });
      expect(successes(client)).toHaveLength(47);
      expect(received(server)).toHaveLength(16);
      expect(server).toContain("invalidated");
    });

    it.each([256, 1024, 4096])("path MTU %i: Weir asks", async (pathMtu) => {
      const { server, client } = await fromWeir({ version, pathMtu });
      expect(successes(client)).toHaveLength(47);
      expect(server.match(/^received .*: success$/gm)).toHaveLength(16);
    });

    it("datagrams", async () => {
      const ud = { version, transport: "ud" } as const;
      const theirs = await toWeir(ud);
      expect(successes(theirs.client)).toHaveLength(8);
      expect(received(theirs.server)).toHaveLength(8);
      const ours = await fromWeir(ud);
      expect(successes(ours.client)).toHaveLength(8);
      expect(ours.server.match(/^received .*: success$/gm)).toHaveLength(8);
    });
  });

  it("while packet sequence numbers wrap", async () => {
    await toWeir({ firstPsn: 0xff_fff8 });
    await fromWeir({ firstPsn: 0xff_fff8 });
  });

  it.each([256, 4096])("path MTU %i: Weir asks for much at once, in super-frames", async (pathMtu) => {
    const before = device.counters().get("tx_super_frames") ?? 0;
    const { client } = await fromWeir({ pathMtu }, "many");
    expect(client).toContain("many: 40");
    // The guest's socket does not take them: a kernel cuts them before it. The guest sends none of its own: its packets leave one by one.
    await expect.poll(() => device.counters().get("tx_super_frames")).toBeGreaterThan(before);
  });

  it.each([
    ["rkey", "RDMA WRITE with a wrong rkey, 64 bytes: remote access error"],
    ["read-rkey", "RDMA READ with a wrong rkey, 64 bytes: remote access error"],
    ["long", "SEND that is too long, 16385 bytes: remote invalid request error"],
    ["rnr", "SEND, 1000 bytes: success"],
  ])("Weir refuses Soft-RoCE: %s", async (test, expected) => {
    const before = device.counters();
    const { client, server } = await toWeir({}, test);
    expect(client).toContain(expected);
    const grown = (name: string) => (device.counters().get(name) ?? 0) - (before.get(name) ?? 0);
    if (test.endsWith("rkey")) await expect.poll(() => grown("resp_remote_access_errors")).toBe(1);
    if (test === "long") expect(server).toContain("loc_len_err");
    if (test === "rnr") await expect.poll(() => grown("out_of_buffer")).toBeGreaterThan(0);
  });

  it.each([
    ["rkey", "RDMA WRITE with a wrong rkey, 64 bytes: rem_access_err"],
    ["read-rkey", "RDMA READ with a wrong rkey, 64 bytes: rem_access_err"],
    // The standard wants an invalid request; Soft-RoCE says that the responder could not do it.
    ["long", "SEND that is too long, 16385 bytes: rem_op_err"],
    ["rnr", "SEND, 1000 bytes: success"],
  ])("Soft-RoCE refuses Weir: %s", async (test, expected) => {
    const { client } = await fromWeir({}, test);
    expect(client).toContain(expected);
  });

  // A real responder's answers to frames that test/live/bad_peers.test.ts sends to Weir.
  const hello = Buffer.from("hello");
  const kFull = Buffer.alloc(kDefaults.pathMtu);
  const one = (opcode: number, extension?: Buffer, payload?: Buffer): BadPacket[] => [
    { opcode, psn: 0, ...(extension && { extension }), ...(payload && { payload }) },
  ];
  const write = (psn: number, { address, key }: Victim, more: Partial<BadPacket> = {}) => ({
    ...{ opcode: kOpcode.writeOnly, psn, extension: reth(address, key, 5), payload: hello, ...more },
  });
  const nak = (syndrome: number) => [{ psn: 0, syndrome }];
  it.each<[string, number, (victim: Victim) => BadPacket[]]>([
    ["a wrong key", 0x62, (v) => [write(0, { ...v, key: v.key ^ 0x5500 })]],
    ["out of bounds", 0x62, (v) => [write(0, { ...v, address: v.address - 1n })]],
    ["READ with a wrong key", 0x62, (v) => one(kOpcode.readRequest, reth(v.address, 77, 8))],
    ["MIDDLE without FIRST", 0x61, () => one(kOpcode.writeMiddle, undefined, kFull)],
    ["LAST without FIRST", 0x61, () => one(kOpcode.writeLast, undefined, hello)],
    ["SEND MIDDLE without FIRST", 0x61, () => one(kOpcode.sendMiddle, undefined, kFull)],
    ["more than announced", 0x61, (v) => [write(0, v, { extension: reth(v.address, v.key, 3) })]],
    ["atomic that is not aligned", 0x61, (v) => one(kOpcode.fetchAdd, atomic(v.address + 4n, v.key, 1n))],
  ])("Soft-RoCE as a witness: %s is refused as Weir does it", async (_, syndrome, packets) => {
    expect(await witness.answers(packets, undefined)).toEqual(nak(syndrome));
  });

  const ack = (psn: number) => ({ psn, syndrome: kAck });
  it.each<[string, (victim: Victim) => BadPacket[], number, Heard[]]>([
    ["a sound WRITE", (v) => [write(0, v)], 1, [ack(0)]],
    ["ahead", (v) => [write(2, v), write(1, v), write(3, v)], 0, nak(0x60)],
    ["replayed", (v) => [write(0, v), write(1, v), write(0, v)], 2, [ack(0), ack(1), ack(1)]],
    ["a wrong ICRC", (v) => [write(0, v, { corrupt: true })], 0, []],
    ["transport version 1", (v) => [write(0, v, { transportVersion: 1 })], 0, []],
    ["the migration bit", (v) => [write(0, v, { migration: true })], 1, [ack(0)]],
    ["another partition", (v) => [write(0, v, { partitionKey: 0x8001 })], 0, []],
    ["a limited member of the partition", (v) => [write(0, v, { partitionKey: 0x7fff })], 1, [ack(0)]],
    ["another source", (v) => [write(0, v, { source: ipv4(99) })], 0, []],
    ["a response that nobody waits for", () => one(kOpcode.acknowledge, word(0x1f00_0000)), 0, []],
    // The standard wants an invalid request, as Weir has it.
    ["a reserved opcode", () => one(kOpcode.reserved, undefined, hello), 0, []],
  ])("Soft-RoCE as a witness: %s", async (_, packets, next, expected) => {
    expect(await witness.answers(packets, next)).toEqual(expected);
  });
});
