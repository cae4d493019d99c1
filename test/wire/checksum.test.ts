import { describe, expect, it } from "vitest";
import { icrc, internetChecksum } from "../../src/wire/checksum.js";
import { capturedFrames } from "./cm/fakes.js";

describe("icrc", () => {
  it.each(["ops_rc", "ops_rc6", "ops_ud", "ops_ud6", "rping", "rping6"])(
    "agrees with Linux on every frame of %s",
    (name) => {
      const frames = capturedFrames(name);
      expect(frames.length).toBeGreaterThan(0);
      for (const frame of frames) {
        const packet = frame.subarray(14);
        expect(icrc(packet)).toBe(packet.readUInt32LE(packet.length - 4));
      }
    },
  );

  it("covers all but what routers change", () => {
    for (const [name, mutable] of [
      ["ops_ud", [1, 8, 10, 11, 26, 27, 32]],
      ["ops_ud6", [1, 2, 3, 7, 46, 47, 52]],
    ] as const) {
      const packet = (capturedFrames(name)[0] as Buffer).subarray(14);
      const unseen = [...packet.subarray(0, -4).keys()].filter((at) => {
        const changed = Buffer.from(packet);
        changed[at] = (changed[at] as number) ^ 0x08;
        return icrc(changed) === icrc(packet);
      });
      // The low half of an IPv6 packet's first byte is traffic class, too.
      expect(unseen).toEqual(name === "ops_ud6" ? [0, ...mutable] : mutable);
    }
  });
});

describe("internetChecksum", () => {
  it("is that of RFC 1071's example", () => {
    const data = Buffer.from("0001f203f4f5f6f7", "hex");
    expect(internetChecksum(data)).toBe(~0xddf2 & 0xffff);
    expect(internetChecksum(data.subarray(0, 4), data.subarray(4))).toBe(~0xddf2 & 0xffff);
  });

  it("takes a last odd byte as if a zero followed", () => {
    expect(internetChecksum(Buffer.from([0x12]))).toBe(~0x1200 & 0xffff);
  });
});
