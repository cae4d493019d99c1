/** LLDPDUs: the reader reads all that is built, and reads or refuses any bytes. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildDcb, type DcbTlvs, readDcb, type Selector, type Tsa } from "../../../src/wire/lldp/dcb_tlv.js";
import { buildLldpdu, chassisText, type Lldpdu, portText, readLldpdu } from "../../../src/wire/lldp/lldpdu.js";

const kChassis = { subtype: 4, id: Buffer.from("020000000001", "hex") };
const kPort = { subtype: 5, id: Buffer.from("eth0") };
const kPlain: Lldpdu = { chassis: kChassis, port: kPort, ttl: 121, managementAddresses: [], organization: [] };
/** Chassis 02:00:00:00:00:01, port eth0, 120 s. */
const kMandatory = "0207 04 020000000001 0405 05 65746830 0602 0078".replaceAll(" ", "");
const read = (hex: string) => readLldpdu(Buffer.from(hex.replaceAll(" ", ""), "hex"));

const text = fc.string({ maxLength: 60 }).filter((value) => Buffer.from(value).toString() === value);
const identifier = fc.record({
  subtype: fc.integer({ min: 0, max: 255 }),
  id: fc.uint8Array({ minLength: 1, maxLength: 255 }).map((bytes) => Buffer.from(bytes)),
});
const pdu: fc.Arbitrary<Lldpdu> = fc.record(
  {
    chassis: identifier,
    port: identifier,
    ttl: fc.integer({ min: 0, max: 65_535 }),
    portDescription: text,
    systemName: text,
    systemDescription: text,
    capabilities: fc.record({
      system: fc.integer({ min: 0, max: 65_535 }),
      enabled: fc.integer({ min: 0, max: 65_535 }),
    }),
    managementAddresses: fc.array(fc.ipV4(), { maxLength: 3 }),
    organization: fc.array(
      fc.record({
        oui: fc.integer({ min: 0, max: 0xff_ffff }),
        subtype: fc.integer({ min: 0, max: 255 }),
        information: fc.uint8Array({ maxLength: 507 }).map((bytes) => Buffer.from(bytes)),
      }),
      { maxLength: 4 },
    ),
  },
  { requiredKeys: ["chassis", "port", "ttl", "managementAddresses", "organization"] },
);

