/** Neighbour solicitation and advertisement of IPv6 over Ethernet (RFC 4861, RFC 2464). MAC addresses are 48-bit numbers. */
import { addressBytes, addressText, macOfGroup } from "../address.js";
import { internetChecksum } from "../checksum.js";
import { kEthernetHeader, kIpv6Header } from "../headers.js";
import { kEtherType, newFrame } from "./link.js";

const kSolicitation = 135;
const kAdvertisement = 136;
const kSourceOption = 1;
const kTargetOption = 2;
const kSolicited = 0x40;
const kOverride = 0x20;
const kNextHeaderIcmp = 58;
/** Lengths: ICMPv6 up to the options; an option with a MAC address. */
const kMessage = 24;
const kOption = 8;
/** No router forwards a packet with this hop limit, so it comes from this link. */
const kOnLinkHopLimit = 255;
export const kUnspecified = "::";
const kAllNodes = "ff02::1";

export interface NeighbourMessage {
  kind: "solicitation" | "advertisement";
  source: string;
  target: string;
  /** Link-layer address option: that of the source in a solicitation, of the target in an advertisement. */
  mac?: number;
  /** Flags of an advertisement. */
  solicited: boolean;
  override: boolean;
}

/** Returns undefined if the frame is no such message, or fails a check of RFC 4861, 7.1. */
export function readNeighbourMessage(frame: Buffer): NeighbourMessage | undefined {
  if (frame.length < kEthernetHeader + kIpv6Header + kMessage || frame.readUInt16BE(12) !== kEtherType.ipv6) return;
  const ip = frame.subarray(kEthernetHeader);
  const length = ip.readUInt16BE(4);
  if (ip.readUInt8(0) >> 4 !== 6 || ip.readUInt8(6) !== kNextHeaderIcmp || ip.readUInt8(7) !== kOnLinkHopLimit) return;
  if (length < kMessage || ip.length < kIpv6Header + length) return;
  const icmp = ip.subarray(kIpv6Header, kIpv6Header + length);
  const type = icmp.readUInt8(0);
  if ((type !== kSolicitation && type !== kAdvertisement) || icmp.readUInt8(1) !== 0) return;
  if (checksum(ip, icmp) !== 0 || isMulticast(icmp.subarray(8, 24))) return;

  const options = readOptions(icmp.subarray(kMessage));
  if (options === undefined) return;
  const isSolicitation = type === kSolicitation;
  const mac = options.get(isSolicitation ? kSourceOption : kTargetOption);
  const source = addressText(ip.subarray(8, 24));
  const destination = ip.subarray(24, 40);
  const solicited = !isSolicitation && (icmp.readUInt8(4) & kSolicited) !== 0;
  if (isMulticast(destination) && solicited) return;
  if (source === kUnspecified) {
    // Such a host looks whether its address is taken: it has none to be answered at.
    if (!isSolicitation || mac !== undefined || !destination.equals(solicitedNode(icmp.subarray(8, 24)))) return;
  }
  return {
    kind: isSolicitation ? "solicitation" : "advertisement",
    source,
    target: addressText(icmp.subarray(8, 24)),
    ...(mac !== undefined && { mac }),
    solicited,
    override: !isSolicitation && (icmp.readUInt8(4) & kOverride) !== 0,
  };
}

/** Asks who has `target`, at the multicast address of those whose address ends like it. */
export function neighbourSolicitation(mac: number, address: string, target: string): Buffer {
  const group = solicitedNode(addressBytes(target));
  return build(macOfGroup(addressText(group)), mac, address, group, [kSolicitation, 0, target, kSourceOption]);
}

/** The answer to `frame`, or undefined if it is no solicitation for `address`. */
export function neighbourAdvertisement(frame: Buffer, address: string, mac: number): Buffer | undefined {
  const asked = readNeighbourMessage(frame);
  if (asked?.kind !== "solicitation" || asked.target !== address) return;
  if (asked.source === kUnspecified) {
    const all = addressBytes(kAllNodes);
    return build(macOfGroup(kAllNodes), mac, address, all, [kAdvertisement, kOverride, address, kTargetOption]);
  }
  const to = asked.mac ?? frame.readUIntBE(6, 6);
  const source = addressBytes(asked.source);
  return build(to, mac, address, source, [kAdvertisement, kSolicited | kOverride, address, kTargetOption]);
}

function build(
  to: number,
  mac: number,
  source: string,
  destination: Buffer,
  [type, flags, target, option]: [type: number, flags: number, target: string, option: number],
): Buffer {
  const frame = newFrame(to, mac, kEtherType.ipv6, kIpv6Header + kMessage + kOption);
  const ip = frame.subarray(kEthernetHeader);
  ip.writeUInt8(0x60, 0);
  ip.writeUInt16BE(kMessage + kOption, 4);
  ip.set([kNextHeaderIcmp, kOnLinkHopLimit], 6);
  ip.set(addressBytes(source), 8);
  ip.set(destination, 24);
  const icmp = ip.subarray(kIpv6Header);
  icmp.set([type, 0, 0, 0, flags], 0);
  icmp.set(addressBytes(target), 8);
  icmp.set([option, kOption / 8], kMessage);
  icmp.writeUIntBE(mac, kMessage + 2, 6);
  icmp.writeUInt16BE(checksum(ip, icmp), 2);
  return frame;
}

/** Link-layer addresses by type of option; undefined if an option has no length or is cut off. */
function readOptions(options: Buffer): Map<number, number> | undefined {
  const found = new Map<number, number>();
  for (let at = 0; at < options.length; ) {
    const length = at + 1 < options.length ? options.readUInt8(at + 1) * 8 : 0;
    if (length === 0 || at + length > options.length) return;
    if (length === kOption) found.set(options.readUInt8(at), options.readUIntBE(at + 2, 6));
    at += length;
  }
  return found;
}

/** Checksum with the pseudo header of RFC 8200, 8.1: 0 for a message whose checksum is right. */
function checksum(ip: Buffer, icmp: Buffer): number {
  const tail = Buffer.from([0, 0, icmp.length >> 8, icmp.length & 0xff, 0, 0, 0, kNextHeaderIcmp]);
  return internetChecksum(ip.subarray(8, 40), tail, icmp);
}

function isMulticast(address: Buffer): boolean {
  return address[0] === 0xff;
}

/** Multicast address ff02::1:ff00:0/104 with the last three bytes of an address (RFC 4291, 2.7.1). */
function solicitedNode(address: Buffer): Buffer {
  return Buffer.concat([Buffer.from("ff0200000000000000000001ff", "hex"), address.subarray(13)]);
}
