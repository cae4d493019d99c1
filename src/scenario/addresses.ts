/** MAC and IP addresses of a scenario's devices: locally administered, and out of 10.87.0.0 and up. */
import { WeirError } from "../base/error.js";

/** Hosts that the addresses from 10.87.0.1 to 10.255.255.254 suffice for. */
const kMostHosts = (256 - 87) * 65_536 - 2;

/** First two bytes of all MAC addresses of a scenario. */
export const kMacPrefix = 0x0257;

export function hostMac(index: number): number {
  return 0x0257_4500_0000 + index + 1;
}

/** @throws WeirError when there are no more addresses. */
export function hostIp(index: number): Uint8Array {
  if (index >= kMostHosts) {
    throw new WeirError(`${index + 1} hosts are more than there are addresses for`, {
      hint: `use ${kMostHosts} hosts at most`,
    });
  }
  const number = 87 * 65_536 + index + 1;
  return Uint8Array.of(10, number >> 16, (number >> 8) & 0xff, number & 0xff);
}

/** IPv6 address of the same host: unique local ones (RFC 4193). */
export function hostIpv6(index: number): string {
  return `fd57:4549:5200::${(index + 1).toString(16)}`;
}

/** MAC address of a switch that routes, the same at all its ports. */
export function routerMac(index: number): number {
  return 0x0257_5200_0000 + index + 1;
}

/** IP address of the same switch, which all its ports share; from 10.86.0.1 on. */
export function routerIp(index: number): Uint8Array {
  return Uint8Array.of(10, 86, (index + 1) >> 8, (index + 1) & 0xff);
}

export function routerIpv6(index: number): string {
  return `fd57:4549:5253::${(index + 1).toString(16)}`;
}

/** MAC address of a flow that has one of its own, by its position in the scenario. */
export function flowMac(index: number): number {
  return 0x0257_5100_0000 + index + 1;
}

/** MAC address of a switch's port. Ports are in rows of 256: the first rows of all switches, then their second ones, and so on. */
export function switchMac(index: number, port: number): number {
  return 0x0257_5300_0000 + (port >> 8) * 0x40_0000 + index * 256 + (port & 0xff);
}
