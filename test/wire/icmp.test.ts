/** "Destination unreachable", over IPv4 and IPv6. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readUnreachable } from "../../src/wire/icmp.js";
import { readIp } from "../../src/wire/ip.js";
import { icmpPacket } from "./icmp_packet.js";

const kFamilies = [
  { family: "IPv4", ours: "10.0.0.1", theirs: "10.0.0.2", unreachable: 3, port: 3, host: 1 },
  { family: "IPv6", ours: "fd00::1", theirs: "fd00::2", unreachable: 1, port: 4, host: 3 },
];

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
  const seeds = kFamilies.map(({ ours, theirs, unreachable, port }) =>
    icmpPacket(theirs, ours, Buffer.concat([Buffer.from([unreachable, port, 0, 0, 0, 0, 0, 0]), Buffer.alloc(48)])),
  );
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
    }),
  );
});
