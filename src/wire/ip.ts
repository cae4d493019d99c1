/** IPv4 and IPv6 packets (RFC 791, RFC 8200), and the frames that carry them. Addresses are canonical text. */
import { addressBytes, addressText } from "./address.js";
import { internetChecksum } from "./checksum.js";
import { buildEthernet, readEthernet } from "./ethernet.js";
import { kEtherType, kHopLimit, kIpv4Header, kIpv6Header } from "./headers.js";

const kDontFragment = 0x4000;

export interface IpEnds {
  source: string;
  destination: string;
}

/** An IP packet that is no fragment. */
export interface IpPacket extends IpEnds {
  version: 4 | 6;
  /** Bytes of the header; `total`: bytes of the packet as the header says. */
  header: number;
  total: number;
  protocol: number;
  /** Type of service, or traffic class. */
  tos: number;
  /** Time to live, or hop limit. */
  hopLimit: number;
  /** What is behind the header, without padding; it may be cut short. */
  payload: Buffer;
  /** True if nothing is missing, and IPv4's checksum is right. */
  isSound: boolean;
}

/** Where headers have what both versions have, by version. */
const kLayout = {
  4: { least: kIpv4Header, hopLimit: 8, protocol: 9, source: 12, destination: 16, end: 20 },
  6: { least: kIpv6Header, hopLimit: 7, protocol: 6, source: 8, destination: 24, end: 40 },
} as const;

/** Reads a packet that may be cut short behind its header; undefined if there is no header, or it is of a fragment. */
export function readIp(packet: Buffer): IpPacket | undefined {
  const version = (packet[0] ?? 0) >> 4;
  if ((version !== 4 && version !== 6) || packet.length < kLayout[version].least) return;
  const { least, hopLimit, protocol, source, destination, end } = kLayout[version];
  const isIpv4 = version === 4;
  const header = isIpv4 ? (packet.readUInt8(0) & 0x0f) * 4 : kIpv6Header;
  const total = isIpv4 ? packet.readUInt16BE(2) : kIpv6Header + packet.readUInt16BE(4);
  const isFragment = isIpv4 && (packet.readUInt16BE(6) & 0x3fff) !== 0;
  if (header < least || packet.length < header || total < header || isFragment) return;
  return {
    version,
    header,
    total,
    protocol: packet.readUInt8(protocol),
    tos: isIpv4 ? packet.readUInt8(1) : (packet.readUInt16BE(0) >> 4) & 0xff,
    hopLimit: packet.readUInt8(hopLimit),
    source: addressText(packet.subarray(source, destination)),
    destination: addressText(packet.subarray(destination, end)),
    payload: packet.subarray(header, total),
    isSound: total <= packet.length && (!isIpv4 || internetChecksum(packet.subarray(0, header)) === 0),
  };
}

export interface IpFields extends IpEnds {
  protocol: number;
  tos?: number;
  hopLimit?: number;
  /** Fields of IPv4 alone: identification, 16 bits; whether routers may cut the packet up; options, whole words. */
  identification?: number;
  mayFragment?: boolean;
  options?: Uint8Array;
}

/** @throws RangeError when the addresses are not of one family. */
export function buildIp(fields: IpFields, payload: Uint8Array): Buffer {
  const { protocol, tos = 0, hopLimit = kHopLimit, identification = 0, mayFragment = false, options = [] } = fields;
  const [source, destination] = [addressBytes(fields.source), addressBytes(fields.destination)];
  if (source.length !== destination.length) throw new RangeError("addresses of two families");
  if (source.length === 16) {
    const header = Buffer.alloc(kIpv6Header);
    header.writeUInt16BE(0x6000 | (tos << 4), 0);
    header.writeUInt16BE(payload.length, 4);
    header.set([protocol, hopLimit, ...source, ...destination], 6);
    return Buffer.concat([header, payload]);
  }
  const header = Buffer.alloc(kIpv4Header + options.length);
  header.set([0x40 | (header.length / 4), tos], 0);
  header.writeUInt16BE(header.length + payload.length, 2);
  header.writeUInt16BE(identification, 4);
  header.writeUInt16BE(mayFragment ? 0 : kDontFragment, 6);
  header.set([hopLimit, protocol, 0, 0, ...source, ...destination, ...options], 8);
  header.writeUInt16BE(internetChecksum(header), 10);
  return Buffer.concat([header, payload]);
}

export interface IpFrame extends IpPacket {
  destinationMac: number;
  sourceMac: number;
}

/** Reads an untagged frame; undefined if it carries no packet of the version that its EtherType says. */
export function readIpFrame(frame: Buffer): IpFrame | undefined {
  const ethernet = readEthernet(frame);
  const ip = ethernet && readIp(ethernet.payload);
  if (ip === undefined || ethernet?.etherType !== etherTypeOf(ip.version)) return;
  return { ...ip, destinationMac: ethernet.destination, sourceMac: ethernet.source };
}

/** Builds the frame around a packet. */
export function buildIpFrame(destinationMac: number, sourceMac: number, packet: Buffer): Buffer {
  return buildEthernet(destinationMac, sourceMac, etherTypeOf(packet.readUInt8(0) >> 4), packet);
}

function etherTypeOf(version: number): number {
  return version === 4 ? kEtherType.ipv4 : kEtherType.ipv6;
}
