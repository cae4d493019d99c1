/**
 * The table of GIDs of a NIC, as its programs see it: an address keeps its place for as long as the NIC has it, and a new one gets
 * the first that is free, as on Linux.
 */

import { kMostNicAddresses } from "../../wire/address.js";

/** Length of the table. */
export const kGids = kMostNicAddresses;

export class GidTable {
  #places: readonly (string | undefined)[] = Array.from({ length: kGids }, () => undefined);

  /** Addresses by their places; undefined: there is none. */
  get places(): readonly (string | undefined)[] {
    return this.#places;
  }

  /**
   * Takes the addresses that the NIC has now, each once; those beyond the table have no place.
   * @returns whether the table is another one.
   */
  take(addresses: readonly string[]): boolean {
    const places = this.#places.map((address) =>
      address !== undefined && addresses.includes(address) ? address : undefined,
    );
    for (const address of addresses) {
      const free = places.indexOf(undefined);
      if (free >= 0 && !places.includes(address)) places[free] = address;
    }
    const changed = places.some((address, i) => address !== this.#places[i]);
    this.#places = places;
    return changed;
  }
}
