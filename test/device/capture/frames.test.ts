/** Frames of the native core, and the formats that they are written in. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { Frames, kFrameKinds, kRefusals } from "../../../src/device/capture/frames.js";
import { PacketBlocks } from "../../../src/device/capture/packet_blocks.js";
import { PcapRecords, pcapHeader } from "../../../src/device/capture/pcap.js";
import { lacking } from "../../needs.js";
import { itUnless } from "../../obstacles.js";
import { packetBlock } from "./blocks.js";
import { type FrameFields, frameRecord, framesOf } from "./frames.js";

const root = new URL("../../../", import.meta.url);
/** The names of an enumeration in a header, without its count. */
function names(file: string, enumeration: string): string[] {
  const [, body = ""] =
    new RegExp(`enum class ${enumeration} : uint8_t \\{(.*?)\\};`, "s").exec(
      readFileSync(new URL(file, root), "utf8"),
    ) ?? [];
  return [...body.replace(/\/\/.*/g, "").matchAll(/\w+/g)].map(([name]) => name).filter((name) => name !== "kCount");
}

/** All parts. */
function whole(next: () => Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let part = next(); part.length > 0; part = next()) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

const frame = fc.record({
  bytes: fc.uint8Array({ maxLength: 400 }),
  tap: fc.nat({ max: 3 }),
  time: fc.bigInt({ min: 0n, max: 2n ** 62n }),
  direction: fc.nat({ max: 2 }),
  more: fc.nat({ max: 1000 }),
});

