/** Asks a NIC of the core for the MAC addresses of others: native/endpoint/nic_neighbours.h. */
import { asWeirError, WeirError } from "../base/error.js";
import { nativeAddress } from "../native/ip_address.js";
import type { NativeWorker } from "../native/types.js";
import { canonicalAddress, isGroup, macOfGroup } from "../wire/address.js";
import type { Resolver } from "../wire/cm/link.js";

export interface NeighbourOptions {
  worker: Pick<NativeWorker, "resolve">;
  /** The NIC's MAC address. */
  mac: number;
  /** Returns the own addresses of now, in the order of the NIC's configuration. */
  addresses: () => readonly string[];
  /** The one from which is asked. */
  from: string;
  /** Returns the next hop towards an address. */
  route: (address: string) => string;
}

/** Finds the MAC address of the next hop towards an address, or of the group that it is. Fails with a WeirError when nobody answers within three seconds. */
export function neighboursOf({ worker, mac, addresses, from: given, route }: NeighbourOptions): Resolver {
  const from = canonicalAddress(given);
  return {
    async resolve(address) {
      const hop = nextHop(address, from, route);
      const all = addresses().map(canonicalAddress);
      const own = all.indexOf(from);
      if (own < 0) throw new WeirError(`the NIC has the address ${from} no more`, { hint: "send from another of its" });
      if (all.includes(hop)) return mac;
      if (isGroup(hop)) return macOfGroup(hop);
      const found = await asWeirError(() => worker.resolve(0, own, nativeAddress(hop)));
      if (found === undefined) throw new WeirError(`${hop} was not resolved: the device was closed`);
      if (found === 0) throw unanswered(hop, from);
      return found;
    },
  };
}

function nextHop(address: string, from: string, route: NeighbourOptions["route"]): string {
  let destination: string;
  try {
    destination = canonicalAddress(address);
  } catch (cause) {
    throw new WeirError(`${address} is not an IP address`, { cause, hint: "give an address, not a name" });
  }
  const hop = isGroup(destination) ? destination : canonicalAddress(route(destination));
  if (hop.includes(":") !== from.includes(":")) {
    throw new WeirError(`${address} cannot be reached from ${from}`, {
      hint: "both must be IPv4 addresses, or both IPv6",
    });
  }
  return hop;
}

function unanswered(hop: string, from: string): WeirError {
  const what = from.includes(":") ? "neighbour solicitations" : "ARP requests";
  return new WeirError(`${hop} does not answer ${what} from ${from}`, {
    hint: "check that it is up, has this address, and is on the same link (or that the route to it names a gateway)",
  });
}
