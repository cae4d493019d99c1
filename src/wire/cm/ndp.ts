/** Neighbour solicitation and advertisement of IPv6 over Ethernet (RFC 4861, RFC 2464). MAC addresses are 48-bit numbers. */
import { addressBytes, addressText, isGroup, macBytes, macOfGroup } from "../address.js";
import { kProtocol } from "../headers.js";
import { checksummed, icmpChecksum } from "../icmp.js";
import { buildIp, buildIpFrame, readIpFrame } from "../ip.js";

const kSolicitation = 135;
const kAdvertisement = 136;
const kSourceOption = 1;
const kTargetOption = 2;
const kSolicited = 0x40;
const kOverride = 0x20;
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
  /** Source address of the frame. */
  sourceMac: number;
  target: string;
  /** Link-layer address option: that of the source in a solicitation, of the target in an advertisement. */
  mac?: number;
  /** Flags of an advertisement. */
  solicited: boolean;
  override: boolean;
}

/** Returns undefined if the frame is no such message, or fails a check of RFC 4861, 7.1. */
export function readNeighbourMessage(frame: Buffer): NeighbourMessage | undefined {
  const ip = readIpFrame(frame);
  if (ip?.version !== 6 || !ip.isSound || ip.protocol !== kProtocol.icmpv6 || ip.hopLimit !== kOnLinkHopLimit) return;
  const { source, destination, payload: icmp } = ip;
  if (icmp.length < kMessage) return;
  const type = icmp.readUInt8(0);
  if ((type !== kSolicitation && type !== kAdvertisement) || icmp.readUInt8(1) !== 0) return;
  const target = addressText(icmp.subarray(8, 24));
  if (icmpChecksum(ip, icmp) !== 0 || isGroup(target)) return;

  const options = readOptions(icmp.subarray(kMessage));
  if (options === undefined) return;
  const isSolicitation = type === kSolicitation;
  const mac = options.get(isSolicitation ? kSourceOption : kTargetOption);
  const solicited = !isSolicitation && (icmp.readUInt8(4) & kSolicited) !== 0;
  if (isGroup(destination) && solicited) return;
  if (source === kUnspecified) {
    // Such a host looks whether its address is taken: it has none to be answered at.
    if (!isSolicitation || mac !== undefined || destination !== solicitedNode(target)) return;
  }
  return {
    kind: isSolicitation ? "solicitation" : "advertisement",
    source,
    sourceMac: ip.sourceMac,
    target,
    ...(mac !== undefined && { mac }),
    solicited,
    override: !isSolicitation && (icmp.readUInt8(4) & kOverride) !== 0,
  };
}

/** Asks who has `target`, at the multicast address of those whose address ends like it. */
export function neighbourSolicitation(mac: number, address: string, target: string): Buffer {
  const group = solicitedNode(target);
  return build(macOfGroup(group), mac, address, group, [kSolicitation, 0, target, kSourceOption]);
}

/** The answer to `frame`, or undefined if it is no solicitation for `address`. */
export function neighbourAdvertisement(frame: Buffer, address: string, mac: number): Buffer | undefined {
  const asked = readNeighbourMessage(frame);
  if (asked?.kind !== "solicitation" || asked.target !== address) return;
  if (asked.source === kUnspecified) {
    return build(macOfGroup(kAllNodes), mac, address, kAllNodes, [kAdvertisement, kOverride, address, kTargetOption]);
  }
  const to = asked.mac ?? asked.sourceMac;
  return build(to, mac, address, asked.source, [kAdvertisement, kSolicited | kOverride, address, kTargetOption]);
}

function build(
  to: number,
  mac: number,
  source: string,
  destination: string,
  [type, flags, target, option]: [type: number, flags: number, target: string, option: number],
): Buffer {
  const address = [0, 0, 0, ...addressBytes(target)];
  const icmp = Buffer.from([type, 0, 0, 0, flags, ...address, option, kOption / 8, ...macBytes(mac)]);
  const ends = { source, destination };
  const fields = { ...ends, protocol: kProtocol.icmpv6, hopLimit: kOnLinkHopLimit };
  return buildIpFrame(to, mac, buildIp(fields, checksummed(ends, icmp)));
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

/** Multicast address ff02::1:ff00:0/104 with the last three bytes of an address (RFC 4291, 2.7.1). */
function solicitedNode(address: string): string {
  const group = addressBytes("ff02::1:ff00:0");
  addressBytes(address).copy(group, 13, 13);
  return addressText(group);
}
