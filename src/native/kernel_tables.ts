/**
 * The kernel's tables of routes and neighbours in a network namespace, by rtnetlink(7): what is read of them, from messages of any
 * bytes. Numbers are those of <linux/rtnetlink.h> and <linux/neighbour.h>.
 */
import { attributesIn, dump } from "./netlink.js";

const kFamily = { any: 0, inet: 2, inet6: 10 } as const;
const kGet = { link: 18, route: 26, neighbour: 30 } as const;
const kRoute = { destination: 1, interface: 4, gateway: 5, metric: 6, multipath: 9, table: 15, via: 18 } as const;
const kNeighbour = { address: 1, linkAddress: 2 } as const;
const kLinkName = 3;
const kTable = { main: 254, local: 255 } as const;
const kCloned = 0x200;
/** The mask is of RTNH_F_DEAD and RTNH_F_LINKDOWN. */
const kDead = 1 | 16;
/** The mask is NUD_PERMANENT. */
const kPermanent = 0x80;

/** Kinds by rtm_type. */
const kKinds = new Map([
  [1, "forward"],
  [2, "own"],
  [6, "blackhole"],
  [7, "unreachable"],
  [8, "unreachable"],
] as const);

export type KernelRouteKind = "forward" | "own" | "blackhole" | "unreachable";

export interface KernelWay {
  /** Number of the interface. */
  interface: number;
  /** Address of 4 or 16 bytes; undefined: the destination is on the link. */
  gateway: Buffer | undefined;
  weight: number;
}

export interface KernelRoute {
  /** The 4 or 16 bytes of an address, and the length of its prefix. */
  address: Buffer;
  length: number;
  kind: KernelRouteKind;
  /** The lowest metric counts. */
  metric: number;
  /** Next hops whose link is up. */
  ways: KernelWay[];
}

/** A neighbour of the table that does not go by itself. */
export interface KernelNeighbour {
  interface: number;
  address: Buffer;
  mac: number;
}

/** Names of interfaces by their numbers. */
export function readLinks(socket: number): Map<number, string> {
  return new Map(
    dump(socket, kGet.link, Buffer.alloc(16)).flatMap((link) => {
      const name = attributesIn(link, 16).get(kLinkName)?.toString("latin1").replace(/\0.*$/s, "");
      return link.length < 16 || name === undefined ? [] : [[link.readInt32LE(4), name] as const];
    }),
  );
}

/** Reads the tables main and local, again and again: a route that was there before is the same object, and not parsed again. */
export class RouteReader {
  #known = new Map<string, KernelRoute | undefined>();

  /** @throws Error why they cannot be read. */
  read(socket: number): KernelRoute[] {
    const before = this.#known;
    this.#known = new Map();
    return [kFamily.inet, kFamily.inet6].flatMap((family) => {
      const request = Buffer.alloc(12);
      request[0] = family;
      return dump(socket, kGet.route, request).flatMap((message) => {
        const key = message.toString("latin1");
        // The buffer is copied: else the route would keep all that was read with it.
        const route = before.has(key) ? before.get(key) : parseRoute(Buffer.from(new Uint8Array(message).buffer));
        this.#known.set(key, route);
        return route ?? [];
      });
    });
  }
}

export function readNeighbours(socket: number): KernelNeighbour[] {
  return dump(socket, kGet.neighbour, Buffer.alloc(12)).flatMap((message) => parseNeighbour(message) ?? []);
}

/** Parses a struct rtmsg and its attributes. Undefined: the route is none that forwards packets. */
export function parseRoute(message: Buffer): KernelRoute | undefined {
  if (message.length < 12) return undefined;
  const [family = 0, length = 0, sourceLength = 0, tos = 0, shortTable = 0] = message;
  const bytes = bytesOf(family);
  const kind = kKinds.get(message[7] as never);
  const attributes = attributesIn(message, 12);
  const table = wordOf(attributes.get(kRoute.table)) ?? shortTable;
  const meant = kind === "own" ? table === kTable.local : table === kTable.main;
  const flags = message.readUInt32LE(8);
  if (bytes === 0 || kind === undefined || !meant || sourceLength !== 0 || tos !== 0 || (flags & kCloned) !== 0)
    return undefined;
  const address = attributes.get(kRoute.destination) ?? Buffer.alloc(bytes);
  if (address.length !== bytes || length > bytes * 8) return undefined;
  const metric = wordOf(attributes.get(kRoute.metric)) ?? 0;
  const several = attributes.get(kRoute.multipath);
  const number = wordOf(attributes.get(kRoute.interface));
  const gateway = attributes.get(kRoute.gateway);
  if (kind !== "forward") return { address, length, kind, metric, ways: [] };
  if (several !== undefined) return { address, length, kind, metric, ways: waysIn(several, bytes) };
  if (number === undefined || (gateway !== undefined && gateway.length !== bytes)) return undefined;
  // RTA_VIA is a gateway of the other IP version.
  const via = attributes.has(kRoute.via);
  const ways = (flags & kDead) === 0 && !via ? [{ interface: number, gateway, weight: 1 }] : [];
  return { address, length, kind, metric, ways };
}

/** Parses an RTA_MULTIPATH: each of its ways is a struct rtnexthop and its attributes. */
function waysIn(bytes: Buffer, addressBytes: number): KernelWay[] {
  const ways: KernelWay[] = [];
  for (let at = 0; at + 8 <= bytes.length; ) {
    const length = bytes.readUInt16LE(at);
    if (length < 8 || at + length > bytes.length) break;
    const hop = bytes.subarray(at, at + length);
    const [, , flags = 0, weight = 0] = hop;
    const attributes = attributesIn(hop, 8);
    const gateway = attributes.get(kRoute.gateway);
    // A gateway of the other IP version is a different attribute, RTA_VIA.
    const taken = attributes.size === 0 || gateway?.length === addressBytes;
    if ((flags & kDead) === 0 && taken)
      ways.push({ interface: hop.readInt32LE(4), gateway, weight: Math.min(weight + 1, 255) });
    at += (length + 3) & ~3;
  }
  return ways;
}

/** Parses a struct ndmsg and its attributes. Undefined: the neighbour is not a permanent one with a MAC address. */
export function parseNeighbour(message: Buffer): KernelNeighbour | undefined {
  if (message.length < 12) return undefined;
  const attributes = attributesIn(message, 12);
  const address = attributes.get(kNeighbour.address);
  const mac = attributes.get(kNeighbour.linkAddress);
  if ((message.readUInt16LE(8) & kPermanent) === 0 || mac?.length !== 6) return undefined;
  const bytes = bytesOf(message[0] as number);
  if (bytes === 0 || address?.length !== bytes) return undefined;
  return { interface: message.readInt32LE(4), address, mac: mac.readUIntBE(0, 6) };
}

/** Bytes of an address; 0: the family is of no IP version. */
const bytesOf = (family: number) => (family === kFamily.inet ? 4 : family === kFamily.inet6 ? 16 : 0);

const wordOf = (value: Buffer | undefined) => (value?.length === 4 ? value.readUInt32LE() : undefined);
