/** Frames of a simulation as a pcapng file, nanoseconds resolution. Source: draft-ietf-opsawg-pcapng, sections 4.1 to 4.3. */
import { closeSync, openSync, writeFileSync } from "node:fs";
import { WeirError } from "../config/error.js";

/** A place where frames are taken: one interface of the file. */
export interface TraceTap {
  name: string;
}

export interface Trace {
  /**
   * Adds the frames of one `NativeSimulation.drainTrace()`.
   * @throws Error when the chunk is malformed; nothing of it has then been written.
   */
  write(chunk: Uint8Array): void;
  /** Idempotent. */
  close(): void;
}

const kSectionHeader = 0x0a0d0d0a;
const kInterfaceDescription = 1;
const kEnhancedPacket = 6;
const kByteOrderMagic = 0x1a2b3c4d;
const kLinktypeEthernet = 1;
const kUserApplication = 4;
const kInterfaceName = 2;
const kInterfaceResolution = 9;
/** More than all headers of any frame; no captured length is beyond it. */
const kSnapLength = 65_535;
/** Bytes of an enhanced packet block without the packet. */
const kPacketBlock = 32;
/** Bytes in front of the captured ones in a chunk. */
const kRecordHeader = 24;

/**
 * Creates the file, or empties it. `taps` are all taps of the simulation in order; frames of an undefined one belong to
 * another file and are left out. The bytes depend on nothing but names and frames.
 * @throws WeirError when the file cannot be written.
 */
export function openTrace(file: string, taps: readonly (TraceTap | undefined)[]): Trace {
  let descriptor: number | undefined = open(file);
  let next = 0;
  const interfaces = taps.map((tap) => (tap === undefined ? undefined : next++));
  const described = taps.filter((tap) => tap !== undefined).map(interfaceDescription);
  writeFileSync(descriptor, Buffer.concat([sectionHeader(), ...described]));
  return {
    write(chunk) {
      if (descriptor === undefined) throw new Error(`${file}: the trace is closed`);
      writeFileSync(descriptor, packetBlocks(chunk, interfaces));
    },
    close() {
      if (descriptor !== undefined) closeSync(descriptor);
      descriptor = undefined;
    },
  };
}

function open(file: string): number {
  try {
    return openSync(file, "w");
  } catch (cause) {
    const hint = "a trace needs a folder that exists and may be written to";
    throw new WeirError(`${file}: ${(cause as Error).message}`, { field: "trace", hint, cause });
  }
}

function sectionHeader(): Buffer {
  const body = Buffer.alloc(16);
  body.writeUInt32LE(kByteOrderMagic, 0);
  body.writeUInt16LE(1, 4); // version 1.0
  body.fill(0xff, 8, 16); // length of the section: not said
  return block(kSectionHeader, [body, option(kUserApplication, Buffer.from("weir")), option(0)]);
}

function interfaceDescription({ name }: TraceTap): Buffer {
  const body = Buffer.alloc(8);
  body.writeUInt16LE(kLinktypeEthernet, 0);
  body.writeUInt32LE(kSnapLength, 4);
  const options = [
    option(kInterfaceName, Buffer.from(name)),
    option(kInterfaceResolution, Buffer.from([9])),
    option(0),
  ];
  return block(kInterfaceDescription, [body, ...options]);
}

function block(type: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const whole = Buffer.alloc(12 + body.length);
  whole.writeUInt32LE(type, 0);
  whole.writeUInt32LE(whole.length, 4);
  whole.set(body, 8);
  whole.writeUInt32LE(whole.length, whole.length - 4);
  return whole;
}

/** Code 0 ends the options. */
function option(code: number, value = Buffer.alloc(0)): Buffer {
  const whole = Buffer.alloc(4 + padded(value.length, 4));
  whole.writeUInt16LE(code, 0);
  whole.writeUInt16LE(value.length, 2);
  whole.set(value, 4);
  return whole;
}

/** `interfaces`: the file's number of each tap. */
function packetBlocks(chunk: Uint8Array, interfaces: readonly (number | undefined)[]): Buffer {
  const from = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const out = Buffer.alloc(Math.ceil((from.length * kPacketBlock) / kRecordHeader));
  let end = 0;
  for (let at = 0; at < from.length; ) {
    const record = recordAt(from, at, interfaces.length);
    at = record.next;
    const number = interfaces[record.tap];
    if (number === undefined) continue;
    const { captured, original, time } = record;
    const length = kPacketBlock + padded(captured.length, 4);
    out.writeUInt32LE(kEnhancedPacket, end);
    out.writeUInt32LE(length, end + 4);
    out.writeUInt32LE(number, end + 8);
    out.writeUInt32LE(Math.floor(time / 2 ** 32), end + 12);
    out.writeUInt32LE(time % 2 ** 32, end + 16);
    out.writeUInt32LE(captured.length, end + 20);
    out.writeUInt32LE(original, end + 24);
    out.set(captured, end + 28);
    end += length;
    out.writeUInt32LE(length, end - 4);
  }
  return out.subarray(0, end);
}

/** One frame of a chunk, see drainTrace(); `time` in whole ns. */
function recordAt(chunk: Buffer, at: number, taps: number) {
  const malformed = (why: string) => new Error(`malformed trace at byte ${at} of ${chunk.length}: ${why}`);
  if (at + kRecordHeader > chunk.length) throw malformed("a frame's header is cut short");
  const tap = chunk.readUInt32LE(at);
  const length = chunk.readUInt32LE(at + 4);
  const original = chunk.readUInt32LE(at + 8);
  const time = Math.round(chunk.readDoubleLE(at + 16));
  const first = at + kRecordHeader;
  const next = first + padded(length, 8);
  if (tap >= taps) throw malformed(`tap ${tap} of ${taps}`);
  if (length > original || length > kSnapLength) throw malformed(`${length} bytes captured of a frame of ${original}`);
  if (next > chunk.length) throw malformed(`${length} captured bytes are not all there`);
  if (!Number.isSafeInteger(time) || time < 0) throw malformed(`time ${time} ns`);
  return { tap, original, time, captured: chunk.subarray(first, first + length), next };
}

function padded(length: number, to: number): number {
  return Math.ceil(length / to) * to;
}
