/** The addresses of a NIC, as connections of its programs have them. */
import type { ConnectionManager } from "../../wire/cm/connection_manager.js";
import { commonBits } from "../../wire/prefix.js";
import type { ProgramListeners } from "./program_listeners.js";

/** One of the NIC's addresses, and the manager of its connections. */
export interface NicAddress {
  readonly address: string;
  /** Index in the table of GIDs. */
  readonly index: number;
  readonly manager: Pick<ConnectionManager, "connect" | "services">;
  readonly listeners: Pick<ProgramListeners, "listen">;
  /** Fails when nobody is found there. */
  find(address: string): Promise<unknown>;
}

/** Tells whether an address is of no NIC in particular: all addresses, and loopback addresses (like cma_any_addr() of Linux). */
export const isAny = (address: string) => ["0.0.0.0", "::", "::1"].includes(address) || address.startsWith("127.");
export const isIpv6 = (address: string) => address.includes(":");

/** The address from which to send to another: the one with most leading bits in common (RFC 6724, 5, rule 8). */
export function sourceTowards(addresses: readonly NicAddress[], destination: string): NicAddress | undefined {
  const ofVersion = addresses.filter(({ address }) => isIpv6(address) === isIpv6(destination));
  const bits = ofVersion.map(({ address }) => commonBits(address, destination));
  return ofVersion[bits.indexOf(Math.max(...bits))];
}
