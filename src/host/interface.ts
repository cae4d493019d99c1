/** Facts about the interfaces that a daemon takes over. */

import { spawnSync } from "node:child_process";
import { WeirError } from "../base/error.js";
import { macNumber } from "../base/mac.js";
import { missingTool } from "./tools.js";

/** Facts about an interface that a device needs. */
export interface InterfaceFacts {
  mtu: number;
  mac: number;
}

/** Throws WeirError when there is no such interface or namespace. */
export type InspectInterface = (name: string, namespace: string | undefined) => InterfaceFacts;

/** Fields of `ip -json address` that are read here. */
interface IpLink {
  mtu: number;
  address?: string;
  addr_info?: { family?: string; local?: string; prefixlen?: number; scope?: string; tentative?: boolean }[];
}

/** MTU and MAC address of an interface, in a network namespace given by its path or in this process's own. */
export const inspectInterface: InspectInterface = (name, namespace): InterfaceFacts => {
  const link = ipLink(name, namespace);
  return { mtu: link.mtu, mac: macNumber(link.address ?? "") ?? 0 };
};

/** Those of the addresses that the kernel has on the interface. */
export function kernelAddresses(addresses: readonly string[], name: string, namespace: string | undefined): string[] {
  const kernels = (ipLink(name, namespace).addr_info ?? []).map(({ local }) => local);
  return addresses.filter((address) => kernels.includes(address));
}

/**
 * The addresses that the kernel has on the interface, with their prefixes, IPv4 first; but not those of the link alone, and those
 * that it still looks for duplicates of. An interface that is down has them as well.
 */
export function ownAddresses(name: string): string[] {
  const all = ipLink(name, undefined).addr_info ?? [];
  const own = all.filter(({ scope, tentative }) => scope !== "link" && tentative !== true);
  return ["inet", "inet6"].flatMap((version) =>
    own.filter(({ family }) => family === version).map(({ local, prefixlen }) => `${local}/${prefixlen}`),
  );
}

/** The kernel's gateway for all that is not on the interface's link; undefined: it has none there. */
export function defaultGateway(name: string, ipv6: boolean): string | undefined {
  const { status, stdout } = spawnSync("ip", [ipv6 ? "-6" : "-4", "-json", "route", "show", "default", "dev", name], {
    encoding: "utf8",
  });
  const [route] = status === 0 && stdout !== "" ? (JSON.parse(stdout) as { gateway?: string }[]) : [];
  return route?.gateway;
}

/** Asks the kernel, not /sys: a process may have entered a network namespace and still see the /sys of another. */
function ipLink(name: string, namespace: string | undefined): IpLink {
  const ip = ["ip", "-json", "address", "show", "dev", name];
  const [program, ...args] = namespace === undefined ? ip : ["nsenter", `--net=${namespace}`, "--", ...ip];
  const { status, stdout, stderr, error } = spawnSync(program as string, args, { encoding: "utf8" });
  if (error) throw missingTool(program as string, error);
  if (/does not exist/.test(stderr)) throw noInterface(name, namespace);
  if (/failed to execute ip/.test(stderr)) throw missingTool("ip");
  if (status !== 0) throw noNamespace(namespace ?? "own", stderr.trim());
  return (JSON.parse(stdout) as IpLink[])[0] as IpLink;
}

function noInterface(name: string, namespace: string | undefined): WeirError {
  const where = namespace === undefined ? "" : ` in ${namespace}`;
  return new WeirError(`there is no interface ${name}${where}`, { hint: "ip link lists the interfaces there are" });
}

function noNamespace(path: string, reason: string | undefined, cause?: unknown): WeirError {
  return new WeirError(`cannot enter the network namespace ${path}: ${reason ?? "unknown reason"}`, {
    hint: "ip netns list shows named ones, which are at /run/netns/NAME; entering needs CAP_SYS_ADMIN",
    cause,
  });
}
