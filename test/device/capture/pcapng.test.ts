/** pcapng files as programs read them that know nothing of Weir, and what is refused of a stream of blocks. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  blockAt,
  interfaceDescription,
  interfaceOf,
  interfaceStatistics,
  kBlock,
  sectionHeader,
} from "../../../src/device/capture/pcapng.js";
import { lacking } from "../../needs.js";
import { itUnless } from "../../obstacles.js";
import { packetBlock } from "./blocks.js";

/** The system's own Python: scapy comes as a package of the distribution. */

function saved(bytes: Buffer): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-pcapng-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "a.pcapng");
  writeFileSync(file, bytes);
  return file;
}

const kFile = Buffer.concat([
  sectionHeader({ application: "weir 1.2", hardware: "x64, µCPU", os: "Linux 6" }),
  interfaceDescription({ name: "sw0:a", description: "port a", speed: 40e9, snapLength: 128 }),
  interfaceDescription({ name: "sw0:b" }),
  packetBlock({ interface: 0, time: 1_700_000_000_123_456_789n, bytes: Buffer.alloc(60, 1), direction: 1 }),
  packetBlock({
    interface: 1,
    time: 1_700_000_001_000_000_000n,
    bytes: Buffer.alloc(61, 2),
    original: 1500,
    direction: 2,
    comment: "CE: congestion experienced",
  }),
  interfaceStatistics(0, { from: 1n, to: 1_700_000_002_000_000_000n, seen: 12, wanted: 9, dropped: 8, written: 1 }),
]);

describe("blocks", () => {
  itUnless(lacking("tshark"), "are read by tshark: interfaces, directions, comments, lengths, times", () => {
    const fields = ["frame.interface_name", "frame.interface_description", "frame.packet_flags_direction"];
    const more = ["frame.comment", "frame.cap_len", "frame.len", "frame.time_epoch"];
    const select = [...fields, ...more].flatMap((field) => ["-e", field]);
    const { stdout, stderr, status } = spawnSync("tshark", ["-r", saved(kFile), "-T", "fields", ...select], {
      encoding: "utf8",
    });
    expect(status, stderr).toBe(0);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.split("\t")),
    ).toEqual([
      ["sw0:a", "port a", "0x00000001", "", "60", "60", "1700000000.123456789"],
      ["sw0:b", "", "0x00000002", "CE: congestion experienced", "61", "1500", "1700000001.000000000"],
    ]);
  });

  itUnless(lacking("tshark"), "tell capinfos the machine, the program and each interface", () => {
    const { stdout } = spawnSync("capinfos", [saved(kFile)], { encoding: "utf8" });
    for (const line of [
      /Capture hardware: +x64, µCPU\n/,
      /Capture oper-sys: +Linux 6\n/,
      /Capture application: +weir 1\.2\n/,
      /Name = sw0:a\n +Description = port a\n +Encapsulation = Ethernet .*\n +Speed = 40000000000\n +Capture length = 128\n/,
      /Time resolution = 0x09\n +Number of stat entries = 1\n/,
    ]) {
      expect(stdout).toMatch(line);
    }
  });

  itUnless(lacking("python3-scapy"), "are read by scapy, which walks them by their lengths", () => {
    const script = `from scapy.utils import RawPcapNgReader
for data, meta in RawPcapNgReader("${saved(kFile)}"):
    print(len(data), meta.wirelen, (meta.tshigh << 32) + meta.tslow, meta.tsresol)`;
    const { stdout, stderr } = spawnSync("python3", ["-c", script], { encoding: "utf8" });
    expect(stdout, stderr).toBe("60 60 1700000000123456789 1000000000\n61 1500 1700000001000000000 1000000000\n");
  });

  it("of statistics have what RFC drafts number 2 to 8", () => {
    const block = interfaceStatistics(3, {
      from: 2n ** 40n,
      to: 2n ** 40n + 5n,
      seen: 4,
      wanted: 3,
      dropped: 2,
      written: 1,
    });
    expect(block.readUInt32LE(0)).toBe(kBlock.statistics);
    expect([block.readUInt32LE(8), block.readUInt32LE(12), block.readUInt32LE(16)]).toEqual([3, 256, 5]);
    const options: Record<number, bigint> = {};
    for (let at = 20; block.readUInt16LE(at) !== 0; at += 12) {
      expect(block.readUInt16LE(at + 2)).toBe(8);
      options[block.readUInt16LE(at)] = block.readBigUInt64LE(at + 4);
    }
    expect(options).toEqual({ 2: 256n, 3: 256n + (5n << 32n), 4: 4n, 6: 3n, 7: 2n, 8: 1n });
  });

  it("have lengths of whole words at both ends, whatever is in them", () => {
    fc.assert(
      fc.property(
        fc.record({ name: fc.string(), description: fc.string({ unit: "binary" }), speed: fc.nat() }),
        fc.array(fc.record({ bytes: fc.uint8Array({ maxLength: 300 }), comment: fc.stringMatching(/^[ -~]{0,99}$/) })),
        (own, packets) => {
          const file = Buffer.concat([
            sectionHeader({ application: own.name, os: own.description }),
            interfaceDescription(own),
            ...packets.map(({ bytes, comment }) =>
              packetBlock({ interface: 0, time: 1n, bytes, comment, direction: 1 }),
            ),
          ]);
          const types: number[] = [];
          for (let at = 0; at < file.length; ) {
            const block = blockAt(file, at);
            expect(block).toBeDefined();
            types.push(block?.type ?? 0);
            at = block?.end ?? file.length;
          }
          expect(types).toEqual([kBlock.section, kBlock.interface, ...packets.map(() => kBlock.packet)]);
        },
      ),
    );
  });
});

describe("a block of a stream", () => {
  const packet = packetBlock({ interface: 1, time: 5n, bytes: Buffer.alloc(10) });
  const spoilt = (at: number, value: number) => {
    const block = Buffer.from(packet);
    block.writeUInt32LE(value, at);
    return block;
  };

  it("is waited for while it is not all there", () => {
    for (let length = 0; length < packet.length; length++) {
      expect(blockAt(packet.subarray(0, length), 0)).toBeUndefined();
    }
    expect(blockAt(packet, 0)).toEqual({ type: kBlock.packet, end: packet.length });
  });

  it.each([
    ["a length that is none", spoilt(4, 8), "length 8"],
    ["a length of parts of words", spoilt(4, 43), "length 43"],
    ["a length beyond all frames", spoilt(4, 2 ** 24), "length 16777216"],
    ["two lengths", spoilt(packet.length - 4, 48), "it ends with another length than 44"],
  ])("is refused for %s", (_what, block, message) => {
    expect(() => blockAt(block, 0)).toThrow(message);
  });

  it.each([
    ["another type", spoilt(0, 5), "type 5 is no packet"],
    ["an unknown interface", spoilt(8, 2), "interface 2 of 2"],
    ["more captured than there is", spoilt(20, 13), "13 captured bytes are not all there"],
  ])("is refused for %s", (_what, block, message) => {
    expect(() => interfaceOf(block, 0, { type: block.readUInt32LE(0), end: block.length }, 2)).toThrow(message);
  });
});
