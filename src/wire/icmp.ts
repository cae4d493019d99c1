/** ICMP and ICMPv6 (RFC 792, RFC 4443) as far as connections have to do with them: "destination unreachable", and checksums. */
import { addressBytes } from "./address.js";
import { internetChecksum } from "./checksum.js";
import { kProtocol } from "./headers.js";
import { type IpEnds, type IpPacket, readIp } from "./ip.js";

const kIcmpHeader = 8;
/** Numbers by IP version: protocol, and types of messages; code of "port unreachable". */
const kIcmp = {
  4: { protocol: kProtocol.icmp, unreachable: 3, port: 3 },
  6: { protocol: kProtocol.icmpv6, unreachable: 1, port: 4 },
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
