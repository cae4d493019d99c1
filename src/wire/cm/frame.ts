/**
 * Frames between the general services interfaces (queue pair 1) of two channel adapters: UD SEND ONLY with one MAD of 256 bytes,
 * over UDP and IPv4 or IPv6, as Linux rxe puts them on the wire. IBTA volume 1, 9.3 and 13.5; annex A17.
 */

import { icrc } from "../checksum.js";
import { kBth, kEthernetHeader, kIcrc, kProtocol, kRocePort, kUdpHeader } from "../headers.js";
import { buildIp, buildIpFrame, readIpFrame } from "../ip.js";

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
  const { source, destination } = frame;
  const udp = Buffer.alloc(kDatagram);
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
  const packet = buildIp({ source, destination, protocol: kProtocol.udp, identification }, udp);
  packet.writeUInt32LE(icrc(packet), packet.length - kIcrc);
  return buildIpFrame(frame.destinationMac, frame.sourceMac, packet);
}

/** Returns undefined unless the frame is whole, carries one MAD from queue pair 1 to queue pair 1, and its ICRC is right. */
export function readMadFrame(frame: Buffer): MadFrame | undefined {
  const ip = readIpFrame(frame);
  if (ip?.protocol !== kProtocol.udp || !ip.isSound || ip.payload.length !== kDatagram) return;
  const packet = frame.subarray(kEthernetHeader, kEthernetHeader + ip.total);
  const udp = ip.payload;
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
  if (!isGsi || packet.readUInt32LE(packet.length - kIcrc) !== icrc(packet)) return;
  const { destinationMac, sourceMac, source, destination } = ip;
  return {
    destinationMac,
    sourceMac,
    source,
    destination,
    psn: bth.readUInt32BE(8) & 0xff_ffff,
    mad: deth.subarray(kDeth, kDeth + kMad),
  };
}
