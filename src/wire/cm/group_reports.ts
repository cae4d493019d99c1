/**
 * Tells switches that snoop, and routers, which multicast groups are wanted on this link: reports of IGMPv2 (RFC 2236) and MLDv1
 * (RFC 2710), when a group is joined, again every minute, and when a router asks; and that the last member has left.
 *
 * Reports go out every minute because the kernel alone hears queries if it has the interface too; groups are forgotten
 * after 260 s.
 */
import { addressBytes, addressText, guidOfMac, macOfGroup } from "../address.js";
import { kProtocol } from "../headers.js";
import { checksummed } from "../icmp.js";
import { buildIp, buildIpFrame, type IpEnds, readIpFrame } from "../ip.js";
import { type Clock, type FrameLink, systemClock } from "./link.js";

const kAgainMs = 1000;
const kRefreshMs = 60_000;
/** Most groups at a time. */
const kMostGroups = 4096;

/**
 * Types of messages, where these have the group, and their length. The longest time to wait is in `unit` ms; a query without a time,
 * from before the field was defined, means the same (RFC 2236, 4).
 */
const kIgmp = { query: 0x11, report: 0x16, leave: 0x17, group: 4, length: 8, unit: 100, most: 100 };
const kMld = { query: 130, report: 131, leave: 132, group: 8, length: 24, unit: 1, most: 10_000 };
const kRouters = { ipv4: "224.0.0.2", ipv6: "ff02::2" };
const kInternetworkControl = 0xc0;
/** Options that make routers look: one in the IPv4 header, and one of IPv6 in a header of its own, which names the next one. */
const kRouterAlert = { ipv4: Buffer.from("94040000", "hex"), ipv6: Buffer.from("3a00050200000100", "hex") };

export interface GroupReportsOptions {
  link: FrameLink;
  /** Our own addresses, IPv4 and IPv6. */
  addresses: readonly string[];
  clock?: Clock;
  /** Returns a number from 0 to 1. */
  random?: () => number;
}

interface Group {
  members: number;
  cancel(): void;
}

export class GroupReports {
  readonly #link: FrameLink;
  readonly #clock: Clock;
  readonly #random: () => number;
  #ipv4 = "";
  readonly #ipv6: string;
  /** Groups by canonical address. */
  readonly #groups = new Map<string, Group>();
  readonly #unsubscribe: () => void;
  #cancelAnswer: (() => void) | undefined;

  constructor({ link, addresses, clock, random }: GroupReportsOptions) {
    this.#link = link;
    this.#clock = clock ?? systemClock;
    this.#random = random ?? Math.random;
    this.takeAddresses(addresses);
    // Reports come from a link-local address, or routers ignore them.
    this.#ipv6 = addressText(Buffer.concat([Buffer.from("fe80000000000000", "hex"), guidOfMac(link.mac)]));
    this.#unsubscribe = link.onFrame((frame) => this.#receive(frame));
  }

  /** Own addresses are others from now on. */
  takeAddresses(addresses: readonly string[]): void {
    this.#ipv4 = addresses.find((address) => !isIpv6(address)) ?? "0.0.0.0";
  }

  /** Adds one more member. @returns a function that takes it back, or undefined when there is no room for another group. */
  join(group: string): (() => void) | undefined {
    const known = this.#groups.get(group);
    if (known !== undefined) known.members++;
    else if (this.#groups.size >= kMostGroups) return;
    else this.#begin(group);
    let joined = true;
    return () => {
      if (joined) this.#leave(group);
      joined = false;
    };
  }

  /** Leaves all groups. Idempotent. */
  close(): void {
    this.#unsubscribe();
    this.#cancelAnswer?.();
    for (const group of this.#groups.keys()) this.#end(group);
  }

  #begin(name: string): void {
    const group: Group = { members: 1, cancel: () => {} };
    this.#groups.set(name, group);
    const report = (ms: number) => {
      this.#send(name, "report");
      group.cancel = this.#clock.after(ms, () => report(kRefreshMs));
    };
    report(kAgainMs);
  }

  #leave(name: string): void {
    const group = this.#groups.get(name);
    if (group !== undefined && --group.members === 0) this.#end(name);
  }

  #end(name: string): void {
    this.#groups.get(name)?.cancel();
    this.#groups.delete(name);
    this.#send(name, "leave");
  }

  #send(group: string, what: "report" | "leave"): void {
    // Everybody is in these, and they are no router's affair.
    if (group === "224.0.0.1" || /^ff.[01]:/.test(group) || group === "ff02::1") return;
    const [kind, source, routers] = isIpv6(group)
      ? [kMld, this.#ipv6, kRouters.ipv6]
      : [kIgmp, this.#ipv4, kRouters.ipv4];
    const ends = { source, destination: what === "report" ? group : routers };
    const head = Buffer.alloc(kind.group);
    head.writeUInt8(kind[what]);
    const message = checksummed(ends, Buffer.concat([head, addressBytes(group)]));
    const packet = isIpv6(group) ? mldPacket(ends, message) : igmpPacket(ends, message);
    this.#link.send(buildIpFrame(macOfGroup(ends.destination), this.#link.mac, packet));
  }

  /** Answers one query at a time, at a random time within the one that it allows. */
  #receive(frame: Buffer): void {
    const query = this.#groups.size === 0 ? undefined : readQuery(frame);
    if (query === undefined || this.#cancelAnswer !== undefined) return;
    this.#cancelAnswer = this.#clock.after(this.#random() * query.withinMs, () => {
      this.#cancelAnswer = undefined;
      for (const group of this.#groups.keys()) {
        if (isIpv6(group) === query.isIpv6 && (query.group ?? group) === group) this.#send(group, "report");
      }
    });
  }
}

function igmpPacket(ends: IpEnds, message: Buffer): Buffer {
  const [tos, options] = [kInternetworkControl, kRouterAlert.ipv4];
  return buildIp({ ...ends, protocol: kProtocol.igmp, tos, hopLimit: 1, mayFragment: true, options }, message);
}

function mldPacket(ends: IpEnds, message: Buffer): Buffer {
  return buildIp({ ...ends, protocol: kProtocol.hopByHop, hopLimit: 1 }, Buffer.concat([kRouterAlert.ipv6, message]));
}

interface Query {
  isIpv6: boolean;
  /** Group that is asked for; undefined: all. */
  group: string | undefined;
  withinMs: number;
}

/** Reads queries of version 2 or 3 of IGMP, and 1 or 2 of MLD, which begin alike; undefined: the frame is none. */
function readQuery(frame: Buffer): Query | undefined {
  const ip = readIpFrame(frame);
  if (ip === undefined) return;
  const { version, protocol, payload } = ip;
  const isMld = version === 6 && protocol === kProtocol.hopByHop && payload[0] === kProtocol.icmpv6;
  if (!isMld && (version !== 4 || protocol !== kProtocol.igmp)) return;
  const kind = isMld ? kMld : kIgmp;
  const message = isMld ? payload.subarray(8 * ((payload[1] ?? 0) + 1)) : payload;
  if (message.length < kind.length || message.readUInt8(0) !== kind.query) return;
  const address = message.subarray(kind.group, kind.length);
  const said = isMld ? message.readUInt16BE(4) : message.readUInt8(1);
  const group = address.some((byte) => byte !== 0) ? addressText(address) : undefined;
  return { isIpv6: isMld, group, withinMs: kind.unit * (said === 0 ? kind.most : Math.min(said, kind.most)) };
}

const isIpv6 = (address: string) => address.includes(":");