describe("an LLDPDU", () => {
  it("is read as it was built", () => {
    fc.assert(
      fc.property(pdu, (given) => {
        const reading = readLldpdu(buildLldpdu(given));
        expect(reading).toEqual({ pdu: given, tlvsDiscarded: 0, tlvsUnrecognized: 0, error: undefined });
      }),
    );
  });

  it("of any bytes is read or refused, with a reason", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const { pdu: got, error } = readLldpdu(Buffer.from(bytes));
        expect(got !== undefined || error !== undefined).toBe(true);
      }),
    );
  });

  it("that is damaged is read or refused, wherever it is", () => {
    const flips = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(pdu, flips, fc.nat(), (given, damage, end) => {
        const bytes = buildLldpdu(given);
        for (const [at, value] of damage) bytes[at % bytes.length] = value;
        const { pdu: got, error } = readLldpdu(bytes.subarray(0, end % (bytes.length + 1)));
        expect(got !== undefined || error !== undefined).toBe(true);
        if (got !== undefined) readDcb(got.organization);
      }),
    );
  });

  it.each([
    ["", "does not begin with a chassis ID"],
    ["0405056574683002070402000000000106020078", "does not begin with a chassis ID"],
    ["0201 04 0405 05 65746830 0602 0078", "does not begin with a chassis ID"],
    ["0207 04 020000000001 0602 0078", "has no port ID behind the chassis ID"],
    ["0207 04 020000000001 0405 05 65746830", "has no time to live behind the port ID"],
    ["0207 04 020000000001 0405 05 65746830 0601 78", "has no time to live behind the port ID"],
    [`${kMandatory} 0602 0078 0000`, "has a second TLV of type 3"],
    [`${kMandatory} 0405 05 65746831 0000`, "has a second TLV of type 2"],
  ])("%s is refused: %s", (hex, error) => {
    expect(read(hex)).toMatchObject({ pdu: undefined, error });
  });

  it.each([
    ["cut off in a TLV", `${kMandatory} 0a08 6162`, "its TLV of type 5 is cut off"],
    ["cut off in a header", `${kMandatory} 0a`, "its last TLV has no length"],
    ["whose end has a length", `${kMandatory} 0001 00`, "its end has a length"],
    [
      "with capabilities that are too short",
      `${kMandatory} 0e02 0004 0000`,
      "its TLV of type 7 is malformed, or there twice",
    ],
    [
      "with an address that is too long",
      `${kMandatory} 1006 21 01 0a000001 0000`,
      "its TLV of type 8 is malformed, or there twice",
    ],
    ["with two names", `${kMandatory} 0a01 61 0a01 62 0000`, "its TLV of type 5 is malformed, or there twice"],
    [
      "of an organization without a subtype",
      `${kMandatory} fe03 0080c2 0000`,
      "its TLV of type 127 is malformed, or there twice",
    ],
  ])("%s keeps what is whole", (_, hex, error) => {
    const reading = read(hex);
    expect(reading).toMatchObject({ tlvsDiscarded: 1, error, pdu: { ttl: 120 } });
  });

  it("ends where it says so, or with its bytes; reserved types are counted", () => {
    expect(read(`${kMandatory} 0000 ffffffff`)).toMatchObject({ pdu: kPlainOf(120), error: undefined });
    expect(read(kMandatory)).toMatchObject({ pdu: kPlainOf(120), error: undefined });
    expect(read(`${kMandatory} 1201 00 0000`)).toMatchObject({ tlvsUnrecognized: 1, tlvsDiscarded: 0 });
  });

  it("names chassis and ports as people do, and what cannot be shown by its bytes", () => {
    expect(chassisText(kChassis)).toBe("02:00:00:00:00:01");
    expect(portText(kPort)).toBe("eth0");
    expect(portText({ subtype: 3, id: kChassis.id })).toBe("02:00:00:00:00:01");
    expect(chassisText({ subtype: 5, id: Buffer.from([1, 10, 0, 0, 1]) })).toBe("10.0.0.1");
    expect(chassisText({ subtype: 5, id: Buffer.from([1, 10, 0]) })).toBe("01:0a:00");
    expect(portText({ subtype: 7, id: Buffer.from("a\u001b[2J") })).toBe("61:1b:5b:32:4a");
  });

  it("cuts texts between characters, and refuses identifiers that cannot be", () => {
    const { pdu: got } = readLldpdu(buildLldpdu({ ...kPlain, systemName: `${"a".repeat(254)}\u00e9` }));
    expect(got?.systemName).toBe("a".repeat(254));
    expect(() => buildLldpdu({ ...kPlain, port: { subtype: 7, id: Buffer.alloc(0) } })).toThrow(RangeError);
    expect(() => buildLldpdu({ ...kPlain, port: { subtype: 7, id: Buffer.alloc(256) } })).toThrow(RangeError);
  });
});

const kPlainOf = (ttl: number) => ({ ...kPlain, ttl });

