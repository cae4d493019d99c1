/** Captured frames as the native core hands them over: see native/wire/captured_frame.h. */

/** Kinds of frames, numbered as in native/wire/packet.h. */
export const kFrameKinds = ["other", "roce", "cnp", "pause", "pfc", "mac_control", "cnm"] as const;
/** Reasons why a frame, or its upper part, was not understood: numbered as in native/wire/classify.h. */
export const kRefusals = [
  "none",
  "runt",
  "truncated_vlan",
  "truncated_cn_tag",
  "truncated_mac_control",
  "truncated_ip",
  "bad_ip_header",
  "bad_ip_checksum",
  "ip_fragment",
  "truncated_udp",
  "bad_udp_length",
  "truncated_bth",
  "bad_transport_version",
  "bad_transport_length",
  "truncated_cnm",
  "bad_cnm_version",
  "bad_cnm_length",
] as const;
/** Values of a block's flags, as seen from the device. */
export const kDirection = { unknown: 0, inbound: 1, outbound: 2 } as const;

/** Bytes in front of a frame's own, which end at a multiple of 8. */
export const kRecordHead = 32;
const kCaptured = 3;

/** Frames of a chunk, one after the other; numbers have 32 bits unless a comment says otherwise. */
export class Frames {
  /** Bytes of the chunk: zeros behind the captured bytes fill up to a multiple of 8. */
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  /** Start of the present frame's captured bytes. */
  at = 0;
  tap = 0;
  /** Time in ns since the epoch: upper and lower half. */
  timeHigh = 0;
  timeLow = 0;
  captured = 0;
  original = 0;
  destinationQp = 0;
  /** Index into kFrameKinds. */
  kind = 0;
  /** Index into kRefusals. */
  refusal = 0;
  /** ECN codepoint, 0..3. */
  ecn = 0;
  isIp = false;
  needsChecksum = false;
  direction = 0;
  /** Bytes of each segment of a super-frame; else 0. */
  segmentSize = 0;
  private next = 0;

  /** @throws Error when the chunk has no whole frames, or one of a tap beyond `taps`. */
  constructor(chunk: Uint8Array, taps: number) {
    this.bytes = chunk.byteOffset % 4 === 0 ? chunk : chunk.slice();
    const { buffer, byteOffset, length } = this.bytes;
    this.words = new Uint32Array(buffer, byteOffset, length >> 2);
    for (let at = 0; at < length; ) {
      const captured = this.words[at / 4 + kCaptured] ?? Number.POSITIVE_INFINITY;
      const end = at + kRecordHead + padded(captured);
      if (end > length) throw new Error(`malformed frame at byte ${at} of ${length}: it is cut short`);
      const tap = this.words[at / 4 + 2] as number;
      if (tap >= taps) throw new Error(`malformed frame at byte ${at} of ${length}: tap ${tap} of ${taps}`);
      at = end;
    }
  }

  /** Reads the next frame; false if there is none. */
  read(): boolean {
    const { words, next } = this;
    if (next >= this.bytes.length) return false;
    const at = next / 4;
    this.timeLow = words[at] as number;
    this.timeHigh = words[at + 1] as number;
    this.tap = words[at + 2] as number;
    this.captured = words[at + kCaptured] as number;
    this.original = words[at + 4] as number;
    this.destinationQp = words[at + 5] as number;
    const seen = words[at + 6] as number;
    this.kind = seen & 0xff;
    this.refusal = (seen >>> 8) & 0xff;
    this.ecn = (seen >>> 16) & 3;
    this.isIp = seen >>> 24 !== 0;
    const passed = words[at + 7] as number;
    this.needsChecksum = (passed & 0xff) !== 0;
    this.direction = (passed >>> 8) & 0xff;
    this.segmentSize = passed >>> 16;
    this.at = next + kRecordHead;
    this.next = this.at + padded(this.captured);
    return true;
  }

  /** Lets the next read() read the present frame once more. */
  unread(): void {
    this.next = this.at - kRecordHead;
  }

  /** Bytes of the present frame, as captured. */
  frame(): Uint8Array {
    return this.bytes.subarray(this.at, this.at + this.captured);
  }
}

/** Writes frames to files of some format. */
export interface FrameEncoder {
  /** Encodes as many frames as `out` has room for; returns how many bytes, 0 when there are no frames left. */
  encode(frames: Frames, out: Buffer): number;
}

function padded(length: number): number {
  return Math.ceil(length / 8) * 8;
}
