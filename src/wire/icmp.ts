/** ICMP and ICMPv6 (RFC 792, RFC 4443) as far as a RoCEv2 endpoint has to do with them: echo, and "destination unreachable". */
import { addressBytes } from "./address.js";
import { internetChecksum } from "./checksum.js";
import { kProtocol } from "./headers.js";
import { buildIp, type IpEnds, type IpPacket, readIp } from "./ip.js";

const kIcmpHeader = 8;
/** Numbers by IP version: protocol, and types of messages; code of "port unreachable". */
const kIcmp = {
  4: { protocol: kProtocol.icmp, request: 8, reply: 0, unreachable: 3, port: 3 },
  6: { protocol: kProtocol.icmpv6, request: 128, reply: 129, unreachable: 1, port: 4 },
} as const;

/** A host's message that it could not deliver a UDP packet. */
export interface Unreachable {
  /** Host that says so. */
  source: string;
  /** RFC 792: 0 network, 1 host, 3 port, 13 prohibited by a filter ...; RFC 4443 has others. */
  code: number;
  /** True if the host is there, and nothing has the port. */
  isPort: boolean;
  /** Fields of the packet as it was when it got there. */
  quoted: Pick<IpPacket, "source" | "destination" | "tos"> & { sourcePort: number; destinationPort: number };
}

/** Reads an IP packet; undefined if it is no "destination unreachable" that quotes the start of a UDP packet. */
export function readUnreachable(packet: Buffer): Unreachable | undefined {
  const ip = readIp(packet);
  if (ip === undefined || packet.length < ip.header + kIcmpHeader) return;
  const { protocol, unreachable, port } = kIcmp[ip.version];
  if (ip.protocol !== protocol || packet.readUInt8(ip.header) !== unreachable) return;
  const quote = packet.subarray(ip.header + kIcmpHeader);
  const inner = readIp(quote);
  if (inner?.version !== ip.version || inner.protocol !== kProtocol.udp || quote.length < inner.header + 4) return;
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
  if (ip === undefined || ip.destination !== address || !ip.isSound || !isHost(ip.source)) return;
  const { version, source, tos, payload } = ip;
  const { protocol, request, reply } = kIcmp[version];
  if (ip.protocol !== protocol || payload.length < kIcmpHeader) return;
  if (payload.readUInt8(0) !== request || payload.readUInt8(1) !== 0 || icmpChecksum(ip, payload) !== 0) return;
  const message = Buffer.from(payload);
  message.set([reply, 0, 0, 0], 0);
  const ends = { source: address, destination: source };
  return buildIp({ ...ends, protocol, tos }, checksummed(ends, message));
}

/** Checksum of a message, 0 if the one in it is right. Over IPv6 it is of a pseudo header too (RFC 8200, 8.1). */
export function icmpChecksum({ source, destination }: IpEnds, message: Uint8Array): number {
  if (!source.includes(":")) return internetChecksum(message);
  const tail = Buffer.from([0, 0, message.length >> 8, message.length & 0xff, 0, 0, 0, kProtocol.icmpv6]);
  return internetChecksum(addressBytes(source), addressBytes(destination), tail, message);
}

/** Fills in the checksum of a message that has zeros there. IGMP has it where ICMP has it. */
export function checksummed(ends: IpEnds, message: Buffer): Buffer {
  message.writeUInt16BE(icmpChecksum(ends, message), 2);
  return message;
}

/** Tells whether the address is neither unspecified, nor loopback, nor a group, nor broadcast. */
function isHost(address: string): boolean {
  const bytes = addressBytes(address);
  const first = bytes[0] as number;
  if (bytes.length === 4) return first !== 0 && first !== 127 && first < 224;
  return first !== 0xff && bytes.subarray(0, 15).some((byte) => byte !== 0);
}
