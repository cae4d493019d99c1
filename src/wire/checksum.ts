/** Computes checksums of RoCEv2 over IPv4 and IPv6, of whole buffers. */
import { crc32 } from "node:zlib";
import { kIcrc, kIpv4Header, kIpv6Header, kUdpHeader } from "./headers.js";

/** The internet checksum (RFC 1071) of the parts one after the other; only the last may have an odd length. */
export function internetChecksum(...parts: readonly Uint8Array[]): number {
  let sum = 0;
  for (const part of parts) {
    for (let i = 0; i < part.length; i += 2) sum += ((part[i] as number) << 8) | (part[i + 1] ?? 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/**
 * Invariant CRC of a whole RoCEv2 packet (IBTA annex A17) that starts with its IP header and ends with four bytes for the ICRC:
 * CRC-32 over eight bytes of ones and the packet up to the ICRC, in which every field that a router may change counts as ones. It
 * goes out least significant byte first.
 */
export function icrc(packet: Uint8Array): number {
  const masked = Buffer.from(packet.subarray(0, packet.length - kIcrc));
  const first = packet[0] ?? 0;
  const isIpv4 = first >> 4 === 4;
  const udp = isIpv4 ? Math.max(kIpv4Header, (first & 0x0f) * 4) : kIpv6Header;
  // Type of service, time to live, header checksum; or traffic class, flow label, hop limit.
  const mutable = isIpv4 ? [1, 8, 10, 11] : [1, 2, 3, 7];
  if (!isIpv4) masked[0] = first | 0x0f;
  // UDP checksum; FECN and BECN.
  for (const at of [...mutable, udp + 6, udp + 7, udp + kUdpHeader + 4]) masked[at] = 0xff;
  return crc32(masked, crc32(Buffer.alloc(8, 0xff)));
}
