/** Echo and "destination unreachable", over IPv4 and IPv6. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { internetChecksum } from "../../src/wire/checksum.js";
import { echoReply, readUnreachable } from "../../src/wire/icmp.js";
import { readIp } from "../../src/wire/ip.js";
import { icmpPacket } from "./icmp_packet.js";

const kFamilies = [
  { family: "IPv4", ours: "10.0.0.1", theirs: "10.0.0.2", request: 8, reply: 0, unreachable: 3, port: 3, host: 1 },
  { family: "IPv6", ours: "fd00::1", theirs: "fd00::2", request: 128, reply: 129, unreachable: 1, port: 4, host: 3 },
];

const ping = (type: number, bytes = 56) =>
  Buffer.concat([Buffer.from([type, 0, 0, 0, 0x12, 0x34, 0, 7]), Buffer.alloc(bytes, 0xab)]);

describe.each(kFamilies)("echo, $family", ({ ours, theirs, request, reply }) => {
  it.each([0, 1, 56, 1400])("answers %d bytes as they came, to who sent them", (bytes) => {
    const answer = echoReply(icmpPacket(theirs, ours, ping(request, bytes), { tos: 0x28 }), ours) as Buffer;
    // The same packet, built by somebody else; but for the flag against fragments and the time to live.
    const expected = icmpPacket(ours, theirs, ping(reply, bytes), { tos: 0x28 });
    if (!ours.includes(":")) {
      expected.writeUInt16BE(0x4000, 6);
      expected[8] = 64;
      expected.writeUInt16BE(0, 10);
      expected.writeUInt16BE(internetChecksum(expected.subarray(0, 20)), 10);
    }
    expect(answer.toString("hex")).toBe(expected.toString("hex"));
  });

  it("takes Ethernet's padding for what it is", () => {
    const asked = icmpPacket(theirs, ours, ping(request, 1));
    const answer = echoReply(Buffer.concat([asked, Buffer.alloc(40, 0xee)]), ours) as Buffer;
    expect(answer.length).toBe(asked.length);
  });

  it("leaves alone what is no request, not for us, not whole, changed, or from where no single host is", () => {
    const good = icmpPacket(theirs, ours, ping(request));
    expect(echoReply(good, ours)).toBeDefined();
    expect(echoReply(good, theirs)).toBeUndefined();
    expect(echoReply(icmpPacket(theirs, ours, ping(reply)), ours)).toBeUndefined();
    for (let length = 0; length < good.length; length++) {
      expect(echoReply(good.subarray(0, length), ours)).toBeUndefined();
    }
    const changed = Buffer.from(good);
    changed[changed.length - 1] = (changed.at(-1) as number) ^ 1;
    expect(echoReply(changed, ours)).toBeUndefined();
    const nobody = ours.includes(":")
      ? ["::", "::1", "ff02::1"]
      : ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"];
    for (const from of nobody) expect(echoReply(icmpPacket(from, ours, ping(request)), ours)).toBeUndefined();
  });
});

it("echo over IPv4 is answered without the options of the request, and not for a fragment", () => {
  const answer = echoReply(icmpPacket("10.0.0.2", "10.0.0.1", ping(8), { options: 8 }), "10.0.0.1");
  expect(answer?.length).toBe(20 + 8 + 56);
  const fragment = icmpPacket("10.0.0.2", "10.0.0.1", ping(8));
  fragment.writeUInt16BE(0x2000, 6);
  fragment.writeUInt16BE(0, 10);
  fragment.writeUInt16BE(internetChecksum(fragment.subarray(0, 20)), 10);
  expect(echoReply(fragment, "10.0.0.1")).toBeUndefined();
});

describe.each(kFamilies)("unreachable, $family", ({ ours, theirs, unreachable, port, host }) => {
  /** The start of a UDP packet. */
  const quoted = (protocol = 17) => {
    const packet = icmpPacket(ours, theirs, Buffer.alloc(280), { tos: 0x6b });
    const header = ours.includes(":") ? 40 : 20;
    packet[ours.includes(":") ? 6 : 9] = protocol;
    packet.writeUInt16BE(55_410, header);
    packet.writeUInt16BE(4791, header + 2);
    return packet.subarray(0, header + 8);
  };
  const refusal = (code: number, quote = quoted()) =>
    icmpPacket(theirs, ours, Buffer.concat([Buffer.from([unreachable, code, 0, 0, 0, 0, 0, 0]), quote]));

  it("tells who refused which packet, and whether the host is there", () => {
    expect(readUnreachable(refusal(port))).toEqual({
      source: theirs,
      code: port,
      isPort: true,
      quoted: { source: ours, destination: theirs, tos: 0x6b, sourcePort: 55_410, destinationPort: 4791 },
    });
    expect(readUnreachable(refusal(host))).toMatchObject({ code: host, isPort: false });
  });

  it("is not what quotes something else, or too little", () => {
    expect(readUnreachable(refusal(port, quoted(6)))).toBeUndefined();
    expect(readUnreachable(refusal(port, quoted().subarray(0, -5)))).toBeUndefined();
    expect(readUnreachable(quoted())).toBeUndefined();
  });
});

it("hostile packets are read or refused, never thrown at", () => {
  const seeds = kFamilies.flatMap(({ ours, theirs, request }) => [icmpPacket(theirs, ours, ping(request))]);
  const mutated = fc
    .tuple(fc.constantFrom(...seeds), fc.nat(120), fc.array(fc.tuple(fc.nat(90), fc.nat(255)), { maxLength: 6 }))
    .map(([seed, length, changes]) => {
      const packet = Buffer.from(seed);
      for (const [at, value] of changes) packet[at] = value;
      return packet.subarray(0, length);
    });
  const any = fc.uint8Array({ maxLength: 120 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(fc.oneof(mutated, any), (packet) => {
      readIp(packet);
      readUnreachable(packet);
      for (const { ours } of kFamilies) echoReply(packet, ours);
    }),
  );
});
