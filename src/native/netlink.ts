/** Messages of netlink(7): a header, a structure of their own, and attributes; numbers in the byte order of the host. */
import { readSync, writeSync } from "node:fs";
import { getSystemErrorName } from "node:util";

export const kHeader = 16;
const kRequest = 1;
const kAcknowledge = 4;
const kDump = 0x300;
const kInterrupted = 0x10;
const kError = 2;
const kDone = 3;
/** The kernel puts at most this much in one answer of a dump. */
const kAnswerBytes = 64 * 1024;
const kAttempts = 8;

/** Attributes of netlink by their codes. */
export type Attributes = Map<number, Buffer>;

export function messageOf(type: number, flags: number, body: Buffer): Buffer {
  const header = Buffer.alloc(kHeader);
  header.writeUInt32LE(kHeader + body.length, 0);
  header.writeUInt16LE(type, 4);
  header.writeUInt16LE(flags, 6);
  header.writeUInt32LE(1, 8);
  return Buffer.concat([header, body]);
}

/** Asks a blocking socket for all messages of a kind; headers are left out. @throws Error why the kernel tells nothing. */
export function dump(socket: number, type: number, body: Buffer): Buffer[] {
  for (let attempt = 0; attempt < kAttempts; attempt++) {
    writeSync(socket, messageOf(type, kRequest | kDump, body));
    const told = answers(socket);
    // An interrupted dump mixes the states of two times.
    if (!told.interrupted) return told.messages;
  }
  throw new Error("the kernel's tables change faster than they can be read");
}

/** @throws Error with a code: why the kernel does not. */
export function command(socket: number, type: number, flags: number, body: Buffer): void {
  writeSync(socket, messageOf(type, kRequest | kAcknowledge | flags, body));
  answers(socket);
}

function answers(socket: number): { messages: Buffer[]; interrupted: boolean } {
  const messages: Buffer[] = [];
  let interrupted = false;
  for (;;) {
    const heard = Buffer.allocUnsafe(kAnswerBytes);
    const part = messagesIn(heard.subarray(0, readSync(socket, heard)));
    for (const { type, flags, body } of part) {
      if ((flags & kInterrupted) !== 0) interrupted = true;
      if (type === kError) throwErrno(body.length < 4 ? 0 : body.readInt32LE(0));
      if (type === kError || type === kDone) return { messages, interrupted };
      messages.push(body);
    }
    if (part.length === 0) return { messages, interrupted };
  }
}

/** Throws unless `error` is 0, which means done. */
function throwErrno(error: number): void {
  if (error >= 0) return;
  const code = getSystemErrorName(error);
  throw Object.assign(new Error(`netlink: ${code}`), { code });
}

/** Splits what one read gave, which may be any bytes: a message that is cut off, or shorter than a header, ends the list. */
export function messagesIn(bytes: Buffer): { type: number; flags: number; body: Buffer }[] {
  const found: { type: number; flags: number; body: Buffer }[] = [];
  for (let at = 0; at + kHeader <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    if (length < kHeader || at + length > bytes.length) break;
    const body = bytes.subarray(at + kHeader, at + length);
    found.push({ type: bytes.readUInt16LE(at + 4), flags: bytes.readUInt16LE(at + 6), body });
    at += aligned(length);
  }
  return found;
}

/** Reads attributes from a place in a message on; one that does not fit ends them. */
export function attributesIn(bytes: Buffer | undefined, from = 0): Attributes {
  const found: Attributes = new Map();
  for (let at = from; bytes !== undefined && at + 4 <= bytes.length; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    found.set(bytes.readUInt16LE(at + 2) & 0x3fff, bytes.subarray(at + 4, at + length));
    at += aligned(length);
  }
  return found;
}

export function attribute(code: number, value: Buffer): Buffer {
  const whole = Buffer.alloc(4 + aligned(value.length));
  whole.writeUInt16LE(4 + value.length, 0);
  whole.writeUInt16LE(code, 2);
  whole.set(value, 4);
  return whole;
}

export function aligned(length: number): number {
  return Math.ceil(length / 4) * 4;
}

export function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Text of an attribute, up to the first zero. */
export function text(bytes: Buffer | undefined): string {
  return bytes?.toString("latin1").replace(/\0.*$/s, "") ?? "";
}
