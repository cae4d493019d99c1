/** Finds addresses of peers by name as getaddrinfo() does, /etc/hosts included, in the network namespace of the process. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { WeirError } from "../base/error.js";
import type { Device } from "./device.js";

const familyOf = (address: string) => (address.includes(":") ? 6 : 4);

/** The first address of `peer` whose IP version one of the device's addresses has. @throws WeirError if there is none. */
export async function peerAddress(device: Pick<Device, "managers">, peer: string): Promise<string> {
  if (isIP(peer) !== 0) return peer;
  const found = await lookup(peer, { all: true, verbatim: true }).catch((cause) => {
    throw new WeirError(`${peer} is neither an IP address nor a name that is known here`, {
      cause,
      hint: `give an address, or add the name to /etc/hosts: getent hosts ${peer}`,
    });
  });
  const families = new Set(device.managers.map(({ address }) => familyOf(address)));
  const fitting = found.find(({ family }) => families.has(family as 4 | 6));
  if (fitting !== undefined) return fitting.address;
  const own = device.managers.map(({ address }) => address).join(" and ");
  throw new WeirError(`${peer} is ${found.map(({ address }) => address).join(", ")}, and the NIC has ${own}`, {
    hint: "both must be IPv4 addresses, or both IPv6",
  });
}
