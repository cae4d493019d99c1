/** ICMP and ICMPv6 (RFC 792, RFC 4443) as far as a RoCEv2 endpoint has to do with them: echo, and "destination unreachable". */
import { addressBytes, addressText } from "./address.js";
import { internetChecksum } from "./checksum.js";
import { kHopLimit, kIpv4Header, kIpv6Header, kProtocolUdp } from "./headers.js";

const kIcmpHeader = 8;
/** Numbers by IP version: protocol, and types of messages; code of "port unreachable". */
const kIcmp = {
  4: { protocol: 1, request: 8, reply: 0, unreachable: 3, port: 3 },
  6: { protocol: 58, request: 128, reply: 129, unreachable: 1, port: 4 },
} as const;

/** An IP header that belongs to no fragment, and its lengths. */
export interface IpHeader {
  version: 4 | 6;
  /** Bytes of the header; `total`: bytes of the packet as the header says. */
  header: number;
  total: number;
  protocol: number;
  /** Type of service, or traffic class. */
  tos: number;
  source: string;
  destination: string;
}

/** Reads a packet that may be cut short behind its header; undefined if there is no header, or it is of a fragment. */
export function readIp(packet: Buffer): IpHeader | undefined {
  const version = (packet[0] ?? 0) >> 4;
  if (version === 4 && packet.length >= kIpv4Header) {
    const header = (packet.readUInt8(0) & 0x0f) * 4;
    const total = packet.readUInt16BE(2);
    const isFragment = (packet.readUInt16BE(6) & 0x3fff) !== 0;
    if (header < kIpv4Header || packet.length < header || total < header || isFragment) return;
    const [source, destination] = [addressText(packet.subarray(12, 16)), addressText(packet.subarray(16, 20))];
    return { version, header, total, protocol: packet.readUInt8(9), tos: packet.readUInt8(1), source, destination };
  }
  if (version === 6 && packet.length >= kIpv6Header) {
    const total = kIpv6Header + packet.readUInt16BE(4);
    const [source, destination] = [addressText(packet.subarray(8, 24)), addressText(packet.subarray(24, 40))];
    const tos = (packet.readUInt16BE(0) >> 4) & 0xff;
    return { version, header: kIpv6Header, total, protocol: packet.readUInt8(6), tos, source, destination };
  }
  return;
}

/** A host's message that it could not deliver a UDP packet. */
export interface Unreachable {
  /** Host that says so. */
  source: string;
  /** RFC 792: 0 network, 1 host, 3 port, 13 prohibited by a filter ...; RFC 4443 has others. */
  code: number;
  /** True if the host is there, and nothing has the port. */
  isPort: boolean;
  /** Fields of the packet as it was when it got there. */
  quoted: Pick<IpHeader, "source" | "destination" | "tos"> & { sourcePort: number; destinationPort: number };
}

/** Reads an IP packet; undefined if it is no "destination unreachable" that quotes the start of a UDP packet. */
export function readUnreachable(packet: Buffer): Unreachable | undefined {
  const ip = readIp(packet);
  if (ip === undefined || packet.length < ip.header + kIcmpHeader) return;
  const { protocol, unreachable, port } = kIcmp[ip.version];
  if (ip.protocol !== protocol || packet.readUInt8(ip.header) !== unreachable) return;
  const quote = packet.subarray(ip.header + kIcmpHeader);
  const inner = readIp(quote);
  if (inner?.version !== ip.version || inner.protocol !== kProtocolUdp || quote.length < inner.header + 4) return;
  const code = packet.readUInt8(ip.header + 1);
  const { source, destination, tos } = inner;
  const [sourcePort, destinationPort] = [quote.readUInt16BE(inner.header), quote.readUInt16BE(inner.header + 2)];
  return {
    source: ip.source,
    code,
    isPort: code === port,
    quoted: { source, destination, tos, sourcePort, destinationPort },
  };
}

/**
 * The answer to an echo request for `address`, as an IP packet; undefined if `packet` is none, or is not whole, or does not come
 * from a single host's address. Padding behind the packet is left out.
 */
export function echoReply(packet: Buffer, address: string): Buffer | undefined {
  const ip = readIp(packet);
  if (ip === undefined || ip.destination !== address || packet.length < ip.total || !isHost(ip.source)) return;
  const { version, header, total, tos } = ip;
  const { protocol, request, reply } = kIcmp[version];
  if (ip.protocol !== protocol || total < header + kIcmpHeader) return;
  const asked = packet.subarray(header, total);
  if (asked.readUInt8(0) !== request || asked.readUInt8(1) !== 0) return;
  if (version === 4 && internetChecksum(packet.subarray(0, header)) !== 0) return;
  if (checksum(version, packet.subarray(0, header), asked) !== 0) return;

  const answer = Buffer.alloc((version === 4 ? kIpv4Header : kIpv6Header) + asked.length);
  const icmp = answer.subarray(answer.length - asked.length);
  if (version === 4) {
    answer.set([0x45, tos], 0);
    answer.writeUInt16BE(answer.length, 2);
    answer.writeUInt16BE(0x4000, 6); // don't fragment
    answer.set([kHopLimit, protocol], 8);
    answer.set(addressBytes(address), 12);
    answer.set(addressBytes(ip.source), 16);
    answer.writeUInt16BE(internetChecksum(answer.subarray(0, kIpv4Header)), 10);
  } else {
    answer.writeUInt16BE(0x6000 | (tos << 4), 0);
    answer.writeUInt16BE(asked.length, 4);
    answer.set([protocol, kHopLimit], 6);
    answer.set(addressBytes(address), 8);
    answer.set(addressBytes(ip.source), 24);
  }
  asked.copy(icmp);
  icmp.set([reply, 0, 0, 0], 0);
  icmp.writeUInt16BE(checksum(version, answer, icmp), 2);
  return answer;
}

/** Checksum of a message, 0 if the one in it is right. ICMPv6 has it over a pseudo header too (RFC 8200, 8.1). */
function checksum(version: 4 | 6, ip: Buffer, icmp: Buffer): number {
  if (version === 4) return internetChecksum(icmp);
  const tail = Buffer.from([0, 0, icmp.length >> 8, icmp.length & 0xff, 0, 0, 0, kIcmp[6].protocol]);
  return internetChecksum(ip.subarray(8, kIpv6Header), tail, icmp);
}

/** Tells whether the address is neither unspecified, nor loopback, nor a group, nor broadcast. */
function isHost(address: string): boolean {
  const bytes = addressBytes(address);
  const first = bytes[0] as number;
  if (bytes.length === 4) return first !== 0 && first !== 127 && first < 224;
  return first !== 0xff && bytes.subarray(0, 15).some((byte) => byte !== 0);
}
