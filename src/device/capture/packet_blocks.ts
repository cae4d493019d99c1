/**
 * Frames as enhanced packet blocks of pcapng, little endian (draft-ietf-opsawg-pcapng, section 4.3):
 *   0 type 6   4 length   8 interface   12 time: upper, lower half   20 captured   24 original length   28 captured bytes,
 *   padded; options, if any: flags with the direction, a comment, their end;   length again
 */
import { type CommentRate, commentOn, saysTheSame } from "./comment.js";
import { type FrameEncoder, type Frames, kDirection } from "./frames.js";

/** The interface of a tap's frames in the file. */
export interface TapInterface extends CommentRate {
  number: number;
}

const kType = 6;
const kHeadWords = 7;
/** Words of a frame up to which a loop is faster than a call. */
const kFewWords = 48;
const kFlags = 2 | (4 << 16);
const kComment = 1;
const kNothing = new Uint32Array(0);

export class PacketBlocks implements FrameEncoder {
  /** Options of frames that have no comment of their own, by what they have in common. */
  private readonly known = new Map<number, Uint32Array>();

  /** @param interfaces Interface of each tap; frames of taps without one are left out. */
  constructor(private readonly interfaces: readonly (TapInterface | undefined)[]) {}

  /** `out` begins at a multiple of 4 bytes, and has room for the longest frame with the longest comment. */
  encode(frames: Frames, out: Buffer): number {
    const words = new Uint32Array(out.buffer, out.byteOffset, out.length >> 2);
    let at = 0;
    while (frames.read()) {
      const own = this.interfaces[frames.tap];
      if (own === undefined) continue;
      const options = this.#options(frames, own);
      const captured = (frames.captured + 3) >> 2;
      const length = kHeadWords + captured + options.length + 1;
      if (at + length > words.length) {
        frames.unread();
        break;
      }
      words[at] = kType;
      words[at + 1] = words[at + length - 1] = length * 4;
      words[at + 2] = own.number;
      words[at + 3] = frames.timeHigh;
      words[at + 4] = frames.timeLow;
      words[at + 5] = frames.captured;
      words[at + 6] = frames.original;
      at += kHeadWords;
      const from = frames.at >> 2;
      if (captured <= kFewWords) {
        for (let i = 0; i < captured; ++i) words[at + i] = frames.words[from + i] as number;
      } else {
        words.set(frames.words.subarray(from, from + captured), at);
      }
      at += captured;
      for (let i = 0; i < options.length; ++i) words[at + i] = options[i] as number;
      at += options.length + 1;
    }
    return at * 4;
  }

  #options(frames: Frames, rate: CommentRate): Uint32Array {
    if (!saysTheSame(frames)) return options(frames.direction, commentOn(frames, rate));
    const { kind, refusal, ecn, isIp, direction, needsChecksum, segmentSize } = frames;
    const key =
      kind |
      (refusal << 3) |
      (ecn << 8) |
      (Number(isIp) << 10) |
      (direction << 11) |
      (Number(needsChecksum) << 13) |
      (segmentSize << 14);
    const found = this.known.get(key) ?? options(direction, commentOn(frames, rate));
    this.known.set(key, found);
    return found;
  }
}

function options(direction: number, comment: string): Uint32Array {
  const flags = direction === kDirection.unknown ? [] : [kFlags, direction];
  if (flags.length === 0 && comment === "") return kNothing;
  const text = new Uint32Array((comment.length + 3) >> 2);
  Buffer.from(text.buffer).write(comment, "latin1");
  const said = comment === "" ? [] : [kComment | (comment.length << 16), ...text];
  return Uint32Array.of(...flags, ...said, 0);
}
