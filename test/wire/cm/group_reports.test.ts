import fc from "fast-check";
import { expect, it } from "vitest";
import { internetChecksum } from "../../../src/wire/checksum.js";
import { GroupReports } from "../../../src/wire/cm/group_reports.js";
import { buildEthernet } from "../../../src/wire/ethernet.js";
import { kEtherType } from "../../../src/wire/headers.js";
import { FakeClock, FakeLink } from "./fakes.js";

const kMac = 0x02_00_00_00_00_01;

function make() {
  const clock = new FakeClock();
  const link = new FakeLink(kMac);
  const groups = new GroupReports({ link, addresses: ["fd00::1", "10.0.0.1"], clock, random: () => 0.5 });
  /** Returns the frames that were sent since the last look. */
  const sent = () => link.sent.splice(0);
  return { clock, link, groups, sent };
}

/** A query of IGMP, to all. @param code Tenths of a second. */
function query(code: number, group: readonly number[] = [0, 0, 0, 0]): Buffer {
  const frame = buildEthernet(0x01_00_5e_00_00_01, 0x02_00_00_00_00_09, kEtherType.ipv4, Buffer.alloc(28));
  const ip = frame.subarray(14);
  ip.set([0x45, 0, 0, 28], 0);
  ip.set([1, 2], 8);
  ip.set([0x11, code, 0, 0, ...group], 20);
  return frame;
}

/** A query of MLD, to all. @param ms Longest time that it waits. */
function query6(ms: number): Buffer {
  const frame = buildEthernet(0x3333_0000_0001, 0x02_00_00_00_00_09, kEtherType.ipv6, Buffer.alloc(72));
  const ip = frame.subarray(14);
  ip.set([0x60, 0, 0, 0, 0, 32, 0, 1], 0);
  ip.set([58, 0, 5, 2, 0, 0, 1, 0, 130, 0, 0, 0, ms >> 8, ms & 0xff], 40);
  return frame;
}

it("reports a group of IPv4 when it is joined, again, and that it is left by the last", async () => {
  const { clock, groups, sent } = make();
  const leave = groups.join("239.129.2.3");
  const other = groups.join("239.129.2.3");
  const [report] = sent();
  expect(report?.subarray(0, 14).toString("hex")).toBe("01005e0102030200000000010800");
  const ip = report?.subarray(14, 46) as Buffer;
  expect(ip.subarray(0, 10).toString("hex")).toBe("46c00020000000000102");
  expect(ip.subarray(12, 24).toString("hex")).toBe("0a000001ef81020394040000");
  expect(ip.subarray(24, 26).toString("hex")).toBe("1600");
  expect([internetChecksum(ip.subarray(0, 24)), internetChecksum(ip.subarray(24))]).toEqual([0, 0]);
  await clock.run(1000);
  expect(sent()).toEqual([report]);
  await clock.run(600_000);
  expect(sent()).toEqual(Array(10).fill(report));
  leave?.();
  leave?.();
  expect(sent()).toEqual([]);
  other?.();
  const [left] = sent();
  expect(left?.subarray(0, 6).toString("hex")).toBe("01005e000002");
  expect(left?.subarray(14 + 16, 14 + 20).toString("hex")).toBe("e0000002");
  expect(left?.readUInt8(14 + 24)).toBe(0x17);
  expect(left?.subarray(14 + 28, 14 + 32).toString("hex")).toBe("ef810203");
  await clock.run(600_000);
  expect(sent()).toEqual([]);
  expect(clock.pending).toBe(0);
});

it("reports a group of IPv6 from its link-local address", () => {
  const { groups, sent } = make();
  const leave = groups.join("ff0e::4242");
  const [report] = sent();
  const ip = report?.subarray(14) as Buffer;
  expect(report?.subarray(0, 14).toString("hex")).toBe("33330000424202000000000186dd");
  expect(ip.subarray(0, 8).toString("hex")).toBe("6000000000200001");
  expect(ip.subarray(8, 24).toString("hex")).toBe("fe80000000000000000000fffe000001");
  expect(ip.subarray(40, 50).toString("hex")).toBe("3a000502000001008300");
  const pseudo = Buffer.concat([ip.subarray(8, 40), Buffer.from([0, 0, 0, 24, 0, 0, 0, 58])]);
  expect(internetChecksum(pseudo, ip.subarray(48, 72))).toBe(0);
  leave?.();
  expect(sent()[0]?.readUInt8(14 + 48)).toBe(132);
});

it("reports what it has to who asks, in time, and only that", async () => {
  const { clock, link, groups, sent } = make();
  for (const group of ["239.1.2.3", "239.1.2.4", "ff0e::4242"]) groups.join(group);
  await clock.run(2000);
  sent();
  const asked = async (frame: Buffer, ms: number) => {
    link.receive(frame);
    link.receive(frame); // It comes while the answer waits.
    await clock.run(ms / 2 - 1);
    expect(sent()).toEqual([]);
    await clock.run(1);
    return sent().map((report) => report.subarray(0, 6).toString("hex"));
  };
  expect(await asked(query(20), 2000)).toEqual(["01005e010203", "01005e010204"]);
  expect(await asked(query(10, [239, 1, 2, 4]), 1000)).toEqual(["01005e010204"]);
  expect(await asked(query(10, [239, 1, 2, 5]), 1000)).toEqual([]);
  expect(await asked(query(0), 10_000)).toEqual(["01005e010203", "01005e010204"]);
  expect(await asked(query6(500), 500)).toEqual(["333300004242"]);
  // A frame that is cut short, or no query, is ignored.
  for (const whole of [query(1), query6(1)]) {
    for (let length = 0; length < whole.length; length++) {
      // Ethernet pads what follows.
      if (length < 42 || length > 60) link.receive(whole.subarray(0, length));
    }
    for (let at = 12; at < 14; at++) link.receive(Buffer.from(whole).fill(0xff, at, at + 1));
  }
  link.receive(Buffer.from(query(1)).fill(0x16, 34, 35));
  await clock.run(100);
  expect(sent()).toEqual([]);
});

it("bears any frame", () => {
  const { link, groups } = make();
  groups.join("239.1.2.3");
  const noise = fc.uint8Array({ minLength: 14, maxLength: 120 });
  fc.assert(
    fc.property(noise, fc.constantFrom(query(1), query6(1)), fc.nat(40), (bytes, real, kept) => {
      // Like a query up to somewhere.
      real.copy(bytes, 0, 0, 14 + kept);
      link.receive(Buffer.from(bytes));
    }),
    { numRuns: 2000 },
  );
});

it("is silent of groups that everybody is in, and of more than there is room for", () => {
  const { groups, sent } = make();
  for (const group of ["224.0.0.1", "ff02::1", "ff01::99"]) expect(groups.join(group)).toBeDefined();
  expect(sent()).toEqual([]);
  for (let i = 3; i < 4096; i++) expect(groups.join(`239.0.${i >> 8}.${i & 255}`)).toBeDefined();
  expect(groups.join("239.9.9.9")).toBeUndefined();
  expect(groups.join("224.0.0.1")).toBeDefined();
  sent();
  groups.close();
  expect(sent()).toHaveLength(4093);
});
