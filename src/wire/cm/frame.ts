/**
 * Frames between the general services interfaces (queue pair 1) of two channel adapters: UD SEND ONLY with one MAD of 256 bytes,
 * over UDP and IPv4 or IPv6, as Linux rxe puts them on the wire. IBTA volume 1, 9.3 and 13.5; annex A17.
 */

import { addressBytes } from "../address.js";
import { icrc, internetChecksum } from "../checksum.js";
import {
  kBth,
  kEthernetHeader,
  kHopLimit,
  kIcrc,
  kIpv4Header,
  kIpv6Header,
  kProtocolUdp,
  kRocePort,
  kUdpHeader,
} from "../headers.js";
import { type IpHeader, readIp } from "../icmp.js";
import { kEtherType, newFrame } from "./link.js";

export const kMad = 256;
const kDeth = 8;
const kDatagram = kUdpHeader + kBth + kDeth + kMad + kIcrc;

/** Source port of all of rxe's MADs: they need not be spread over paths. */
export const kMadSourcePort = 55410;
const kUdSendOnly = 0x64;
const kDefaultPartition = 0xffff;
const kGsiQpn = 1;
const kGsiQkey = 0x8001_0000;
const kAckRequest = 0x8000_0000;

/** MAC addresses are 48-bit numbers, IP addresses canonical text. */
export interface MadFrame {
  destinationMac: number;
  sourceMac: number;
  source: string;
  destination: string;
  /** 24 bits. */
  psn: number;
  /** 256 bytes. */
  mad: Buffer;
}

/** `identification`, 16 bits, is IPv4's. @throws RangeError when the addresses are not of one family. */
export function buildMadFrame(frame: MadFrame, identification: number): Buffer {
  const source = addressBytes(frame.source);
  const destination = addressBytes(frame.destination);
  if (source.length !== destination.length) throw new RangeError("addresses of two families");
  const isIpv6 = source.length === 16;
  const header = isIpv6 ? kIpv6Header : kIpv4Header;
  const type = isIpv6 ? kEtherType.ipv6 : kEtherType.ipv4;
  const bytes = newFrame(frame.destinationMac, frame.sourceMac, type, header + kDatagram);
  const packet = bytes.subarray(kEthernetHeader);
  if (isIpv6) {
    packet.writeUInt8(0x60, 0);
    packet.writeUInt16BE(kDatagram, 4);
    packet.set([kProtocolUdp, kHopLimit], 6);
    packet.set(source, 8);
    packet.set(destination, 24);
  } else {
    packet.writeUInt8(0x45, 0);
    packet.writeUInt16BE(packet.length, 2);
    packet.writeUInt16BE(identification, 4);
    packet.writeUInt16BE(0x4000, 6); // don't fragment
    packet.set([kHopLimit, kProtocolUdp], 8);
    packet.set(source, 12);
    packet.set(destination, 16);
    packet.writeUInt16BE(internetChecksum(packet.subarray(0, kIpv4Header)), 10);
  }

  const udp = packet.subarray(header);
  udp.writeUInt16BE(kMadSourcePort, 0);
  udp.writeUInt16BE(kRocePort, 2);
  udp.writeUInt16BE(kDatagram, 4); // checksum 0: none, as annex A17 has it
  const bth = udp.subarray(kUdpHeader);
  bth.writeUInt8(kUdSendOnly, 0);
  bth.writeUInt16BE(kDefaultPartition, 2);
  bth.writeUInt32BE(kGsiQpn, 4);
  bth.writeUInt32BE(kAckRequest + frame.psn, 8); // nobody acknowledges UD, but rxe sets the bit
  const deth = bth.subarray(kBth);
  deth.writeUInt32BE(kGsiQkey, 0);
  deth.writeUInt32BE(kGsiQpn, 4);
  frame.mad.copy(deth, kDeth);
  packet.writeUInt32LE(icrc(packet), packet.length - kIcrc);
  return bytes;
}

/** Returns undefined unless the frame is whole, carries one MAD from queue pair 1 to queue pair 1, and its ICRC is right. */
export function readMadFrame(frame: Buffer): MadFrame | undefined {
  const ip = readUdp(frame);
  if (ip === undefined || ip.packet.length !== ip.header + kDatagram) return;
  const udp = ip.packet.subarray(ip.header);
  const bth = udp.subarray(kUdpHeader);
  const deth = bth.subarray(kBth);
  // The partition's membership bit is not compared: a limited member may ask a full one.
  const isGsi =
    udp.readUInt16BE(2) === kRocePort &&
    udp.readUInt16BE(4) === kDatagram &&
    bth.readUInt8(0) === kUdSendOnly &&
    (bth.readUInt8(1) & 0x3f) === 0 && // no padding, transport version 0
    (bth.readUInt16BE(2) & 0x7fff) === (kDefaultPartition & 0x7fff) &&
    (bth.readUInt32BE(4) & 0xff_ffff) === kGsiQpn &&
    deth.readUInt32BE(0) === kGsiQkey &&
    (deth.readUInt32BE(4) & 0xff_ffff) === kGsiQpn;
  if (!isGsi || ip.packet.readUInt32LE(ip.packet.length - kIcrc) !== icrc(ip.packet)) return;
  return {
    destinationMac: frame.readUIntBE(0, 6),
    sourceMac: frame.readUIntBE(6, 6),
    source: ip.source,
    destination: ip.destination,
    psn: bth.readUInt32BE(8) & 0xff_ffff,
    mad: deth.subarray(kDeth, kDeth + kMad),
  };
}

/** The IP packet without Ethernet's padding, and its header. */
function readUdp(frame: Buffer): (IpHeader & { packet: Buffer }) | undefined {
  const packet = frame.subarray(kEthernetHeader);
  const ip = readIp(packet);
  if (ip === undefined || ip.protocol !== kProtocolUdp || ip.total > packet.length) return;
  if (frame.readUInt16BE(12) !== (ip.version === 4 ? kEtherType.ipv4 : kEtherType.ipv6)) return;
  if (ip.version === 4 && internetChecksum(packet.subarray(0, ip.header)) !== 0) return;
  return { ...ip, packet: packet.subarray(0, ip.total) };
}
