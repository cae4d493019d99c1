/** Bytes that frames take of a link. The native core has the same figures in native/base/types.h. */

/** Frame bytes around the payload of a middle packet, IPv4, no tag: Ethernet 14, IP 20, UDP 8, BTH 12, ICRC 4. */
export const kHeaderBytes = 58;
/** CN-TAG of a congestion controlled flow (802.1Q clause 33). */
export const kCnTagBytes = 4;
/** Telemetry that switches write into packets, and acknowledgements echo: kTelemetryHeader of native/wire/bth.h. */
export const kTelemetryBytes = 64;
const kPathMtus = [4096, 2048, 1024, 512, 256] as const;
/** Headers below the payload within an IP packet, IPv6 and the longest of the standard's included, as Linux counts them. */
export const kRoceOverhead = 80;

/** The largest path MTU whose packets fit `mtu`, with `more` bytes of headers; undefined: none does. */
export function largestPathMtu(mtu: number, more = 0): (typeof kPathMtus)[number] | undefined {
  return kPathMtus.find((candidate) => candidate + kRoceOverhead + more <= mtu);
}

/** FCS 4, preamble and SFD 8, inter-packet gap 12. */
export const kEthernetOverhead = 24;
/** A frame shorter than this is padded (64 octets with FCS). */
const kMinimumFrame = 60;

/** Bytes of link time that a frame of `length` bytes (no FCS) takes. */
export function wireBytes(length: number): number {
  return Math.max(length, kMinimumFrame) + kEthernetOverhead;
}
