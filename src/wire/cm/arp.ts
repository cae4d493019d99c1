/** ARP for IPv4 over Ethernet (RFC 826). MAC addresses are 48-bit numbers, IPv4 addresses dotted text. */
import { addressBytes, addressText } from "../address.js";
import { kEthernetHeader } from "../headers.js";
import { kEtherType, newFrame } from "./link.js";

/** Hardware Ethernet, protocol IPv4, and the lengths of their addresses. */
const kEthernetIpv4 = Buffer.from("000108000604", "hex");
const kBroadcast = 0xffff_ffff_ffff;
const kLength = 28;
const kRequest = 1;
const kReply = 2;

export interface ArpPacket {
  operation: "request" | "reply";
  senderMac: number;
  senderAddress: string;
  targetAddress: string;
}

/** Returns undefined if the frame is no whole ARP packet for IPv4. */
export function readArp(frame: Buffer): ArpPacket | undefined {
  if (frame.length < kEthernetHeader + kLength || frame.readUInt16BE(12) !== kEtherType.arp) return;
  const arp = frame.subarray(kEthernetHeader);
  const operation = arp.readUInt16BE(6);
  if (!kEthernetIpv4.equals(arp.subarray(0, 6)) || (operation !== kRequest && operation !== kReply)) return;
  return {
    operation: operation === kRequest ? "request" : "reply",
    senderMac: arp.readUIntBE(8, 6),
    senderAddress: addressText(arp.subarray(14, 18)),
    targetAddress: addressText(arp.subarray(24, 28)),
  };
}

/** The broadcast that asks who has `target`. */
export function arpRequest(mac: number, address: string, target: string): Buffer {
  return build(kBroadcast, kRequest, mac, address, 0, target);
}

/** The answer to `frame`, or undefined if it is no request for `address`. */
export function arpReply(frame: Buffer, address: string, mac: number): Buffer | undefined {
  const arp = readArp(frame);
  if (arp?.operation !== "request" || arp.targetAddress !== address) return;
  return build(frame.readUIntBE(6, 6), kReply, mac, address, arp.senderMac, arp.senderAddress);
}

function build(to: number, operation: number, mac: number, address: string, targetMac: number, target: string): Buffer {
  const frame = newFrame(to, mac, kEtherType.arp, kLength);
  const arp = frame.subarray(kEthernetHeader);
  kEthernetIpv4.copy(arp);
  arp.writeUInt16BE(operation, 6);
  arp.writeUIntBE(mac, 8, 6);
  arp.set(addressBytes(address), 14);
  arp.writeUIntBE(targetMac, 18, 6);
  arp.set(addressBytes(target), 24);
  return frame;
}
