import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { icrc } from "../../../src/wire/checksum.js";
import { buildMadFrame, readMadFrame } from "../../../src/wire/cm/frame.js";
import { capturedFrames, capturedMads } from "./fakes.js";

const kCaptures: [name: string, mads: number][] = [
  ["rping", 5],
  ["rping6", 5],
  ["ucmatose", 10],
  ["cm_reject", 2],
];

describe("MAD frames", () => {
  it.each(kCaptures)("of Linux in %s are read, and built alike to the last byte", (name, mads) => {
    const frames = capturedMads(name);
    expect(frames).toHaveLength(mads);
    for (const frame of frames) {
      const read = readMadFrame(frame);
      expect(read).toBeDefined();
      if (read !== undefined) expect(buildMadFrame(read, frame.readUInt16BE(18))).toEqual(frame);
    }
  });

  it("are those to queue pair 1 only", () => {
    expect(capturedFrames("ops_ud").concat(capturedFrames("ops_rc6")).map(readMadFrame)).not.toContainEqual(
      expect.anything(),
    );
  });

  it("with a wrong byte anywhere that matters are refused", () => {
    for (const [name, ip] of [
      ["rping", [1, 8]],
      ["rping6", [1, 2, 3, 7]],
    ] as const) {
      const frame = capturedMads(name)[0] as Buffer;
      const header = name === "rping" ? 20 : 40;
      const accepted: number[] = [];
      for (let at = 12; at < frame.length; at++) {
        const changed = Buffer.from(frame);
        changed[at] = (changed[at] as number) ^ 0x01;
        if (readMadFrame(changed) !== undefined) accepted.push(at - 14);
      }
      // Type of service and time to live are under IPv4's header checksum; no checksum covers the UDP checksum and the BECN byte.
      const open = [header + 6, header + 7, header + 12];
      expect(accepted).toEqual(name === "rping" ? open : [0, ...ip, ...open]);
    }
  });

  it("may have Ethernet's padding, and no byte less than all", () => {
    const frame = capturedMads("rping6")[0] as Buffer;
    expect(readMadFrame(Buffer.concat([frame, Buffer.alloc(7)]))).toEqual(readMadFrame(frame));
    for (let length = 0; length < frame.length; length++)
      expect(readMadFrame(frame.subarray(0, length))).toBeUndefined();
  });

  it("of other queue keys, queue pairs, partitions and opcodes are refused though their ICRC is right", () => {
    for (const [at, value] of [
      [0, 0x65],
      [1, 0x10],
      [3, 0xfe],
      [7, 0x02],
      [12, 0x81],
      [19, 0x02],
    ] as const) {
      const frame = Buffer.from(capturedMads("rping")[0] as Buffer);
      frame[14 + 28 + at] = value;
      frame.writeUInt32LE(icrc(frame.subarray(14)), frame.length - 4);
      expect(readMadFrame(frame)).toBeUndefined();
    }
  });

  it("are never a reason to fail", () => {
    const [v4, v6] = [capturedMads("rping")[0] as Buffer, capturedMads("rping6")[0] as Buffer];
    const mutated = fc
      .tuple(fc.constantFrom(v4, v6), fc.nat(360), fc.array(fc.tuple(fc.nat(100), fc.nat(255)), { maxLength: 8 }))
      .map(([frame, length, changes]) => {
        const copy = Buffer.from(frame);
        for (const [at, value] of changes) copy[at] = value;
        return copy.subarray(0, length);
      });
    const noise = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes));
    fc.assert(fc.property(fc.oneof(mutated, noise), (frame) => void readMadFrame(frame)));
  });
});
