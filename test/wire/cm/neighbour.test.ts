import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import { internetChecksum } from "../../../src/wire/checksum.js";
import { arpReply, readArp } from "../../../src/wire/cm/arp.js";
import { neighbourAdvertisement, readNeighbourMessage } from "../../../src/wire/cm/ndp.js";
import { Neighbours } from "../../../src/wire/cm/neighbour.js";
import { FakeClock, FakeLink, join } from "./fakes.js";

const kOurs = 0x0200_0000_0001;
const kTheirs = 0x0200_0000_0002;
const kFamilies = [
  { family: "IPv4", ours: "10.9.0.1", theirs: "10.9.0.2", other: "10.9.0.3" },
  { family: "IPv6", ours: "fd99::1", theirs: "fd99::2", other: "fd99::3" },
];

const closing: Neighbours[] = [];
afterEach(() => {
  for (const each of closing.splice(0)) each.close();
});

function setUp(address: string, answers = false, route?: (address: string) => string) {
  const clock = new FakeClock();
  const link = new FakeLink(kOurs);
  const neighbours = new Neighbours({ link, address, answers, clock, ...(route !== undefined && { route }) });
  closing.push(neighbours);
  return { clock, link, neighbours };
}

/** Answer to a request of a neighbour with the address. */
const reply = (frame: Buffer, address: string, mac: number) =>
  address.includes(":") ? neighbourAdvertisement(frame, address, mac) : arpReply(frame, address, mac);

