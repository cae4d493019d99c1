/** Frames of connection management on Ethernet. */
import { expect, it } from "vitest";
import { kEtherType, newFrame, taggedFrame } from "../../../src/wire/cm/link.js";

it("pads frames to what Ethernet carries at least", () => {
  expect(newFrame(0x0102_0304_0506, 0x0708_090a_0b0c, kEtherType.arp, 28).toString("hex")).toBe(
    `0102030405060708090a0b0c0806${"00".repeat(46)}`,
  );
  expect(newFrame(1, 2, kEtherType.ipv6, 100)).toHaveLength(114);
});

it("tags a frame between its addresses and its type, and leaves the frame as it is", () => {
  const frame = newFrame(1, 2, kEtherType.ipv4, 46).fill(0xaa, 14);
  const before = frame.toString("hex");
  const tagged = taggedFrame(frame, 0xabc).toString("hex");
  expect(tagged).toBe(`${before.slice(0, 24)}81000abc${before.slice(24)}`);
  expect(frame.toString("hex")).toBe(before);
});
