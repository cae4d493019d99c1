/**
 * A switch of a scenario that routes (`forwarding: routed`). Its ports have no prefixes of their own; all have the switch's one address,
 * as fabrics of unnumbered BGP do (RFC 5549). Hosts are routes over the paths of the topology, those behind the same ports together, and
 * neighbours are known.
 */
import type { NativeIpAddress, NativeRouter } from "../native/types.js";
import { hostIp, hostIpv6, hostMac, routerIp, routerIpv6, routerMac } from "../scenario/addresses.js";
import type { Fabric, FabricPort } from "../scenario/fabric.js";
import type { NextHopGroups } from "../scenario/topology.js";
import type { Scenario } from "../scenario/types.js";
import { addressBytes } from "../wire/address.js";

const kHostBits = { 4: 32, 6: 128 } as const;
/** Most host bits of a prefix: addresses of hosts begin at a multiple of 2 to this power. */
const kMostBits = 16;

/** Number of the switch at which a host is; undefined where that does not route. */
export function gatewayOf(fabric: Fabric, host: number): number | undefined {
  const { neighbour } = fabric.attachment(host);
  return neighbour.forwarding === "routed" ? fabric.device(neighbour.name) : undefined;
}

/** Hosts, whose addresses are 1 and up, in blocks of a power of 2 that go the same way: the first of each, and the bits that differ. */
function prefixesOf(groupOfHost: Uint16Array): { first: number; bits: number; group: number }[] {
  const found: { first: number; bits: number; group: number }[] = [];
  for (let first = 0, end = 0; first < groupOfHost.length; ) {
    const group = groupOfHost[first] as number;
    while (end < groupOfHost.length && groupOfHost[end] === group) end++;
    const aligned = 31 - Math.clz32((first + 1) & -(first + 1));
    const bits = Math.min(aligned, 31 - Math.clz32(end - first), kMostBits);
    found.push({ first, bits, group });
    first += 2 ** bits;
  }
  return found;
}

/** @param versions Versions of IP that hosts speak. */
export function fabricRouter(
  { switches }: Scenario,
  fabric: Fabric,
  index: number,
  { groups, groupOfHost }: NextHopGroups,
  versions: readonly (4 | 6)[],
): NativeRouter {
  const ports = fabric.ports[index] as FabricPort[];
  const addressOf = (device: number, version: 4 | 6): NativeIpAddress => {
    const host = device - switches.length;
    if (version === 4) return { version, bytes: host < 0 ? routerIp(device) : hostIp(host) };
    return { version, bytes: addressBytes(host < 0 ? routerIpv6(device) : hostIpv6(host)) };
  };
  const macOf = (device: number) => (device < switches.length ? routerMac(device) : hostMac(device - switches.length));
  const whole = (device: number, version: 4 | 6) => ({
    address: addressOf(device, version),
    length: kHostBits[version],
  });
  return {
    mac: routerMac(index),
    interfaces: ports.map((_, port) => ({
      port,
      vlan: 0,
      addresses: versions.map((version) => whole(index, version)),
    })),
    routes: versions.flatMap((version) => {
      const ways = groups.map((group) =>
        [...group].map((port) => ({
          interface: port,
          gateway: addressOf((ports[port] as FabricPort).peer, version),
          weight: 1,
        })),
      );
      return prefixesOf(groupOfHost).flatMap(({ first, bits, group }) => {
        const own = ways[group];
        const { address, length } = whole(switches.length + first, version);
        return own === undefined ? [] : [{ prefix: { address, length: length - bits }, ways: own }];
      });
    }),
    neighbours: versions.flatMap((version) =>
      ports.map(({ peer }, port) => ({
        address: addressOf(peer, version),
        interface: port,
        port,
        mac: macOf(peer),
      })),
    ),
    neighbour_capacity: Math.max(16, 2 * versions.length * ports.length),
  };
}