describe("frames of the native core", () => {
  it("have kinds and refusals as the core numbers them", () => {
    expect(names("native/wire/packet.h", "FrameKind")).toEqual(kFrameKinds);
    expect(names("native/wire/classify.h", "Refusal")).toEqual(kRefusals);
  });

  it("are read wherever their chunk lies", () => {
    const chunk = Buffer.concat([Buffer.alloc(1), frameRecord({ bytes: Buffer.from("abc"), tap: 2, ecn: 3 })]);
    const odd = new Uint8Array(chunk.buffer, chunk.byteOffset + 1, chunk.length - 1);
    const frames = new Frames(odd, 3);
    expect(frames.read()).toBe(true);
    expect([frames.tap, frames.ecn, Buffer.from(frames.frame()).toString()]).toEqual([2, 3, "abc"]);
    expect(frames.read()).toBe(false);
  });

  it("are refused where they are no frames", () => {
    const chunk = frameRecord({ bytes: Buffer.alloc(70), tap: 1 });
    expect(() => new Frames(chunk.subarray(0, 20), 2)).toThrow("at byte 0 of 20: it is cut short");
    expect(() => new Frames(chunk.subarray(0, 100), 2)).toThrow("at byte 0 of 100: it is cut short");
    expect(() => new Frames(Buffer.concat([chunk, chunk.subarray(0, 30)]), 2)).toThrow("at byte 104 of 134");
    expect(() => new Frames(chunk, 1)).toThrow("tap 1 of 1");
  });

  it("of any form become packet blocks, in as many parts as there is room for", () => {
    fc.assert(
      fc.property(fc.array(frame), (list) => {
        const fields = list.map(({ more, ...own }) => ({ ...own, original: own.bytes.length + more }));
        const interfaces = [0, undefined, 1, 2].map((number) =>
          number === undefined ? undefined : { number, rate: 0, meant: false },
        );
        const blocks = new PacketBlocks(interfaces);
        const frames = framesOf(...fields, { bytes: Buffer.alloc(0), tap: 3 });
        const out = Buffer.alloc(1500);
        const written = whole(() => out.subarray(0, blocks.encode(frames, out)));
        const expected = [...fields, { bytes: Buffer.alloc(0), tap: 3, time: 0n, original: 0, direction: 0 }]
          .filter(({ tap }) => tap !== 1)
          .map(({ tap, direction, ...own }) =>
            packetBlock({ ...own, interface: tap && tap - 1, ...(direction > 0 && { direction }) }),
          );
        expect(written.equals(Buffer.concat(expected))).toBe(true);
      }),
    );
  });

  it("have comments of their own, and the same where they say the same", () => {
    const pause = Buffer.from(`${"00".repeat(12)}880800010000${"00".repeat(42)}`, "hex");
    const said: [FrameFields, string][] = [
      [{ bytes: Buffer.alloc(70), kind: "roce", ecn: 3, direction: 1 }, "CE: congestion experienced"],
      [{ bytes: Buffer.alloc(71), kind: "roce", ecn: 2, direction: 1 }, "ECT(0)"],
      [{ bytes: Buffer.alloc(72), kind: "roce", ecn: 3, direction: 1 }, "CE: congestion experienced"],
      [
        { bytes: Buffer.alloc(72), kind: "cnp", ecn: 0, destinationQp: 17, direction: 1 },
        "CNP for QP 0x11 (reaction point cuts)",
      ],
      [
        { bytes: Buffer.alloc(72), kind: "cnp", ecn: 0, destinationQp: 18, direction: 1 },
        "CNP for QP 0x12 (reaction point cuts)",
      ],
      [{ bytes: pause, kind: "pause", direction: 1 }, "PAUSE: the link may send"],
      [{ bytes: Buffer.alloc(300), refusal: "truncated_ip", direction: 1 }, "not understood: truncated_ip"],
    ];
    const out = Buffer.alloc(1 << 16);
    const blocks = new PacketBlocks([{ number: 0, rate: 0, meant: false }]);
    const bytes = blocks.encode(framesOf(...said.map(([fields]) => fields)), out);
    const expected = said.map(([fields, comment]) =>
      packetBlock({ interface: 0, time: 0n, bytes: fields.bytes, direction: 1, comment }),
    );
    expect(out.subarray(0, bytes).equals(Buffer.concat(expected))).toBe(true);
  });

  it("become records of pcap, with all digits of their times", () => {
    fc.assert(
      fc.property(fc.array(frame), (list) => {
        const fields = list.map((own) => ({ ...own, time: own.time % 4_294_967_296_000_000_000n, tap: 0 }));
        const frames = framesOf(...fields);
        const records = new PcapRecords();
        const out = Buffer.alloc(500);
        const written = whole(() => out.subarray(0, records.encode(frames, out)));
        const expected = fields.map(({ time, bytes }) => {
          const head = Buffer.alloc(16);
          head.writeUInt32LE(Number(time / 1_000_000_000n), 0);
          head.writeUInt32LE(Number(time % 1_000_000_000n), 4);
          head.writeUInt32LE(bytes.length, 8);
          head.writeUInt32LE(bytes.length, 12);
          return Buffer.concat([head, bytes]);
        });
        expect(written.equals(Buffer.concat(expected))).toBe(true);
      }),
    );
  });

  itUnless(lacking("tshark"), "in pcap are what tshark reads", () => {
    const folder = mkdtempSync(join(tmpdir(), "weir-pcap-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "a.pcap");
    const out = Buffer.alloc(4096);
    const fields = { bytes: Buffer.alloc(60, 1), original: 1500 };
    const bytes = new PcapRecords().encode(
      framesOf({ ...fields, time: 1_700_000_000_123_456_789n }, { ...fields, time: 5n }),
      out,
    );
    writeFileSync(file, Buffer.concat([pcapHeader(262_144), out.subarray(0, bytes)]));
    const select = ["frame.time_epoch", "frame.cap_len", "frame.len"].flatMap((field) => ["-e", field]);
    const { stdout, stderr } = spawnSync("tshark", ["-r", file, "-T", "fields", ...select], { encoding: "utf8" });
    expect(stdout, stderr).toBe("1700000000.123456789\t60\t1500\n0.000000005\t60\t1500\n");
  });
});
