/** pcapng files of a simulation, as programs read them that know nothing of Weir: Wireshark's tshark and capinfos, and scapy. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WeirError } from "../../../src/base/error.js";
import { openTrace } from "../../../src/clocks/sim/trace.js";
import { buildProbe } from "../../../src/probe/roce_frame.js";
import { frameRecord } from "../../device/capture/frames.js";
import { lacking } from "../../needs.js";
import { itUnless } from "../../obstacles.js";
import { packets } from "../../probe/captures.js";

/** The system's own Python: scapy comes as a package of the distribution. */

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "weir-trace-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

interface Frame {
  tap: number;
  /** ns. */
  time: number;
  captured: Buffer;
  /** Length on the wire. */
  original: number;
}

/** Frames as NativeSimulation.drainTrace() hands them over. */
function chunkOf(frames: readonly Frame[]): Buffer {
  return Buffer.concat(
    frames.map(({ tap, time, captured, original }) =>
      frameRecord({ tap, time: BigInt(time), bytes: captured, original }),
    ),
  );
}

function overwrite(chunk: Buffer, at: number, value: Uint32Array): Buffer {
  chunk.set(Buffer.from(value.buffer), at);
  return chunk;
}

const kMacs = Buffer.from("0200000000020200000000010800", "hex");
/** A data packet with 1,024 bytes behind its headers, of which the trace has none. */
function data(psn: number): Pick<Frame, "captured" | "original"> {
  const ip = buildProbe({
    source: "10.87.0.1",
    destination: "10.87.0.2",
    sourcePort: 0xc123,
    identification: 1,
    dscp: 26,
    ecn: psn % 2 === 0 ? "ect0" : "ce",
    qpn: 0x11,
    psn,
  });
  ip.writeUInt16BE(ip.length + 1024, 2);
  ip.writeUInt16BE(ip.length + 1024 - 20, 24);
  return { captured: Buffer.concat([kMacs, ip.subarray(0, -4)]), original: kMacs.length + ip.length + 1024 };
}

/** A PFC frame that stops priority 3, IEEE 802.1Qbb. */
const kPause = Buffer.alloc(60);
kPause.write("0180c2000001020000000001880801010008000000000000ffff", "hex");

const kFrames: readonly Frame[] = [
  { tap: 0, time: 1, ...data(0) },
  { tap: 1, time: 1_107, ...data(1) },
  { tap: 0, time: 999_999_999, captured: kPause, original: 60 },
  // Past 2^32 ns, where the time needs both halves of the timestamp.
  { tap: 1, time: 7_123_456_789, ...data(2) },
];
const kTaps = [{ name: "h1 -> sw" }, { name: "sw -> h2, µ" }];

function traced(name: string, chunks: readonly Uint8Array[], taps: Parameters<typeof openTrace>[1] = kTaps): string {
  const file = join(directory, name);
  const trace = openTrace(file, taps);
  for (const chunk of chunks) trace.write(chunk);
  trace.close();
  return file;
}

