/** Ethernet frames without FCS; addresses are 48-bit numbers. */
import { kEthernetHeader, kEtherType, kVlanTag } from "./headers.js";

const kTypeOffset = 12;
/** Least length that Ethernet carries, without FCS. */
const kLeastFrame = 60;

export interface EthernetFrame {
  destination: number;
  source: number;
  etherType: number;
  /** Bytes behind the header, with Ethernet's padding. */
  payload: Buffer;
}

/** Returns undefined if the frame has no whole header. */
export function readEthernet(frame: Buffer): EthernetFrame | undefined {
  if (frame.length < kEthernetHeader) return;
  return {
    destination: frame.readUIntBE(0, 6),
    source: frame.readUIntBE(6, 6),
    etherType: frame.readUInt16BE(kTypeOffset),
    payload: frame.subarray(kEthernetHeader),
  };
}

/** Builds a frame, padded with zeros to Ethernet's least length. */
export function buildEthernet(destination: number, source: number, etherType: number, payload: Uint8Array): Buffer {
  const frame = Buffer.alloc(Math.max(kLeastFrame, kEthernetHeader + payload.length));
  frame.writeUIntBE(destination, 0, 6);
  frame.writeUIntBE(source, 6, 6);
  frame.writeUInt16BE(etherType, kTypeOffset);
  frame.set(payload, kEthernetHeader);
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
