/** Daemons without a file: what the command line says in its place. */
import { isIP, isIPv6 } from "node:net";
import { WeirError } from "../base/error.js";
import { defaultGateway, ownAddresses } from "../host/interface.js";
import { kMostNicAddresses } from "../wire/address.js";
import { parsePrefix } from "../wire/prefix.js";
import type { DaemonSource, NicAddresses } from "./kinds.js";

export interface PlainNic {
  interface: string;
  /** Addresses, each with or without a prefix length; none: those that the kernel has on the interface. */
  addresses?: readonly string[] | undefined;
  name?: string | undefined;
  rate?: string | undefined;
  programs: boolean | { direct: true };
}

/** Rate of a NIC that was given none: as much as the host manages. */
const kRate = "100Gbps";
/** Assignments that say where the NIC is, or what its addresses are. */
const kOfAddresses = /^(address|gateway|interface|namespace|ports)\b/;
const kPrefixBits = { 4: 24, 6: 64 } as const;

/**
 * @param set Assignments `path=value` over the fields of nic.yaml that come out.
 * @throws WeirError for an address that is none, and where the kernel has none on the interface.
 */
export function plainNic(
  { interface: netdev, addresses, name, rate, programs }: PlainNic,
  set: readonly string[],
): DaemonSource {
  const now =
    addresses === undefined
      ? kernels(netdev)
      : { addresses: addresses.map((text) => withPrefix(text).address), gateways: [] };
  if (now.addresses.length === 0) {
    throw new WeirError(`the kernel has no address on ${netdev}`, {
      hint: `ip address add 10.0.0.1/24 dev ${netdev}; or give the NIC one of its own: --address 10.0.0.1/24`,
    });
  }
  const follows = addresses === undefined && !set.some((one) => kOfAddresses.test(one));
  return {
    ...source("nic", `weir nic ${netdev}`, set, {
      name: name ?? netdev,
      interface: netdev,
      address: now.addresses,
      ...(now.gateways.length > 0 && { gateway: now.gateways }),
      rate: rate ?? kRate,
      programs,
    }),
    ...(follows && { follow: () => kernels(netdev) }),
  };
}

/** The addresses that the kernel has on the interface, and its gateways there. */
function kernels(netdev: string): NicAddresses {
  const own = ownAddresses(netdev).slice(0, kMostNicAddresses).map(parsePrefix);
  const gateways = [false, true].flatMap((ipv6) => {
    const first = own.find(({ address }) => isIPv6(address) === ipv6);
    const address = first && defaultGateway(netdev, ipv6);
    return first === undefined || address === undefined ? [] : [{ address, prefix: first.length }];
  });
  return { addresses: own.map(({ address }) => address), gateways };
}

export function plainSwitch(
  interfaces: readonly string[],
  name: string | undefined,
  set: readonly string[],
): DaemonSource {
  return source("switch", `weir switch ${interfaces.join(" ")}`, set, {
    name: name ?? "switch",
    ports: interfaces.map((netdev) => ({ interface: netdev })),
  });
}

function source(kind: DaemonSource["kind"], path: string, set: readonly string[], fields: object): DaemonSource {
  return { kind, path, text: JSON.stringify({ ...fields, metrics: false }), set };
}

function withPrefix(text: string): { address: string; length: number } {
  const version = isIP(text);
  return version === 4 || version === 6 ? { address: text, length: kPrefixBits[version] } : parsePrefix(text);
}