describe("openTrace", () => {
  itUnless(lacking("tshark"), "writes what tshark dissects", () => {
    const file = traced("tshark.pcapng", [chunkOf(kFrames.slice(0, 2)), new Uint8Array(), chunkOf(kFrames.slice(2))]);
    const fields = [
      ...["frame.time_epoch", "frame.interface_name", "frame.cap_len", "frame.len", "ip.dsfield.ecn"],
      ...["infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "macc.cbfc.pause_time.c3"],
    ];
    const args = ["-r", file, "-T", "fields", ...fields.flatMap((field) => ["-e", field])];
    const { stdout, status } = spawnSync("tshark", args, { encoding: "utf8" });
    expect(status).toBe(0);
    expect(
      stdout
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => line.split("\t")),
    ).toEqual([
      ["0.000000001", "h1 -> sw", "70", "1098", "2", "10", "0x000011", "0", ""],
      ["0.000001107", "sw -> h2, µ", "70", "1098", "3", "10", "0x000011", "1", ""],
      ["0.999999999", "h1 -> sw", "60", "60", "", "", "", "", "65535"],
      ["7.123456789", "sw -> h2, µ", "70", "1098", "2", "10", "0x000011", "2", ""],
    ]);
  });

  itUnless(lacking("tshark"), "tells capinfos its application and nothing of this machine", () => {
    const { stdout } = spawnSync("capinfos", [traced("capinfos.pcapng", [chunkOf(kFrames)])], { encoding: "utf8" });
    expect(stdout).toMatch(/File type: +Wireshark\/\.\.\. - pcapng/);
    expect(stdout).toMatch(/File timestamp precision: +nanoseconds \(9\)/);
    expect(stdout).toMatch(/Capture application: +weir\n/);
    expect(stdout).not.toMatch(/Capture (hardware|oper-sys)/);
    expect(stdout).toMatch(/Number of packets: +4\n/);
    expect(stdout).toMatch(/Data size: +3354 bytes/);
  });

  itUnless(lacking("python3-scapy"), "writes what scapy reads, captures of others included", () => {
    const others = packets("ib_write_bw").map((ip, i): Frame => {
      const frame = Buffer.concat([kMacs, ip]);
      return { tap: 0, time: i * 1000, captured: frame.subarray(0, 54 + (i % 9)), original: frame.length };
    });
    expect(others.length).toBeGreaterThan(10);
    const file = traced("scapy.pcapng", [chunkOf(others)]);
    const program = `
import json, sys
from scapy.utils import RawPcapNgReader
reader = RawPcapNgReader(sys.argv[1])
print(json.dumps([[(m.tshigh << 32) | m.tslow, m.tsresol, m.wirelen, data.hex()] for data, m in reader]))`;
    const { stdout, stderr } = spawnSync("python3", ["-c", program, file], { encoding: "utf8", maxBuffer: 1 << 28 });
    expect(JSON.parse(stdout || JSON.stringify(stderr))).toEqual(
      others.map(({ time, captured, original }) => [time, 1e9, original, captured.toString("hex")]),
    );
  });

  it("has the same bytes however the frames are cut into chunks", () => {
    const whole = readFileSync(traced("whole.pcapng", [chunkOf(kFrames)]));
    const parts = readFileSync(
      traced(
        "parts.pcapng",
        kFrames.map((frame) => chunkOf([frame])),
      ),
    );
    expect(parts.equals(whole)).toBe(true);
    // Section header, interfaces with names of 8 and 12 bytes, packets of 70 bytes padded to 4, and the pause.
    expect(whole.length).toBe(40 + (36 + 8) + (36 + 12) + 3 * (32 + 72) + (32 + 60));
  });

  it("leaves out frames of taps that belong to another file, and numbers its own from 0", () => {
    const second = readFileSync(traced("second.pcapng", [chunkOf(kFrames)], [undefined, { name: "b" }]));
    const alone = kFrames.filter(({ tap }) => tap === 1).map((frame) => ({ ...frame, tap: 0 }));
    expect(second.equals(readFileSync(traced("alone.pcapng", [chunkOf(alone)], [{ name: "b" }])))).toBe(true);
  });

  it.each<[string, (chunk: Buffer) => Buffer, RegExp]>([
    ["a cut header", (chunk) => chunk.subarray(0, 20), /at byte 0 of 20: it is cut short/],
    ["a cut frame", (chunk) => chunk.subarray(0, 90), /at byte 0 of 90: it is cut short/],
    ["a second frame that is cut", (chunk) => Buffer.concat([chunk, chunk.subarray(0, 30)]), /at byte 104 of 134/],
    ["an unknown tap", (chunk) => overwrite(chunk, 8, Uint32Array.of(2)), /tap 2 of 2/],
    [
      "more captured than there is",
      (chunk) => overwrite(chunk, 12, Uint32Array.of(73)),
      /at byte 0 of 104: it is cut short/,
    ],
  ])("throws on %s and writes nothing of the chunk", (name, spoil, message) => {
    const file = join(directory, `${name}.pcapng`);
    const trace = openTrace(file, kTaps);
    const before = readFileSync(file);
    expect(() => trace.write(spoil(chunkOf(kFrames.slice(0, 1))))).toThrow(message);
    trace.close();
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("says which file cannot be written", () => {
    const file = join(directory, "missing", "a.pcapng");
    expect(() => openTrace(file, kTaps)).toThrow(WeirError);
    expect(() => openTrace(file, kTaps)).toThrow(file);
  });

  it("closes once and takes nothing afterwards", () => {
    const trace = openTrace(join(directory, "closed.pcapng"), kTaps);
    trace.close();
    trace.close();
    expect(() => trace.write(chunkOf(kFrames))).toThrow("closed");
  });
});
