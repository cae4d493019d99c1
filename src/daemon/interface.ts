/** What a daemon has to know about the interfaces that it takes over. */

import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import type { InspectInterface, InterfaceFacts } from "../config/daemon.js";
import { WeirError } from "../config/error.js";
import { missingTool } from "../lab/tools.js";

/** What `ip -json address` tells, in part. */
interface IpLink {
  mtu: number;
  address?: string;
  addr_info?: { local?: string }[];
}

/** MTU and MAC address of an interface, in a network namespace given by its path or in this process's own. */
export const inspectInterface: InspectInterface = (name, namespace): InterfaceFacts => {
  if (namespace !== undefined) {
    const link = ipLink(name, namespace);
    return { mtu: link.mtu, mac: macNumber(link.address ?? "") };
  }
  const read = (file: string) => readFileSync(`/sys/class/net/${name}/${file}`, "utf8").trim();
  try {
    return { mtu: Number(read("mtu")), mac: macNumber(read("address")) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw noInterface(name, undefined);
  }
};

/** Does the kernel have this IPv4 address, in the namespace of the interface? */
export function kernelHasAddress(address: string, name: string, namespace: string | undefined): boolean {
  const locals =
    namespace === undefined
      ? Object.values(networkInterfaces()).flatMap((list) => list?.map((entry) => entry.address) ?? [])
      : (ipLink(name, namespace).addr_info ?? []).map(({ local }) => local);
  return locals.includes(address);
}

/** Descriptors of network namespaces by their paths, each opened once. */
export class Namespaces {
  readonly #descriptors = new Map<string, number>();

  /** -1 for the process's own. */
  descriptor(path: string | undefined): number {
    if (path === undefined) return -1;
    const known = this.#descriptors.get(path);
    if (known !== undefined) return known;
    try {
      const opened = openSync(path, "r");
      this.#descriptors.set(path, opened);
      return opened;
    } catch (error) {
      throw noNamespace(path, (error as NodeJS.ErrnoException).code, error);
    }
  }

  close(): void {
    for (const descriptor of this.#descriptors.values()) closeSync(descriptor);
    this.#descriptors.clear();
  }
}

function ipLink(name: string, namespace: string): IpLink {
  const args = [`--net=${namespace}`, "--", "ip", "-json", "address", "show", "dev", name];
  const { status, stdout, stderr, error } = spawnSync("nsenter", args, { encoding: "utf8" });
  if (error) throw missingTool("nsenter", error);
  if (/does not exist/.test(stderr)) throw noInterface(name, namespace);
  if (/failed to execute ip/.test(stderr)) throw missingTool("ip");
  if (status !== 0) throw noNamespace(namespace, stderr.trim());
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

function macNumber(text: string): number {
  return /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(text) ? Number.parseInt(text.replaceAll(":", ""), 16) : 0;
}
