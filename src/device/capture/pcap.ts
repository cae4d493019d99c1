/** Capture files in the classic libpcap format with nanoseconds (draft-ietf-opsawg-pcap), link type Ethernet. */
import type { FrameEncoder, Frames } from "./frames.js";

const kMagicNanoseconds = 0xa1b23c4d;
const kLinktypeEthernet = 1;
const kRecordHead = 16;
const kSecond = 1_000_000_000;

export function pcapHeader(snapLength: number): Buffer {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(kMagicNanoseconds, 0);
  header.writeUInt16LE(2, 4); // version 2.4
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(snapLength, 16);
  header.writeUInt32LE(kLinktypeEthernet, 20);
  return header;
}

export class PcapRecords implements FrameEncoder {
  /** Upper half of a time, and the seconds and nanoseconds of the time with this upper half and a lower half of 0. */
  private high = 0;
  private seconds = 0;
  private nanoseconds = 0;

  encode(frames: Frames, out: Buffer): number {
    let at = 0;
    while (frames.read()) {
      if (at + kRecordHead + frames.captured > out.length) {
        frames.unread();
        break;
      }
      this.#know(frames.timeHigh);
      const ns = this.nanoseconds + frames.timeLow;
      out.writeUInt32LE(this.seconds + Math.floor(ns / kSecond), at);
      out.writeUInt32LE(ns % kSecond, at + 4);
      out.writeUInt32LE(frames.captured, at + 8);
      out.writeUInt32LE(frames.original, at + 12);
      out.set(frames.frame(), at + kRecordHead);
      at += kRecordHead + frames.captured;
    }
    return at;
  }

  /**
   * Splits a time whose upper half is new: ns since the epoch do not fit a number exactly, but the upper half changes every four seconds.
   */
  #know(high: number): void {
    if (high === this.high) return;
    const time = BigInt(high) << 32n;
    this.high = high;
    this.seconds = Number(time / BigInt(kSecond));
    this.nanoseconds = Number(time % BigInt(kSecond));
  }
}
