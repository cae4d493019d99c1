/**
 * RoCEv2 over IPv4 in TypeScript: builds the probe's frames, reads what arrives. It shares no code with native/wire on purpose:
 * each of the two implementations can testify about the other. Sources: IBTA volume 1, chapter 9 (BTH, RETH, AETH) and annex A17
 * (RoCEv2, ICRC, CNP); RFC 791, 792, 768, 3168.
 */
import { icrc, internetChecksum } from "../wire/checksum.js";
import { kBth, kIcrc, kIpv4Header, kRocePort, kUdpHeader } from "../wire/headers.js";
import { readUnreachable as readAnyUnreachable } from "../wire/icmp.js";
import { readIp } from "../wire/ip.js";

/** ECN field of IPv4 (RFC 3168): names by value. */
export const kEcn = ["not-ect", "ect1", "ect0", "ce"] as const;
export type Ecn = (typeof kEcn)[number];

export const kCnp = 0x81;
export const kAcknowledge = 0x11;
const kWriteOnly = 0x0a;

const kReth = 16;

/** IPv4 addresses are dotted text throughout. */
export interface ProbeFrame {
  source: string;
  destination: string;
  /** UDP source port: entropy for paths of equal cost, 0xc000 to 0xffff by convention. */
  sourcePort: number;
  /** 1 to 65535: the kernel would fill in a zero, and the ICRC covers this field. */
  identification: number;
  /** 0 to 63. */
  dscp: number;
  ecn: Ecn;
  /** Queue pair of the responder, 24 bits. */
  qpn: number;
  /** 24 bits. */
  psn: number;
}

/** The parts of a RoCEv2 packet over IPv4 that the probe wants to know. */
export interface RoceFrame {
  source: string;
  destination: string;
  ttl: number;
  dscp: number;
  ecn: Ecn;
  opcode: number;
  /** Destination queue pair. */
  qpn: number;
  psn: number;
  icrcOk: boolean;
  /** AETH's syndrome, of an acknowledgement. */
  syndrome?: number;
}

/**
 * A reliable-connection RDMA WRITE ONLY of zero bytes that asks for an acknowledgement: whole and valid, yet it names no
 * memory (a zero-length write has its R_Key not checked) and uses up no receive request.
 */
export function buildProbe(frame: ProbeFrame): Buffer {
  const packet = Buffer.alloc(kIpv4Header + kUdpHeader + kBth + kReth + kIcrc);
  packet[0] = 0x45;
  packet[1] = (frame.dscp << 2) | kEcn.indexOf(frame.ecn);
  packet.writeUInt16BE(packet.length, 2);
  packet.writeUInt16BE(frame.identification, 4);
  packet.writeUInt16BE(0x4000, 6); // don't fragment
  packet[8] = 64;
  packet[9] = 17;
  packet.set(address(frame.source), 12);
  packet.set(address(frame.destination), 16);
  packet.writeUInt16BE(internetChecksum(packet.subarray(0, kIpv4Header)), 10);

  const udp = packet.subarray(kIpv4Header);
  udp.writeUInt16BE(frame.sourcePort, 0);
  udp.writeUInt16BE(kRocePort, 2);
  udp.writeUInt16BE(udp.length, 4); // checksum 0: none, as annex A17 has it

  const bth = udp.subarray(kUdpHeader);
  bth[0] = kWriteOnly;
  bth.writeUInt16BE(0xffff, 2); // default partition key
  bth.writeUInt32BE(frame.qpn, 4);
  bth.writeUInt32BE((0x8000_0000 | frame.psn) >>> 0, 8); // the top bit asks for an acknowledgement
  packet.writeUInt32LE(icrc(packet), packet.length - kIcrc);
  return packet;
}

/** Reads an IPv4 packet; undefined if it is not whole, or is not RoCEv2. */
export function readFrame(packet: Buffer): RoceFrame | undefined {
  const ip = readIp(packet);
  if (ip?.version !== 4 || ip.protocol !== 17 || packet.length < ip.total || ip.total < ip.header + kUdpHeader) return;
  if (packet.readUInt16BE(ip.header + 2) !== kRocePort) return;
  const bth = ip.header + kUdpHeader;
  const end = ip.total - kIcrc;
  if (end < bth + kBth) return;
  const opcode = packet.readUInt8(bth);
  return {
    source: ip.source,
    destination: ip.destination,
    ttl: packet.readUInt8(8),
    dscp: ip.tos >> 2,
    ecn: ecnOf(ip.tos),
    opcode,
    qpn: packet.readUInt32BE(bth + 4) & 0xff_ffff,
    psn: packet.readUInt32BE(bth + 8) & 0xff_ffff,
    icrcOk: packet.readUInt32LE(end) === icrc(packet.subarray(0, ip.total)),
    ...(opcode === kAcknowledge && end > bth + kBth && { syndrome: packet.readUInt8(bth + kBth) }),
  };
}

/** An ICMP "destination unreachable" about a RoCEv2 packet. */
export interface Unreachable {
  /** Host that says so. */
  source: string;
  /** RFC 792: 0 network, 1 host, 3 port, 13 prohibited by a filter ... */
  code: number;
  /** Destination of the packet, its source port, and its ECN field as it was when it got there. */
  destination: string;
  sourcePort: number;
  ecn: Ecn;
}

/** Reads an IPv4 packet; undefined if it is not one of ICMP that quotes a packet to the RoCEv2 port. */
export function readUnreachable(packet: Buffer): Unreachable | undefined {
  const refusal = readAnyUnreachable(packet);
  if (refusal?.quoted.destinationPort !== kRocePort) return;
  const { source, code, quoted } = refusal;
  return { source, code, destination: quoted.destination, sourcePort: quoted.sourcePort, ecn: ecnOf(quoted.tos) };
}

/** Names an opcode, or the syndrome of an acknowledgement. */
export function describeFrame({ opcode, syndrome }: Pick<RoceFrame, "opcode" | "syndrome">): string {
  if (opcode === kCnp) return "CNP";
  if (opcode === kAcknowledge && syndrome !== undefined) return describeSyndrome(syndrome);
  return kOpcodes[opcode] ?? `opcode 0x${opcode.toString(16).padStart(2, "0")}`;
}

const kOpcodes: Readonly<Record<number, string>> = {
  0: "SEND FIRST",
  1: "SEND MIDDLE",
  2: "SEND LAST",
  4: "SEND ONLY",
  6: "WRITE FIRST",
  7: "WRITE MIDDLE",
  8: "WRITE LAST",
  [kWriteOnly]: "WRITE ONLY",
  12: "READ REQUEST",
  13: "READ RESPONSE FIRST",
  14: "READ RESPONSE MIDDLE",
  15: "READ RESPONSE LAST",
  16: "READ RESPONSE ONLY",
  [kAcknowledge]: "ACK",
  100: "UD SEND ONLY",
};

/** Names a syndrome of IBTA volume 1, 9.7.5.2.1. */
function describeSyndrome(syndrome: number): string {
  const nak = ["sequence error", "invalid request", "remote access error", "remote operational error"];
  switch (syndrome >> 5) {
    case 0:
      return "ACK";
    case 1:
      return "RNR NAK";
    case 3:
      return `NAK, ${nak[syndrome & 0x1f] ?? `code ${syndrome & 0x1f}`}`;
    default:
      return `AETH syndrome 0x${syndrome.toString(16)}`;
  }
}

function ecnOf(tos: number): Ecn {
  return kEcn[tos & 3] as Ecn;
}

function address(dotted: string): number[] {
  return dotted.split(".").map(Number);
}
