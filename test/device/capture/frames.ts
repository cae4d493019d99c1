/** Captured frames as the native core hands them over (native/wire/captured_frame.h). */
import { type Frames, Frames as FramesOf, kFrameKinds, kRefusals } from "../../../src/device/capture/frames.js";

export interface FrameFields {
  tap?: number;
  /** ns since the epoch. */
  time?: bigint;
  bytes: Uint8Array;
  /** Bytes on the wire, if not all are here. */
  original?: number;
  destinationQp?: number;
  kind?: (typeof kFrameKinds)[number];
  refusal?: (typeof kRefusals)[number];
  /** Makes it an IP packet. */
  ecn?: number;
  needsChecksum?: boolean;
  /** 1 in, 2 out. */
  direction?: number;
  segmentSize?: number;
}

export function frameRecord(fields: FrameFields): Buffer {
  const { bytes, ecn } = fields;
  const record = Buffer.alloc(32 + Math.ceil(bytes.length / 8) * 8);
  record.writeBigInt64LE(fields.time ?? 0n, 0);
  record.writeUInt32LE(fields.tap ?? 0, 8);
  record.writeUInt32LE(bytes.length, 12);
  record.writeUInt32LE(fields.original ?? bytes.length, 16);
  record.writeUInt32LE(fields.destinationQp ?? 0, 20);
  record.writeUInt8(kFrameKinds.indexOf(fields.kind ?? "other"), 24);
  record.writeUInt8(kRefusals.indexOf(fields.refusal ?? "none"), 25);
  record.writeUInt8(ecn ?? 0, 26);
  record.writeUInt8(ecn === undefined ? 0 : 1, 27);
  record.writeUInt8(fields.needsChecksum ? 1 : 0, 28);
  record.writeUInt8(fields.direction ?? 0, 29);
  record.writeUInt16LE(fields.segmentSize ?? 0, 30);
  record.set(bytes, 32);
  return record;
}

/** Returns frames of which none is read yet. */
export function framesOf(...frames: FrameFields[]): Frames {
  return new FramesOf(Buffer.concat(frames.map(frameRecord)), Math.max(0, ...frames.map(({ tap = 0 }) => tap)) + 1);
}
