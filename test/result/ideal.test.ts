/** Ideal completion times by hand; against the native core in end_to_end.test.ts. */
import { describe, expect, it } from "vitest";
import { type IdealMessage, idealTime } from "../../src/result/ideal.js";
import type { Link } from "../../src/scenario/types.js";

const link = (rate: number, delay: number): Link => ({ from: "x", to: "y", rate, delay, mtu: 1500 });
const path = (...links: Link[]) => links.map((one, direction) => ({ link: one, direction }));
const message = (changes: Partial<IdealMessage> = {}): IdealMessage => ({
  bytes: 1024,
  message: 1e9,
  pathMtu: 1024,
  operation: "send",
  window: 2048,
  tagged: false,
  telemetry: false,
  rateCap: undefined,
  reliable: false,
  ...changes,
});
/** Bytes of link time: 58 of headers, 24 around the frame. */
const kFull = 1024 + 82;

describe("idealTime", () => {
  it("is serialisation and propagation of one packet on one link", () => {
    expect(idealTime(path(link(8e9, 1000)), message())).toBe(kFull + 1000);
    // 16 bytes more for a WRITE; payload in words of 4; frames of 60 bytes at least.
    expect(idealTime(path(link(8e9, 1000)), message({ operation: "write" }))).toBe(kFull + 16 + 1000);
    expect(idealTime(path(link(8e9, 0)), message({ bytes: 5 }))).toBe(8 + 82);
    expect(idealTime(path(link(8e9, 0)), message({ tagged: true }))).toBe(kFull + 4);
    expect(idealTime(path(link(8e9, 0)), message({ telemetry: true }))).toBe(kFull + 64);
    expect(idealTime(path(link(0, 700)), message())).toBe(700);
  });

  it("stores and forwards: all packets on the slowest link, one on each other", () => {
    const three = path(link(80e9, 100), link(8e9, 200), link(16e9, 300));
    const packets = 10;
    expect(idealTime(three, message({ bytes: packets * 1024 }))).toBe(
      Math.floor(kFull / 10) + packets * kFull + kFull / 2 + 600,
    );
  });

  it("is the same for a long message whether packets are followed or not", () => {
    const links = path(link(40e9, 1000), link(10e9, 1000), link(40e9, 1000));
    const packets = 10_000;
    const ideal = idealTime(links, message({ bytes: packets * 1024 }));
    expect(ideal).toBeCloseTo(packets * kFull * 0.8 + 2 * Math.floor(kFull * 0.2) + 3000, -1);
    // One more packet costs its time on the slowest link, no more.
    expect(idealTime(links, message({ bytes: (packets + 1) * 1024 })) - ideal).toBeCloseTo(kFull * 0.8, -1);
  });

  it("waits behind the packet before on a fast link, when the last one is short", () => {
    // The short packet catches up with the full one on the slow last link.
    const ideal = idealTime(path(link(80e9, 0), link(8e9, 0)), message({ bytes: 1025 }));
    expect(ideal).toBe(Math.floor(kFull / 10) + kFull + 4 + 82);
  });

  it("goes at the flow's own cap, but for the last packet", () => {
    const ideal = idealTime(path(link(8e9, 500)), message({ bytes: 5 * 1024, rateCap: 4e9 }));
    expect(ideal).toBe(4 * 2 * kFull + kFull + 500);
  });

  it("adds the acknowledgement's way back for reliable flows", () => {
    const links = path(link(8e9, 1000), link(4e9, 2000));
    const oneWay = idealTime(links, message());
    expect(idealTime(links, message({ reliable: true })) - oneWay).toBe(86 + 1000 + 172 + 2000);
  });

  it("cuts transfers into messages, each with a header of its own", () => {
    const links = path(link(8e9, 0));
    const whole = idealTime(links, message({ bytes: 4096, message: 4096, operation: "write" }));
    expect(idealTime(links, message({ bytes: 4096, message: 2048, operation: "write" })) - whole).toBe(16);
  });

  it("asks for a READ first, in parts of a quarter of the window, each of which has an extended header at either end", () => {
    const links = path(link(8e9, 1000), link(4e9, 2000));
    const request = 98 + 1000 + 196 + 2000;
    const read = message({ operation: "read", reliable: true });
    expect(idealTime(links, read)).toBe(request + kFull + 4 + 1000 + 2 * (kFull + 4) + 2000);
    const one = path(link(8e9, 0));
    const ofParts = (packets: number, window: number) =>
      idealTime(one, { ...read, bytes: packets * 1024, window }) - 98 - packets * kFull;
    expect(ofParts(3, 2048)).toBe(8);
    expect(ofParts(10, 16)).toBe(4 * 6);
    expect(ofParts(1000, 16)).toBe(4 * 500);
    expect(ofParts(1001, 400)).toBe(4 * 21);
    expect(ofParts(200, 4)).toBe(4 * 200);
  });
});
