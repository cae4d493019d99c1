/** Daemons without a file: what the command line says in its place. */
import { isIP, isIPv6 } from "node:net";
import { WeirError } from "../base/error.js";
import { defaultGateway, ownAddresses } from "../host/interface.js";
import { parsePrefix } from "../wire/prefix.js";
import type { DaemonSource } from "./kinds.js";

export interface PlainNic {
  interface: string;
  /** Addresses, each with or without a prefix length; none: those that the kernel has on the interface. */
  addresses?: readonly string[] | undefined;
  name?: string | undefined;
  rate?: string | undefined;
  programs: boolean;
}

/** Rate of a NIC that was given none: as much as the host manages. */
const kRate = "100Gbps";
const kPrefixBits = { 4: 24, 6: 64 } as const;

/**
 * @param set Assignments `path=value` over the fields of nic.yaml that come out.
 * @throws WeirError for an address that is none, and where the kernel has none on the interface.
 */
export function plainNic(
  { interface: netdev, addresses, name, rate, programs }: PlainNic,
  set: readonly string[],
): DaemonSource {
  const given = (addresses ?? ownAddresses(netdev)).map(withPrefix);
  if (given.length === 0) {
    throw new WeirError(`the kernel has no address on ${netdev}`, {
      hint: `ip address add 10.0.0.1/24 dev ${netdev}; or give the NIC one of its own: --address 10.0.0.1/24`,
    });
  }
  const gateways = given.flatMap(({ address, length }) => {
    const gateway = addresses === undefined ? defaultGateway(netdev, isIPv6(address)) : undefined;
    return gateway === undefined ? [] : [{ address: gateway, prefix: length }];
  });
  return source("nic", `weir nic ${netdev}`, set, {
    name: name ?? netdev,
    interface: netdev,
    address: given.map(({ address }) => address),
    ...(gateways.length > 0 && { gateway: gateways }),
    rate: rate ?? kRate,
    programs,
  });
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
