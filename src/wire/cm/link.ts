/** Ethernet frames and a clock, on which connection management is built; tests can replace both. */
import { kEthernetHeader, kVlanTag } from "../headers.js";

/** Ethernet frames without FCS and VLAN tag; addresses are 48-bit numbers. */
export interface FrameLink {
  readonly mac: number;
  /** Returns false if the frame was not sent, for example because a queue is full. */
  send(frame: Uint8Array): boolean;
  /** Adds a listener, which may keep the frame. Returns a function that ends the subscription. */
  onFrame(listener: (frame: Buffer) => void): () => void;
}

export interface Clock {
  /** Monotonic time, ms. */
  now(): number;
  /** Runs `action` once, `ms` from now, unless the returned function is called before. */
  after(ms: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after: (ms, action) => {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
};

export const kEtherType = { ipv4: 0x0800, arp: 0x0806, vlan: 0x8100, ipv6: 0x86dd } as const;
const kTypeOffset = 12;
/** Least length that Ethernet carries, without FCS. */
const kLeastFrame = 60;

/** A frame of zeros with its Ethernet header, padded to Ethernet's least length. */
export function newFrame(destination: number, source: number, etherType: number, payload: number): Buffer {
  const frame = Buffer.alloc(Math.max(kLeastFrame, kEthernetHeader + payload));
  frame.writeUIntBE(destination, 0, 6);
  frame.writeUIntBE(source, 6, 6);
  frame.writeUInt16BE(etherType, kTypeOffset);
  return frame;
}

/** A copy of an untagged frame with an 802.1Q tag, priority 0. */
export function taggedFrame(frame: Uint8Array, vlan: number): Buffer {
  const tag = Buffer.from([kEtherType.vlan >> 8, kEtherType.vlan & 0xff, vlan >> 8, vlan & 0xff]);
  return Buffer.concat([frame.subarray(0, kTypeOffset), tag, frame.subarray(kTypeOffset)]);
}

/** Returns the frame without its 802.1Q tag: itself if it has none, else a copy. */
export function untaggedFrame(frame: Buffer): Buffer {
  if (frame.length < kEthernetHeader + kVlanTag || frame.readUInt16BE(kTypeOffset) !== kEtherType.vlan) return frame;
  return Buffer.concat([frame.subarray(0, kTypeOffset), frame.subarray(kTypeOffset + kVlanTag)]);
}
