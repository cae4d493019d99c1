/** The management datagram and tables of the fields in it. IBTA volume 1, 13.4; communication management is chapter 12. */
import { kMad } from "./frame.js";

export const kMadHeader = 24;
/** Base version 1, class communication management, class version 2, method Send. */
const kCommunicationManagement = 0x01_07_02_03;

export interface MadHeader {
  transaction: bigint;
  /** Says which message this is. */
  attribute: number;
  /** Vendors' options in communication management; 0 for none. */
  modifier: number;
}

/** Returns undefined if `mad` is no message of communication management. */
export function readMadHeader(mad: Buffer): MadHeader | undefined {
  if (mad.length !== kMad || mad.readUInt32BE(0) !== kCommunicationManagement) return;
  return { transaction: mad.readBigUInt64BE(8), attribute: mad.readUInt16BE(16), modifier: mad.readUInt32BE(20) };
}

/** A MAD whose fields are still zero. */
export function newMad({ transaction, attribute, modifier }: MadHeader): Buffer {
  const mad = Buffer.alloc(kMad);
  mad.writeUInt32BE(kCommunicationManagement, 0);
  mad.writeBigUInt64BE(transaction, 8);
  mad.writeUInt16BE(attribute, 16);
  mad.writeUInt32BE(modifier, 20);
  return mad;
}

/** Place of a field in the bytes after the MAD header. */
export interface Field<T extends number | bigint | Buffer> {
  read(data: Buffer): T;
  /** @throws RangeError when the value does not fit. */
  write(data: Buffer, value: T): void;
}

/** `width` bits, at most 32, from bit `bit` of byte `byte`, counted from the most significant. */
export function bits(byte: number, bit: number, width: number): Field<number> {
  const bytes = Math.ceil((bit + width) / 8);
  const unit = 2 ** (bytes * 8 - bit - width);
  const end = 2 ** width;
  return {
    read: (data) => Math.floor(data.readUIntBE(byte, bytes) / unit) % end,
    write: (data, value) => {
      if (!Number.isInteger(value) || value < 0 || value >= end) {
        throw new RangeError(`${value} does not fit ${width} bits`);
      }
      data.writeUIntBE(data.readUIntBE(byte, bytes) + value * unit, byte, bytes);
    },
  };
}

export function uint64(byte: number): Field<bigint> {
  return { read: (data) => data.readBigUInt64BE(byte), write: (data, value) => data.writeBigUInt64BE(value, byte) };
}

/** `length` bytes, read as a whole; shorter values are written from its start, with zeros after them. */
export function bytes(byte: number, length: number): Field<Buffer> {
  return {
    read: (data) => data.subarray(byte, byte + length),
    write: (data, value) => {
      if (value.length > length) throw new RangeError(`${value.length} bytes do not fit ${length}`);
      value.copy(data, byte);
    },
  };
}
