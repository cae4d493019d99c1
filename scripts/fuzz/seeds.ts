/** First inputs of the native fuzzers: frames of test/fixtures/pcaps, and decisions that are drawn from a seed. */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import { kBuildFolder } from "./targets.js";

const kCaptures = "test/fixtures/pcaps";
const kFileHeader = 24;
const kRecordHeader = 16;
/** Frames that are taken from each capture, evenly spread. */
const kFramesOfCapture = 16;
/** Bytes of a capture that is a seed itself. */
const kCaptureStart = 1500;
const kDrawn = 60;
const kLongestDrawn = 2048;
const kEthernet = 14;

/** Numbers of the actions of native/fuzz/switch_fuzz.cc and stream_fuzz.cc that take a frame word for word. */
const kSwitchFrame = 4;
const kStreamFrame = 5;
/** Bytes in front of the actions: shards and parameters; parameters alone. */
const kSwitchParameters = 1 + 64;
const kStreamParameters = 11;

/** Writes the seeds of a target into a folder of their own, and returns its path. */
export function writeSeeds(target: string, seed: number): string {
  const folder = join(kBuildFolder, "seeds", target);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const random = xoroshiro128plus(seed);
  const bytes = (count: number) => Buffer.from(Array.from({ length: count }, () => random.next() & 0xff));
  const put = (name: string, input: Uint8Array) => writeFileSync(join(folder, name), input);
  for (const file of target === "transport" ? [] : captures()) {
    const { name, start, frames } = file;
    if (target === "classify") put(`${name}-file`, start);
    for (const [i, frame] of frames.entries()) {
      if (target === "classify") put(`${name}-${i}`, frame);
      else if (target === "switch") {
        put(
          `${name}-${i}`,
          Buffer.concat([bytes(kSwitchParameters), head(kSwitchFrame, i, frame.length - kEthernet), frame]),
        );
      } else {
        put(`${name}-${i}`, Buffer.concat([bytes(kStreamParameters), head(kStreamFrame, i, frame.length), frame]));
      }
    }
  }
  for (let i = 0; i < kDrawn; i++) put(`drawn-${i}`, bytes(Math.round(kLongestDrawn ** ((i + 1) / kDrawn))));
  return folder;
}

/** Bytes of an action: its number, port or queue pair, and how many bytes follow. */
function head(action: number, which: number, length: number): Buffer {
  return Buffer.from([action, which & 0xff, length >> 8, length & 0xff]);
}

function captures(): { name: string; start: Buffer; frames: Buffer[] }[] {
  const names = readdirSync(kCaptures).filter((name) => name.endsWith(".pcap"));
  return names.sort().map((name) => {
    const file = readFileSync(join(kCaptures, name));
    const frames: Buffer[] = [];
    for (let at = kFileHeader; at < file.length; ) {
      const length = file.readUInt32LE(at + 8);
      at += kRecordHeader + length;
      frames.push(file.subarray(at - length, at));
    }
    const step = Math.ceil(frames.length / kFramesOfCapture);
    return { name, start: file.subarray(0, kCaptureStart), frames: frames.filter((_, i) => i % step === 0) };
  });
}
