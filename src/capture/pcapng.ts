/** Blocks of pcapng files, nanoseconds resolution. Source: draft-ietf-opsawg-pcapng, sections 3.5 and 4.1 to 4.6. */
import { type FrameRecord, recordAt } from "./frame_records.js";

export interface Section {
  application: string;
  hardware?: string;
  os?: string;
}

/** A place where frames are taken. */
export interface Interface {
  name: string;
  description?: string;
  /** bit/s; 0: unlimited, not told. */
  speed?: number;
  snapLength?: number;
}

export interface Statistics {
  /** ns since the epoch. */
  from: bigint;
  to: bigint;
  /** Frames that passed; of those, which the capture wanted, which of these were lost, and which the file has. */
  seen: number;
  wanted: number;
  dropped: number;
  written: number;
}

const kBlock = { section: 0x0a0d0d0a, interface: 1, statistics: 5, packet: 6 } as const;
const kByteOrderMagic = 0x1a2b3c4d;
const kLinktypeEthernet = 1;
/** More than all headers of any frame. */
const kSnapLength = 65_535;
const kComment = 1;
const kFlags = 2;
/** Bytes of a packet block without the packet and options, and of the options: flags, the head of a comment, the end. */
const kPacketBlock = 32;
const kFlagsOption = 8;
const kOptionHead = 4;

export function sectionHeader({ application, hardware, os }: Section): Buffer {
  const body = Buffer.alloc(16);
  body.writeUInt32LE(kByteOrderMagic, 0);
  body.writeUInt16LE(1, 4); // version 1.0
  body.fill(0xff, 8, 16); // length of the section: not said
  const known = [textOption(2, hardware), textOption(3, os), textOption(4, application)];
  return block(kBlock.section, [body, ...known, option(0)]);
}

export function interfaceDescription({ name, description, speed, snapLength = kSnapLength }: Interface): Buffer {
  const body = Buffer.alloc(8);
  body.writeUInt16LE(kLinktypeEthernet, 0);
  body.writeUInt32LE(snapLength, 4);
  return block(kBlock.interface, [
    body,
    textOption(2, name),
    textOption(3, description),
    speed ? option(8, unsigned64(BigInt(Math.round(speed)))) : kNothing,
    option(9, Buffer.from([9])), // resolution of times: 10^-9 s
    option(0),
  ]);
}

/** Of interface number `number`, at the end of a file. */
export function interfaceStatistics(number: number, statistics: Statistics): Buffer {
  const body = Buffer.alloc(12);
  body.writeUInt32LE(number, 0);
  writeTime(body, 4, statistics.to);
  const time = (code: number, value: bigint) => {
    const text = Buffer.alloc(8);
    writeTime(text, 0, value);
    return option(code, text);
  };
  const count = (code: number, value: number) => option(code, unsigned64(BigInt(value)));
  return block(kBlock.statistics, [
    body,
    time(2, statistics.from),
    time(3, statistics.to),
    count(4, statistics.seen),
    count(6, statistics.wanted),
    count(7, statistics.dropped),
    count(8, statistics.written),
    option(0),
  ]);
}

/**
 * Frames of a chunk of whole records; those of a tap whose `interfaces` is undefined belong to another file and are left out.
 * @param interfaces The file's number of each tap.
 * @throws Error when the chunk is malformed.
 */
export function packetBlocks(chunk: Uint8Array, interfaces: readonly (number | undefined)[]): Buffer {
  const from = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const parts: { record: FrameRecord; number: number }[] = [];
  let length = 0;
  for (let at = 0; at < from.length; ) {
    const record = recordAt(from, at);
    const malformed = (why: string) => new Error(`malformed frame at byte ${at} of ${from.length}: ${why}`);
    if (record === undefined) throw malformed("it is cut short");
    if (record.tap >= interfaces.length) throw malformed(`tap ${record.tap} of ${interfaces.length}`);
    at = record.next;
    const number = interfaces[record.tap];
    if (number === undefined) continue;
    parts.push({ record, number });
    length += packetLength(record);
  }
  const out = Buffer.alloc(length);
  let end = 0;
  for (const { record, number } of parts) end = writePacket(out, end, record, number);
  return out;
}

function packetLength({ captured, comment, direction }: FrameRecord): number {
  const flags = direction === 0 ? 0 : kFlagsOption;
  const text = comment.length === 0 ? 0 : kOptionHead + padded(comment.length);
  return kPacketBlock + padded(captured.length) + flags + text + (flags + text > 0 ? kOptionHead : 0);
}

/** `out` is zeros from `at` on, which are padding and the end of options. */
function writePacket(out: Buffer, at: number, record: FrameRecord, number: number): number {
  const { captured, comment, time, direction } = record;
  const length = packetLength(record);
  out.writeUInt32LE(kBlock.packet, at);
  out.writeUInt32LE(length, at + 4);
  out.writeUInt32LE(number, at + 8);
  out.writeUInt32LE(time.high, at + 12);
  out.writeUInt32LE(time.low, at + 16);
  out.writeUInt32LE(captured.length, at + 20);
  out.writeUInt32LE(record.original, at + 24);
  out.set(captured, at + 28);
  let option = at + 28 + padded(captured.length);
  if (direction !== 0) {
    out.writeUInt16LE(kFlags, option);
    out.writeUInt16LE(4, option + 2);
    out.writeUInt32LE(direction, option + 4);
    option += kFlagsOption;
  }
  if (comment.length > 0) {
    out.writeUInt16LE(kComment, option);
    out.writeUInt16LE(comment.length, option + 2);
    // Whoever sent it: a file's comments are UTF-8, and of one line.
    let text = option + kOptionHead;
    for (const byte of comment) out[text++] = byte >= 0x20 && byte < 0x7f ? byte : 0x3f;
  }
  out.writeUInt32LE(length, at + length - 4);
  return at + length;
}

const kNothing: Buffer = Buffer.alloc(0);

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
function option(code: number, value = kNothing): Buffer {
  const whole = Buffer.alloc(kOptionHead + padded(value.length));
  whole.writeUInt16LE(code, 0);
  whole.writeUInt16LE(value.length, 2);
  whole.set(value, kOptionHead);
  return whole;
}

/** An option has up to 65,535 bytes; names and descriptions have far fewer. */
function textOption(code: number, text: string | undefined): Buffer {
  return text === undefined ? kNothing : option(code, Buffer.from(text.slice(0, 1000)));
}

function unsigned64(value: bigint): Buffer {
  const out = Buffer.alloc(8);
  out.writeBigUInt64LE(value);
  return out;
}

/** Times have their upper half first. */
function writeTime(out: Buffer, at: number, ns: bigint): void {
  out.writeUInt32LE(Number(ns >> 32n), at);
  out.writeUInt32LE(Number(ns & 0xffff_ffffn), at + 4);
}

function padded(length: number): number {
  return (length + 3) & ~3;
}
