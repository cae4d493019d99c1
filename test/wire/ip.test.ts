/** Packets of IPv4 and IPv6, and the frames that carry them. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildEthernet } from "../../src/wire/ethernet.js";
import { kEtherType, kHopLimit } from "../../src/wire/headers.js";
import { buildIp, buildIpFrame, readIp, readIpFrame } from "../../src/wire/ip.js";

const kFamilies = [
  {
    family: "IPv4",
    source: "10.0.0.1",
    destination: "10.0.0.2",
    header: 20,
    ours: kEtherType.ipv4,
    other: kEtherType.ipv6,
  },
  {
    family: "IPv6",
    source: "fd00::1",
    destination: "fd00::2",
    header: 40,
    ours: kEtherType.ipv6,
    other: kEtherType.ipv4,
  },
];
const kPayload = Buffer.from("payload");

describe.each(kFamilies)("$family", ({ source, destination, header, ours, other }) => {
  const ends = { source, destination };

  it("is read as it was built", () => {
    const packet = buildIp({ ...ends, protocol: 58, tos: 0xa5, hopLimit: 255, identification: 7 }, kPayload);
    expect(readIp(packet)).toEqual({
      ...{ ...ends, version: header === 20 ? 4 : 6, header, total: header + 7, isSound: true },
      ...{ protocol: 58, tos: 0xa5, hopLimit: 255, payload: kPayload },
    });
    expect(readIp(buildIp({ ...ends, protocol: 17 }, kPayload))).toMatchObject({ tos: 0, hopLimit: kHopLimit });
  });

  it("is told from padding behind it, and what is missing from what is there", () => {
    const packet = buildIp({ ...ends, protocol: 17 }, kPayload);
    expect(readIp(Buffer.concat([packet, Buffer.alloc(20)]))).toMatchObject({ payload: kPayload, isSound: true });
    for (let length = 0; length < header; length++) expect(readIp(packet.subarray(0, length))).toBeUndefined();
    for (let length = header; length < packet.length; length++) {
      const payload = kPayload.subarray(0, length - header);
      expect(readIp(packet.subarray(0, length))).toMatchObject({ payload, isSound: false });
    }
  });

  it("is read in a frame of its EtherType alone", () => {
    const packet = buildIp({ ...ends, protocol: 17 }, kPayload);
    expect(buildIpFrame(1, 2, packet)).toEqual(buildEthernet(1, 2, ours, packet));
    expect(readIpFrame(buildIpFrame(1, 2, packet))).toMatchObject({ destinationMac: 1, sourceMac: 2, ...ends });
    expect(readIpFrame(buildEthernet(1, 2, other, packet))).toBeUndefined();
  });

  it("has addresses of one family", () => {
    const stranger = source.includes(":") ? "10.0.0.1" : "fd00::1";
    expect(() => buildIp({ source, destination: stranger, protocol: 17 }, kPayload)).toThrow("two families");
  });
});

it("IPv4 has options, may be cut up if that is asked for, and a fragment is none", () => {
  const fields = { source: "10.0.0.1", destination: "10.0.0.2", protocol: 2 };
  const packet = buildIp({ ...fields, mayFragment: true, options: Buffer.from("94040000", "hex") }, kPayload);
  expect(packet.subarray(0, 10).toString("hex")).toBe("4600001f000000004002");
  expect(readIp(packet)).toMatchObject({ header: 24, total: 31, payload: kPayload, isSound: true });
  expect(buildIp(fields, kPayload).readUInt16BE(6)).toBe(0x4000);
  for (const [at, value] of [
    [6, 0x20],
    [7, 1],
  ] as const) {
    expect(readIp(Buffer.from(packet).fill(value, at, at + 1))).toBeUndefined();
  }
  expect(readIp(Buffer.from(packet).fill(63, 8, 9))?.isSound).toBe(false);
});

it("bears any frame", () => {
  const types = fc.constantFrom(kEtherType.ipv4, kEtherType.ipv6);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 120 }), types, (bytes, type) => {
      readIp(Buffer.from(bytes));
      readIpFrame(Buffer.from(bytes));
      readIpFrame(buildEthernet(1, 2, type, bytes));
    }),
    { numRuns: 2000 },
  );
});
