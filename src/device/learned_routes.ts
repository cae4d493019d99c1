/** Routes and neighbours that a router takes from the kernel's tables: all by its interfaces, except those in its file. */
import type { KernelNeighbour, KernelRoute } from "../native/kernel_tables.js";
import { addressText } from "../wire/address.js";
import { networkOf, type Prefix, prefixText } from "../wire/prefix.js";
import type { LearnedRoute, LearnedTable, RouterConfig } from "./file/router.js";

/** Most ways of one route: NextHopGroups of the native core. */
const kMostWays = 64;

/** Routes that were made of the kernel's, which stay as long as the interfaces do. */
export type LearnedRoutes = WeakMap<KernelRoute, Made>;

interface Made {
  /** Prefix of the route. */
  text: string;
  route: LearnedRoute | undefined;
}

/**
 * @param twins Number in the kernel of each of the router's interfaces; undefined: it is away.
 * @param known Routes of an earlier call with the same interfaces and twins: routes that were there then are the same objects again.
 */
export function learnedTable(
  config: RouterConfig,
  twins: readonly (number | undefined)[],
  routes: readonly KernelRoute[],
  neighbours: readonly KernelNeighbour[],
  known: LearnedRoutes = new WeakMap(),
): LearnedTable {
  const places = new Map(twins.flatMap((number, place) => (number === undefined ? [] : [[number, place] as const])));
  const own = ownPrefixes(config);
  const versions = config.interfaces.map(
    ({ addresses }) => new Set<number>(addresses.map(({ address }) => byteCount(address))),
  );
  const make = (route: KernelRoute): Made => {
    const text = prefixText({ address: addressText(route.address), length: route.length });
    return { text, route: learnedRoute(route, places, versions) };
  };
  // The kernel's own addresses come before all routes; two routes of one metric become one, as in IPv6.
  const rank = (each: KernelRoute) => (each.kind === "own" ? -1 : each.metric);
  const best = new Map<string, { from: KernelRoute; made: Made }>();
  for (const from of routes) {
    if (isOfNoRoute(from.address)) continue;
    const made = known.get(from) ?? make(from);
    known.set(from, made);
    const other = best.get(made.text)?.from;
    if (own.has(made.text)) continue;
    if (other === undefined || rank(from) < rank(other)) {
      best.set(made.text, { from, made });
    } else if (rank(from) === rank(other)) {
      const both = { ...other, ways: [...other.ways, ...from.ways] };
      best.set(made.text, { from: both, made: make(both) });
    }
  }
  return {
    routes: [...best.values()].flatMap(({ made }) => made.route ?? []),
    neighbors: neighbours.flatMap(({ interface: number, address, mac }) => {
      const place = places.get(number);
      const known = config.neighbors.some((neighbor) => neighbor.address === addressText(address));
      if (place === undefined || known || !versions[place]?.has(address.length)) return [];
      return [{ address: addressText(address), interface: place, mac }];
    }),
  };
}

/** Returns undefined if none of its links is up. */
function learnedRoute(
  { address, length, kind, ways }: KernelRoute,
  places: ReadonlyMap<number, number>,
  versions: readonly ReadonlySet<number>[],
): LearnedRoute | undefined {
  const to: Prefix = { address: addressText(address), length };
  if (kind !== "forward") return { to, kind, ways: [] };
  if (ways.length === 0) return undefined;
  const taken = ways.flatMap(({ interface: number, gateway, weight }) => {
    const place = places.get(number);
    if (place === undefined || !versions[place]?.has(address.length)) return [];
    return [{ interface: place, gateway: gateway && addressText(gateway), weight }];
  });
  // The ways are by interfaces that the switch does not have: a shorter prefix of its own must not take those packets elsewhere.
  if (taken.length === 0) return { to, kind: "unreachable", ways: [] };
  const left = taken.length - kMostWays;
  return { to, kind, ways: taken.slice(0, kMostWays), ...(left > 0 && { left_out: left }) };
}

const byteCount = (address: string) => (address.includes(":") ? 16 : 4);

/** Prefixes to which the router has routes by its interfaces, or by its file. */
function ownPrefixes({ interfaces, routes }: RouterConfig): Set<string> {
  const own = interfaces.flatMap(({ addresses }) =>
    addresses.flatMap((prefix) => {
      const { address, length } = prefix;
      const bits = byteCount(address) * 8;
      const first = networkOf(prefix);
      return [`${first}/${length}`, `${address}/${bits}`, `${first}/${bits}`, `${lastOf(prefix)}/${bits}`];
    }),
  );
  return new Set([...own, ...routes.map(({ to }) => prefixText(to))]);
}

/** Last address of a prefix, in IPv4 the broadcast address. */
function lastOf(prefix: Prefix): string {
  if (byteCount(prefix.address) === 16) return prefix.address;
  const bytes = networkOf(prefix).split(".").map(Number);
  return bytes.map((byte, i) => byte | (0xff >> Math.min(8, Math.max(0, prefix.length - 8 * i)))).join(".");
}

/** Whether an address is one of a loopback, a link or a group: those are never routed. */
function isOfNoRoute(address: Buffer): boolean {
  const [first = 0, second = 0] = address;
  if (address.length === 4) return first === 127 || first >= 224 || (first === 169 && second === 254);
  return (
    first === 0xff ||
    (first === 0xfe && second >> 6 === 2) ||
    (address[15] === 1 && address.subarray(0, 15).every((byte) => byte === 0))
  );
}
