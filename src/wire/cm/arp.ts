/** ARP for IPv4 over Ethernet (RFC 826). MAC addresses are 48-bit numbers, IPv4 addresses dotted text. */
import { addressBytes, addressText, macBytes } from "../address.js";
import { buildEthernet, readEthernet } from "../ethernet.js";
import { kEtherType } from "../headers.js";

/** Hardware Ethernet, protocol IPv4, and the lengths of their addresses. */
const kEthernetIpv4 = Buffer.from("000108000604", "hex");
const kBroadcast = 0xffff_ffff_ffff;
const kLength = 28;
const kRequest = 1;
const kReply = 2;

export interface ArpPacket {
  /** Source address of the frame. */
  sourceMac: number;
  operation: "request" | "reply";
  senderMac: number;
  senderAddress: string;
  targetAddress: string;
}

/** Returns undefined if the frame is no whole ARP packet for IPv4. */
export function readArp(frame: Buffer): ArpPacket | undefined {
  const ethernet = readEthernet(frame);
  if (ethernet?.etherType !== kEtherType.arp || ethernet.payload.length < kLength) return;
  const arp = ethernet.payload;
  const operation = arp.readUInt16BE(6);
  if (!kEthernetIpv4.equals(arp.subarray(0, 6)) || (operation !== kRequest && operation !== kReply)) return;
  return {
    sourceMac: ethernet.source,
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
  return build(arp.sourceMac, kReply, mac, address, arp.senderMac, arp.senderAddress);
}

function build(to: number, operation: number, mac: number, address: string, targetMac: number, target: string): Buffer {
  const sender = [...macBytes(mac), ...addressBytes(address)];
  const receiver = [...macBytes(targetMac), ...addressBytes(target)];
  const arp = Buffer.from([...kEthernetIpv4, 0, operation, ...sender, ...receiver]);
  return buildEthernet(to, mac, kEtherType.arp, arp);
}
