/**
 * Blocks of pcapng files with a resolution of nanoseconds; those of packets are written by packet_blocks.ts.
 * Source: draft-ietf-opsawg-pcapng, sections 3 and 4.
 */

export interface Section {
  application: string;
  hardware?: string;
  os?: string;
}

/** A place where frames are taken. */
export interface Interface {
  name: string;
  description?: string;
  /** Speed, bit/s; 0: unlimited, and left out of the file. */
  speed?: number;
  snapLength?: number;
}

export interface Statistics {
  /** Begin and end, ns since the epoch. */
  from: bigint;
  to: bigint;
  /** Frames that passed; those of them that the capture wanted; those of these that were lost, and those that the file has. */
  seen: number;
  wanted: number;
  dropped: number;
  written: number;
}

export const kBlock = { section: 0x0a0d0d0a, interface: 1, statistics: 5, packet: 6 } as const;
const kByteOrderMagic = 0x1a2b3c4d;
const kLinktypeEthernet = 1;
/** Length that is written for frames: more than all headers of any frame. */
const kSnapLength = 65_535;
const kLeastBlock = 12;
/** Twice the longest captured frame. */
const kLongestBlock = 524_288;
const kLeastPacket = 32;
/** Offset of the interface in a packet block. */
const kInterface = 8;
const kOptionHead = 4;

export function sectionHeader({ application, hardware, os }: Section): Buffer {
  const body = Buffer.alloc(16);
  body.writeUInt32LE(kByteOrderMagic, 0);
  body.writeUInt16LE(1, 4); // version 1.0
  body.fill(0xff, 8, 16); // The length of the section is left open.
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
    option(9, Buffer.from([9])), // Times have a resolution of 10^-9 s.
    option(0),
  ]);
}

/** The beginning of a file. */
export function fileHeader(section: Section, interfaces: readonly Interface[]): Buffer {
  return Buffer.concat([sectionHeader(section), ...interfaces.map(interfaceDescription)]);
}

/** Counts of interface number `number`, at the end of a file. */
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

/** Type and end of a block. */
export interface BlockHead {
  type: number;
  end: number;
}

/**
 * The block at `at`; undefined if it is not all there.
 * @throws Error when it is malformed.
 */
export function blockAt(chunk: Buffer, at: number): BlockHead | undefined {
  if (at + kLeastBlock > chunk.length) return undefined;
  const type = chunk.readUInt32LE(at);
  const length = chunk.readUInt32LE(at + 4);
  if (length < kLeastBlock || length > kLongestBlock || length % 4 !== 0)
    throw malformed(chunk, at, `length ${length}`);
  const end = at + length;
  if (end > chunk.length) return undefined;
  if (chunk.readUInt32LE(end - 4) !== length) throw malformed(chunk, at, `it ends with another length than ${length}`);
  return { type, end };
}

/** The interface of a packet block. @throws Error when the block has no packet, or an interface that does not exist. */
export function interfaceOf(chunk: Buffer, at: number, { type, end }: BlockHead, interfaces: number): number {
  if (type !== kBlock.packet || end - at < kLeastPacket) throw malformed(chunk, at, `type ${type} is no packet`);
  const number = chunk.readUInt32LE(at + kInterface);
  if (number >= interfaces) throw malformed(chunk, at, `interface ${number} of ${interfaces}`);
  const captured = chunk.readUInt32LE(at + 20);
  if (captured > end - at - kLeastPacket) throw malformed(chunk, at, `${captured} captured bytes are not all there`);
  return number;
}

function malformed(chunk: Buffer, at: number, why: string): Error {
  return new Error(`malformed block at byte ${at} of ${chunk.length}: ${why}`);
}

const kNothing: Buffer = Buffer.alloc(0);

export function block(type: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const whole = Buffer.alloc(kLeastBlock + padded(body.length));
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

/** Writes a time, upper half first. */
function writeTime(out: Buffer, at: number, ns: bigint): void {
  out.writeUInt32LE(Number(ns >> 32n), at);
  out.writeUInt32LE(Number(ns & 0xffff_ffffn), at + 4);
}

function padded(length: number): number {
  return Math.ceil(length / 4) * 4;
}
