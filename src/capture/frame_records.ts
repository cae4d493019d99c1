/**
 * Frames as the native core hands them over, one record after another, little endian (native/base/frame_record.h):
 *   0 tap u32    4 captured bytes u32    8 original bytes u32    12 bytes of comment u16    14 direction u8    15 reserved
 *   16 time in ns u64    24 the captured bytes, the comment in ASCII, zeros up to a multiple of 8
 * Between them in a stream, with a tap of its own, what has become of all frames so far, in JSON.
 */

import { z } from "zod";
import type { CaptureCounts } from "../native/types.js";

const kHeader = 24;
/** No captured frame is longer (native/io/pcap_file.h). */
const kLongestFrame = 262_144;
const kLongestComment = 1024;

export const kDirections = ["unknown", "inbound", "outbound"] as const;

export interface FrameRecord {
  tap: number;
  original: number;
  direction: number;
  /** ns, as two halves: more than a number holds. */
  time: { high: number; low: number };
  captured: Buffer;
  comment: Buffer;
  /** Where the next one begins. */
  next: number;
}

/**
 * The record at `at`; undefined if it is not all there.
 * @throws Error when it is malformed.
 */
export function recordAt(chunk: Buffer, at: number): FrameRecord | undefined {
  if (at + kHeader > chunk.length) return undefined;
  const length = chunk.readUInt32LE(at + 4);
  const original = chunk.readUInt32LE(at + 8);
  const comment = chunk.readUInt16LE(at + 12);
  const direction = chunk.readUInt8(at + 14);
  const malformed = (why: string) => new Error(`malformed frame at byte ${at} of ${chunk.length}: ${why}`);
  if (length > original || length > kLongestFrame)
    throw malformed(`${length} bytes captured of a frame of ${original}`);
  if (comment > kLongestComment) throw malformed(`a comment of ${comment} bytes`);
  if (direction >= kDirections.length) throw malformed(`direction ${direction}`);
  const first = at + kHeader;
  const end = first + length + comment;
  const next = Math.ceil(end / 8) * 8;
  if (next > chunk.length) return undefined;
  return {
    tap: chunk.readUInt32LE(at),
    original,
    direction,
    time: { high: chunk.readUInt32LE(at + 20), low: chunk.readUInt32LE(at + 16) },
    captured: chunk.subarray(first, first + length),
    comment: chunk.subarray(first + length, end),
    next,
  };
}

/** Of a record that is no frame. */
export const kCountsTap = 0xffff_ffff;

export interface StreamCounts {
  ports: CaptureCounts[];
  /** No more frames follow. */
  last: boolean;
}

export function countsRecord(counts: StreamCounts): Buffer {
  const text = Buffer.from(JSON.stringify(counts));
  const record = Buffer.alloc(Math.ceil((kHeader + text.length) / 8) * 8);
  record.writeUInt32LE(kCountsTap, 0);
  record.writeUInt32LE(text.length, 4);
  record.writeUInt32LE(text.length, 8);
  record.set(text, kHeader);
  return record;
}

const count = z.int().min(0);
const countsSchema = z.object({
  ports: z.array(z.object({ seen: count, captured: count, dropped: count })),
  last: z.boolean(),
});

/** @throws Error when it is malformed, or not of so many ports. */
export function countsOf({ captured }: FrameRecord, ports: number): StreamCounts {
  const counts = countsSchema.parse(JSON.parse(captured.toString()));
  if (counts.ports.length !== ports) throw new Error(`malformed counts: of ${counts.ports.length} ports of ${ports}`);
  return counts;
}
