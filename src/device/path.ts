/** The path of packets that a queue pair of a NIC sends. */
import { isIPv6 } from "node:net";
import type { NativePath } from "../native/types.js";
import { addressBytes } from "../wire/address.js";
import { inPrefix } from "../wire/prefix.js";
import { kEct0, udpSourcePort } from "./behaviour.js";
import type { NicDaemonConfig } from "./file/types.js";

/** A NIC that sends. */
export interface Sender {
  readonly mac: number;
  /** VLAN; undefined: untagged. */
  readonly vlan: number | undefined;
  /** Own address for packets to this one. */
  sourceFor(address: string): string;
}

/** The next hop of a NIC, by its own address of that IP version, towards another: itself, or the gateway. */
export function routeFrom(gateways: NicDaemonConfig["gateways"], own: string): (destination: string) => string {
  const gateway = gateways.find(({ address }) => isIPv6(address) === isIPv6(own));
  if (gateway === undefined) return (destination) => destination;
  const link = { address: own, length: gateway.prefix };
  return (destination) => (inPrefix(link, destination) ? destination : gateway.address);
}

const kNowhere = new Uint8Array(16);

/**
 * @param route Undefined: no peer yet; for a queue pair for datagrams only VLAN and priority matter, as its datagrams have their own paths.
 * @param order Number that tells queue pairs to one peer apart, for next-hop groups.
 */
export function pathTo(
  sender: Sender,
  route: { address: string; mac: number } | undefined,
  dscp: number,
  priority: number,
  order: number,
): NativePath {
  const destination = route === undefined ? kNowhere.subarray(0, 4) : addressBytes(route.address);
  const ipv6 = destination.length === 16;
  return {
    destination_mac: route?.mac ?? 0,
    source_mac: sender.mac,
    tagged: sender.vlan !== undefined,
    vlan_tci: sender.vlan === undefined ? 0 : (priority << 13) | sender.vlan,
    ip_version: ipv6 ? 6 : 4,
    source_ip: route === undefined ? kNowhere.subarray(0, 4) : addressBytes(sender.sourceFor(route.address)),
    destination_ip: destination,
    dscp,
    ecn: kEct0,
    udp_source_port: udpSourcePort(order),
  };
}
