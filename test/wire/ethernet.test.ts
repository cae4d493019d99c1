/** Ethernet frames, with and without a tag. */
import { expect, it } from "vitest";
import { buildEthernet, readEthernet, taggedFrame, untaggedFrame } from "../../src/wire/ethernet.js";
import { kEtherType } from "../../src/wire/headers.js";

it("pads frames to what Ethernet carries at least", () => {
  expect(buildEthernet(0x0102_0304_0506, 0x0708_090a_0b0c, kEtherType.arp, Buffer.alloc(28)).toString("hex")).toBe(
    `0102030405060708090a0b0c0806${"00".repeat(46)}`,
  );
  expect(buildEthernet(1, 2, kEtherType.ipv6, Buffer.alloc(100))).toHaveLength(114);
});

it("tags a frame between its addresses and its type, and leaves the frame as it is", () => {
  const frame = buildEthernet(1, 2, kEtherType.ipv4, Buffer.alloc(46, 0xaa));
  const before = frame.toString("hex");
  const tagged = taggedFrame(frame, 0xabc).toString("hex");
  expect(tagged).toBe(`${before.slice(0, 24)}81000abc${before.slice(24)}`);
  expect(frame.toString("hex")).toBe(before);
  expect(untaggedFrame(taggedFrame(frame, 0xabc))).toEqual(frame);
});

it("reads a frame that has a whole header", () => {
  const frame = buildEthernet(1, 2, kEtherType.lldp, Buffer.alloc(50, 0xaa));
  const payload = Buffer.alloc(50, 0xaa);
  expect(readEthernet(frame)).toEqual({ destination: 1, source: 2, etherType: kEtherType.lldp, payload });
  expect(readEthernet(frame.subarray(0, 14))?.payload).toHaveLength(0);
  for (let length = 0; length < 14; length++) expect(readEthernet(frame.subarray(0, length))).toBeUndefined();
});