describe.each(kFamilies)("Neighbours, $family", ({ ours, theirs, other }) => {
  it("finds who answers, asks once for all who want to know, and remembers", async () => {
    const { clock, link, neighbours } = setUp(ours);
    const both = Promise.all([neighbours.resolve(theirs), neighbours.resolve(theirs)]);
    expect(link.sent).toHaveLength(1);
    link.receive(reply(link.take()[0] as Buffer, theirs, kTheirs) as Buffer);
    expect(await both).toEqual([kTheirs, kTheirs]);
    expect(await neighbours.resolve(theirs)).toBe(kTheirs);
    expect(link.sent).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it("asks anew when what it knows is old", async () => {
    const { clock, link, neighbours } = setUp(ours);
    const first = neighbours.resolve(theirs);
    const answer = reply(link.take()[0] as Buffer, theirs, kTheirs) as Buffer;
    link.receive(answer);
    await first;
    await clock.run(45_000);
    const second = neighbours.resolve(theirs);
    expect(link.take()).toHaveLength(1);
    link.receive(answer);
    expect(await second).toBe(kTheirs);
  });

  it("asks three times, a second apart, and then says what is wrong; later it tries again", async () => {
    const { clock, link, neighbours } = setUp(ours);
    const failure = neighbours.resolve(theirs).catch((error: unknown) => error);
    await clock.run(2999);
    expect(link.take()).toHaveLength(3);
    await clock.run(1);
    const error = await failure;
    expect(error).toBeInstanceOf(WeirError);
    expect((error as WeirError).message).toContain(`${theirs} does not answer`);
    expect((error as WeirError).hint).toContain("same link");
    expect(link.take()).toEqual([]);
    void neighbours.resolve(theirs).catch(() => {});
    expect(link.take()).toHaveLength(1);
  });

  it("finds the second time when the first request is lost", async () => {
    const { clock, link, neighbours } = setUp(ours);
    const found = neighbours.resolve(theirs);
    link.take();
    await clock.run(1000);
    link.receive(reply(link.take()[0] as Buffer, theirs, kTheirs) as Buffer);
    expect(await found).toBe(kTheirs);
    expect(clock.pending).toBe(0);
  });

  it("asks for the next hop", async () => {
    const { link, neighbours } = setUp(ours, false, () => other);
    const found = neighbours.resolve(theirs);
    link.receive(reply(link.take()[0] as Buffer, other, kTheirs) as Buffer);
    expect(await found).toBe(kTheirs);
  });

  it("knows itself, and refuses names and the other family", async () => {
    const { neighbours } = setUp(ours);
    expect(await neighbours.resolve(ours)).toBe(kOurs);
    await expect(neighbours.resolve("peer")).rejects.toThrow("peer is not an IP address");
    await expect(neighbours.resolve(ours.includes(":") ? "10.0.0.1" : "fd00::1")).rejects.toThrow("cannot be reached");
  });

  it("fails what is asked when it is closed", async () => {
    const { clock, link, neighbours } = setUp(ours);
    const found = neighbours.resolve(theirs);
    neighbours.close();
    await expect(found).rejects.toThrow("was closed");
    expect(clock.pending).toBe(0);
    link.receive(reply(link.take()[0] as Buffer, theirs, kTheirs) as Buffer);
  });

  it("answers for its address only if it is told to, and learns from who asks", async () => {
    for (const answers of [false, true]) {
      const us = setUp(ours, answers);
      const peer = { link: new FakeLink(kTheirs) };
      const asking = new Neighbours({ link: peer.link, address: theirs, answers: true, clock: us.clock });
      closing.push(asking);
      join(us.clock, us.link, peer.link);
      const found = asking.resolve(ours).catch(() => undefined);
      const foreign = asking.resolve(other).catch(() => undefined);
      await us.clock.run(5000);
      expect([await found, await foreign]).toEqual([answers ? kOurs : undefined, undefined]);
      us.link.take();
      expect(await us.neighbours.resolve(theirs)).toBe(kTheirs);
      expect(us.link.take()).toEqual([]);
    }
  });

  it("does not learn what it has not asked for", () => {
    const { link, neighbours } = setUp(ours);
    void neighbours.resolve(theirs).catch(() => {});
    const question = link.take()[0] as Buffer;
    // The same answer, about an address that nobody looks for.
    const spoofed = Buffer.from(reply(question, theirs, 0x0200_0000_0066) as Buffer);
    const at = ours.includes(":") ? 14 + 40 + 23 : 31;
    spoofed[at] = 3;
    if (ours.includes(":")) fixChecksum(spoofed);
    link.receive(spoofed);
    void neighbours.resolve(other).catch(() => {});
    expect(link.take()).toHaveLength(1);
  });

  it("does not believe in groups as neighbours", async () => {
    const { clock, link, neighbours } = setUp(ours);
    const found = neighbours.resolve(theirs).catch(() => undefined);
    const question = link.take()[0] as Buffer;
    for (const mac of [0, 0xffff_ffff_ffff, 0x3333_0000_0001]) link.receive(reply(question, theirs, mac) as Buffer);
    await clock.run(5000);
    expect(await found).toBeUndefined();
  });
});

describe("requests", () => {
  it("of ARP are byte for byte those of RFC 826", () => {
    const { link, neighbours } = setUp("10.9.0.1");
    void neighbours.resolve("10.9.0.2").catch(() => {});
    expect(link.sent[0]?.toString("hex")).toBe(
      `${"ffffffffffff020000000001080600010800060400010200000000010a090001"}${"0000000000000a090002"}${"00".repeat(18)}`,
    );
  });

  /** Solicitations as Linux sends them: 64 bytes of IPv6 and ICMPv6; the checksum is computed apart. */
  it("of neighbour discovery are byte for byte those of RFC 4861", () => {
    const { link, neighbours } = setUp("fd99::1");
    void neighbours.resolve("fd99::ab12:3456").catch(() => {});
    const frame = link.sent[0] as Buffer;
    expect(frame.toString("hex")).toBe(
      [
        "3333ff123456020000000001" + "86dd",
        "6000000000203aff" + "fd990000000000000000000000000001" + "ff0200000000000000000001ff123456",
        `8700689800000000` + "fd9900000000000000000000ab123456" + "0101020000000001",
      ].join(""),
    );
    expect(checksumOf(frame)).toBe(0);
  });
});

/** Checksum with the pseudo header; 0 if right. */
function checksumOf(frame: Buffer): number {
  return internetChecksum(frame.subarray(22, 54), Buffer.from([0, 0, 0, 32, 0, 0, 0, 58]), frame.subarray(54, 86));
}

function fixChecksum(frame: Buffer): void {
  frame.writeUInt16BE(0, 56);
  frame.writeUInt16BE(checksumOf(frame), 56);
}

describe("neighbour discovery", () => {
  const solicitation = () => {
    const { link, neighbours } = setUp("fd99::2");
    void neighbours.resolve("fd99::1").catch(() => {});
    return link.take()[0] as Buffer;
  };

  it("answers with solicited and override flags, and our address", () => {
    const answer = neighbourAdvertisement(solicitation(), "fd99::1", kTheirs) as Buffer;
    expect(answer.subarray(0, 14).toString("hex")).toBe("02000000000102000000000286dd");
    expect(answer.subarray(22, 54).toString("hex")).toBe(`fd99${"0".repeat(27)}1fd99${"0".repeat(27)}2`);
    expect(answer.subarray(58, 62).toString("hex")).toBe("60000000");
    expect(readNeighbourMessage(answer)).toEqual({
      kind: "advertisement",
      source: "fd99::1",
      sourceMac: kTheirs,
      target: "fd99::1",
      mac: kTheirs,
      solicited: true,
      override: true,
    });
  });

  it("answers who looks whether the address is taken, to all", () => {
    const probe = solicitation().subarray(0, 78);
    probe.fill(0, 22, 38); // It is from nobody, without an option.
    probe.writeUInt16BE(24, 18);
    probe.writeUInt16BE(0, 56);
    const sum = internetChecksum(probe.subarray(22, 54), Buffer.from([0, 0, 0, 24, 0, 0, 0, 58]), probe.subarray(54));
    probe.writeUInt16BE(sum, 56);
    const answer = neighbourAdvertisement(probe, "fd99::1", kOurs) as Buffer;
    expect(answer.subarray(0, 6).toString("hex")).toBe("333300000001");
    expect(answer.subarray(38, 54).toString("hex")).toBe("ff020000000000000000000000000001");
    expect(answer.readUInt8(58)).toBe(0x20);
  });

  it("has hop limit 255, a right checksum, and options of some length", () => {
    expect(readNeighbourMessage(solicitation())).toBeDefined();
    const breaks: [string, (frame: Buffer) => void][] = [
      ["hop limit 254", (frame) => frame.writeUInt8(254, 21)],
      ["checksum", (frame) => frame.writeUInt8(frame.readUInt8(57) ^ 1, 57)],
      ["code", (frame) => frame.writeUInt8(1, 55)],
      ["option of no length", (frame) => frame.writeUInt8(0, 79)],
      ["option cut off", (frame) => frame.writeUInt8(2, 79)],
      ["target a group", (frame) => frame.writeUInt8(0xff, 62)],
      ["nobody names its address", (frame) => frame.fill(0, 22, 38)],
      ["next header", (frame) => frame.writeUInt8(17, 20)],
    ];
    for (const [what, change] of breaks) {
      const frame = solicitation();
      change(frame);
      if (what !== "checksum") fixChecksum(frame);
      expect([what, readNeighbourMessage(frame)]).toEqual([what, undefined]);
    }
    const whole = solicitation();
    for (let length = 0; length < whole.length; length++) {
      expect(readNeighbourMessage(whole.subarray(0, length))).toBeUndefined();
    }
  });

  it("is never a reason to fail, nor is ARP", () => {
    const { link } = setUp("fd99::1", true);
    const arp = setUp("10.9.0.1", true);
    const whole = solicitation();
    fc.assert(
      fc.property(fc.nat(120), fc.array(fc.tuple(fc.nat(86), fc.nat(255)), { maxLength: 6 }), (length, changes) => {
        const frame = Buffer.from(whole);
        for (const [at, value] of changes) if (at < frame.length) frame[at] = value;
        if (frame.length === 86) fixChecksum(frame);
        for (const each of [link, arp.link]) each.receive(frame.subarray(0, length));
        readArp(frame.subarray(0, length));
      }),
    );
  });
});