const eight = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: 8, maxLength: 8 });
const priorities = fc.uniqueArray(fc.integer({ min: 0, max: 7 })).map((list) => list.sort((a, b) => a - b));
const ets = fc.record({
  prio_tc: eight(fc.integer({ min: 0, max: 7 })),
  bandwidth: fc.constantFrom<number[]>(
    [0, 0, 0, 0, 0, 0, 0, 100],
    [50, 0, 0, 50, 0, 0, 0, 0],
    [13, 13, 13, 13, 12, 12, 12, 12],
  ),
  tsa: eight(fc.constantFrom<Tsa>("strict", "cbs", "ets", "vendor")),
});
const dcb = fc.record(
  {
    ets: fc
      .tuple(ets, fc.record({ willing: fc.boolean(), cbs: fc.boolean(), max_tcs: fc.integer({ min: 1, max: 8 }) }))
      .map(([a, b]) => ({ ...a, ...b })),
    recommendation: ets,
    pfc: fc.record({
      willing: fc.boolean(),
      mbc: fc.boolean(),
      capability: fc.integer({ min: 0, max: 15 }),
      priorities,
    }),
    applications: fc.array(
      fc.record({
        priority: fc.integer({ min: 0, max: 7 }),
        selector: fc.constantFrom<Selector>("ethertype", "tcp", "udp", "port", "dscp"),
        protocol: fc.integer({ min: 0, max: 65_535 }),
      }),
      { maxLength: 40 },
    ),
    congestion: fc.record({ cnpvs: priorities, ready: priorities }),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<DcbTlvs>;

describe("TLVs of data center bridging", () => {
  it("are read as they were built", () => {
    fc.assert(
      fc.property(dcb, (given) => {
        expect(readDcb(buildDcb(given))).toEqual({ dcb: given, malformed: 0 });
      }),
    );
  });

  it("of any bytes are read or counted", () => {
    const tlv = fc.record({
      oui: fc.constant(0x0080c2),
      subtype: fc.integer({ min: 8, max: 12 }),
      information: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    });
    fc.assert(
      fc.property(fc.array(tlv, { maxLength: 6 }), (tlvs) => {
        const { dcb: got, malformed } = readDcb(tlvs);
        expect(Object.keys(got).length + malformed).toBe(tlvs.length);
      }),
    );
  });

  it.each([
    [11, "88", "PFC without its priorities"],
    [11, "880800", "PFC with a byte too many"],
    [9, "00 01234567 0000000000000000 02000000000000", "ETS that is cut off"],
    [9, "00 01234567 3200000000000000 0202000000000000", "ETS of half the bandwidth"],
    [9, "00 f1234567 6400000000000000 0200000000000000", "ETS of traffic class 15"],
    [12, "00 7300", "an application that is cut off"],
    [12, "", "no list of applications"],
    [8, "08", "CNPVs without their readiness"],
  ])("type %i %s is malformed: %s", (subtype, hex) => {
    const information = Buffer.from(hex.replaceAll(" ", ""), "hex");
    expect(readDcb([{ oui: 0x0080c2, subtype, information }])).toEqual({ dcb: {}, malformed: 1 });
  });

  it("has the bits of the standard", () => {
    const of = (tlvs: DcbTlvs) => buildDcb(tlvs).map(({ information }) => information.toString("hex"));
    expect(of({ pfc: { willing: true, mbc: false, capability: 8, priorities: [3, 4] } })).toEqual(["8818"]);
    expect(of({ applications: [{ priority: 3, selector: "udp", protocol: 4791 }] })).toEqual(["006312b7"]);
    expect(of({ congestion: { cnpvs: [0, 3], ready: [3] } })).toEqual(["0908"]);
    const shares = {
      prio_tc: [0, 1, 2, 3, 4, 5, 6, 7],
      bandwidth: [50, 0, 0, 50, 0, 0, 0, 0],
      tsa: ["ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets"] as Tsa[],
    };
    const bytes = "012345673200003200000000" + "0202020202020002";
    expect(of({ recommendation: shares })).toEqual([`00${bytes}`]);
    expect(of({ ets: { ...shares, willing: true, cbs: false, max_tcs: 8 } })).toEqual([`80${bytes}`]);
  });

  it("there twice count once; those of others are left alone", () => {
    const [first] = buildDcb({ congestion: { cnpvs: [1], ready: [] } });
    const tlvs = [first, first, { oui: 0x00120f, subtype: 11, information: Buffer.alloc(3) }].flatMap(
      (tlv) => tlv ?? [],
    );
    expect(readDcb(tlvs)).toEqual({ dcb: { congestion: { cnpvs: [1], ready: [] } }, malformed: 1 });
  });
});
