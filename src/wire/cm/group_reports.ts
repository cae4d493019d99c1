/**
 * Tells switches that snoop, and routers, which multicast groups are wanted on this link: reports of IGMPv2 (RFC 2236) and MLDv1
 * (RFC 2710), when a group is joined, again every minute, and when a router asks; and that the last member has left.
 *
 * Reports go out every minute because the kernel alone hears queries if it has the interface too; groups are forgotten
 * after 260 s.
 */
import { addressBytes, addressText, guidOfMac, macOfGroup } from "../address.js";
import { internetChecksum } from "../checksum.js";
import { kEthernetHeader, kIpv4Header, kIpv6Header } from "../headers.js";
import { type Clock, type FrameLink, kEtherType, newFrame, systemClock } from "./link.js";

const kAgainMs = 1000;
const kRefreshMs = 60_000;
/** Most groups at a time. */
const kMostGroups = 4096;

const kIgmp = { protocol: 2, query: 0x11, report: 0x16, leave: 0x17, unit: 100, header: 24, message: 8 };
const kMld = { protocol: 58, query: 130, report: 131, done: 132, unit: 1, header: 48, message: 24 };
/**
 * Longest time to wait, in the units of queries; a query without a time, from before the field was defined, means the same (RFC 2236, 4).
 */
const kMostDelay = { igmp: 100, mld: 10_000 };
const kRouters = { ipv4: "224.0.0.2", ipv6: "ff02::2" };
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
  readonly #ipv4: string;
  readonly #ipv6: string;
  /** Groups by canonical address. */
  readonly #groups = new Map<string, Group>();
  readonly #unsubscribe: () => void;
  #cancelAnswer: (() => void) | undefined;

  constructor({ link, addresses, clock, random }: GroupReportsOptions) {
    this.#link = link;
    this.#clock = clock ?? systemClock;
    this.#random = random ?? Math.random;
    this.#ipv4 = addresses.find((address) => !isIpv6(address)) ?? "0.0.0.0";
    // Reports come from a link-local address, or routers ignore them.
    this.#ipv6 = addressText(Buffer.concat([Buffer.from("fe80000000000000", "hex"), guidOfMac(link.mac)]));
    this.#unsubscribe = link.onFrame((frame) => this.#receive(frame));
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
    const frame = isIpv6(group) ? this.#mld(group, what) : this.#igmp(group, what);
    this.#link.send(frame);
  }

  #igmp(group: string, what: "report" | "leave"): Buffer {
    const to = what === "report" ? group : kRouters.ipv4;
    const frame = newFrame(macOfGroup(to), this.#link.mac, kEtherType.ipv4, kIgmp.header + kIgmp.message);
    const ip = frame.subarray(kEthernetHeader);
    ip.set([0x46, 0xc0], 0); // It has an option; internetwork control.
    ip.writeUInt16BE(kIgmp.header + kIgmp.message, 2);
    ip.set([1, kIgmp.protocol], 8); // Time to live.
    ip.set(addressBytes(this.#ipv4), 12);
    ip.set(addressBytes(to), 16);
    ip.set(kRouterAlert.ipv4, 20);
    ip.writeUInt16BE(internetChecksum(ip.subarray(0, kIgmp.header)), 10);
    const message = ip.subarray(kIgmp.header, kIgmp.header + kIgmp.message);
    message.writeUInt8(kIgmp[what], 0);
    message.set(addressBytes(group), 4);
    message.writeUInt16BE(internetChecksum(message), 2);
    return frame;
  }

  #mld(group: string, what: "report" | "leave"): Buffer {
    const to = what === "report" ? group : kRouters.ipv6;
    const frame = newFrame(macOfGroup(to), this.#link.mac, kEtherType.ipv6, kMld.header + kMld.message);
    const ip = frame.subarray(kEthernetHeader);
    ip.writeUInt8(0x60, 0);
    ip.writeUInt16BE(kRouterAlert.ipv6.length + kMld.message, 4);
    ip.set([0, 1], 6); // Options come next; hop limit.
    ip.set(addressBytes(this.#ipv6), 8);
    ip.set(addressBytes(to), 24);
    ip.set(kRouterAlert.ipv6, kIpv6Header);
    const message = ip.subarray(kMld.header, kMld.header + kMld.message);
    message.writeUInt8(what === "report" ? kMld.report : kMld.done, 0);
    message.set(addressBytes(group), 8);
    const tail = Buffer.from([0, 0, 0, kMld.message, 0, 0, 0, kMld.protocol]);
    message.writeUInt16BE(internetChecksum(ip.subarray(8, kIpv6Header), tail, message), 2);
    return frame;
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

interface Query {
  isIpv6: boolean;
  /** Group that is asked for; undefined: all. */
  group: string | undefined;
  withinMs: number;
}

/** Reads queries of version 2 or 3 of IGMP, and 1 or 2 of MLD, which begin alike; undefined: the frame is none. */
function readQuery(frame: Buffer): Query | undefined {
  if (frame.length < kEthernetHeader + kIpv4Header) return;
  const ip = frame.subarray(kEthernetHeader);
  const isIpv6 = frame.readUInt16BE(12) === kEtherType.ipv6;
  if (!isIpv6 && frame.readUInt16BE(12) !== kEtherType.ipv4) return;
  const isIgmp = !isIpv6 && ip.readUInt8(9) === kIgmp.protocol;
  const isMld =
    isIpv6 && ip.length > kMld.header && ip.readUInt8(6) === 0 && ip.readUInt8(kIpv6Header) === kMld.protocol;
  if (!isIgmp && !isMld) return;
  const at = isIgmp ? (ip.readUInt8(0) & 0x0f) * 4 : kIpv6Header + 8 * (ip.readUInt8(kIpv6Header + 1) + 1);
  const kind = isIgmp ? kIgmp : kMld;
  if (ip.length < at + kind.message || ip.readUInt8(at) !== kind.query) return;
  const address = isIgmp ? ip.subarray(at + 4, at + 8) : ip.subarray(at + 8, at + 24);
  const most = isIgmp ? kMostDelay.igmp : kMostDelay.mld;
  const said = isIgmp ? ip.readUInt8(at + 1) : ip.readUInt16BE(at + 4);
  const group = address.some((byte) => byte !== 0) ? addressText(address) : undefined;
  return { isIpv6, group, withinMs: kind.unit * (said === 0 ? most : Math.min(said, most)) };
}

const isIpv6 = (address: string) => address.includes(":");
