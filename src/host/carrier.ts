/** An interface that exists and is to be a link's end: its state by the kernel, and why it cannot carry the link. */
import { spawnSync } from "node:child_process";
import { WeirError } from "../base/error.js";
import { macNumber } from "../base/mac.js";
import { inUserNamespace } from "./rootless.js";
import { missingTool } from "./tools.js";

/** Counters of frames and errors since the interface is there. */
const kLosses = ["rx_dropped", "rx_errors", "tx_dropped", "tx_errors"] as const;
export type CarrierLosses = Record<(typeof kLosses)[number], number>;

export interface Carrier {
  name: string;
  mtu: number;
  mac: number;
  up: boolean;
  /** Kind as in `ip -details link`: vxlan, veth ...; "": hardware. */
  kind: string;
  /** Interface below a tunnel, if it is known: its MTU, and the bytes that the tunnel adds. */
  below?: { name: string; mtu: number; overhead: number };
  losses: CarrierLosses;
}

/** Fields of `ip -json -details -statistics link` that are read here. */
interface IpLink {
  mtu: number;
  address?: string;
  flags?: string[];
  operstate?: string;
  linkinfo?: { info_kind?: string; info_data?: { link?: string; remote6?: string; group6?: string; local6?: string } };
  stats64?: Record<"rx" | "tx", { errors: number; dropped: number }>;
}

/** Outer IP header, UDP, VXLAN, and the inner Ethernet header (RFC 7348, section 5). */
const kVxlan = { ipv4: 50, ipv6: 70 };

/** @throws WeirError when there is no such interface in this process's network namespace. */
export function inspectCarrier(name: string): Carrier {
  const link = ipLink(name);
  const { linkinfo } = link;
  const below = linkinfo?.info_kind === "vxlan" ? linkinfo.info_data?.link : undefined;
  const { remote6, group6, local6 } = linkinfo?.info_data ?? {};
  const overhead = [remote6, group6, local6].some((address) => address !== undefined) ? kVxlan.ipv6 : kVxlan.ipv4;
  const { rx, tx } = link.stats64 ?? { rx: { errors: 0, dropped: 0 }, tx: { errors: 0, dropped: 0 } };
  return {
    name,
    mtu: link.mtu,
    mac: macNumber(link.address ?? "") ?? 0,
    // A tunnel's state is not known; it carries while it is up.
    up: (link.flags ?? []).includes("UP") && link.operstate !== "DOWN" && link.operstate !== "LOWERLAYERDOWN",
    kind: linkinfo?.info_kind ?? "",
    ...belowOf(below, overhead),
    losses: { rx_dropped: rx.dropped, rx_errors: rx.errors, tx_dropped: tx.dropped, tx_errors: tx.errors },
  };
}

/**
 * @param needed MTU of the link, bytes.
 * @param where Names the link in messages.
 * @returns what is questionable, one sentence each. @throws WeirError when it cannot carry the link.
 */
export function checkCarrier({ name, mtu, up, below }: Carrier, needed: number, where: string): string[] {
  if (!up) {
    throw new WeirError(`${name}, the end of ${where}, is down`, { hint: `ip link set ${name} up` });
  }
  if (mtu < needed) {
    const most = below === undefined ? undefined : below.mtu - below.overhead;
    const hint =
      most === undefined || most >= needed
        ? `ip link set ${name} mtu ${needed}`
        : `${below?.name} below it carries ${most}: ip link set ${below?.name} mtu ${needed + (below?.overhead ?? 0)}, or give topology.link.mtu: ${most}`;
    throw new WeirError(`${name} has an MTU of ${mtu}, and ${where} needs ${needed}`, { hint });
  }
  if (below === undefined || below.mtu >= needed + below.overhead) return [];
  return [
    `${below.name} has an MTU of ${below.mtu}: frames of ${where} in the tunnel ${name} need ${needed + below.overhead}, and longer ones are sent in fragments or lost (ip link set ${below.name} mtu ${needed + below.overhead}, or topology.link.mtu: ${below.mtu - below.overhead})`,
  ];
}

/** Frames that it has lost since `before`, by the kernel's name of the counter; zeros are left out. */
export function carrierLosses(before: Carrier, after: Carrier): Partial<CarrierLosses> {
  const grown = kLosses.map((name) => [name, after.losses[name] - before.losses[name]] as const);
  return Object.fromEntries(grown.filter(([, count]) => count > 0));
}

/** Returns nothing if the interface is in another network namespace, and so has no name here. */
function belowOf(name: string | undefined, overhead: number): Pick<Carrier, "below"> {
  try {
    return name === undefined ? {} : { below: { name, mtu: ipLink(name).mtu, overhead } };
  } catch {
    return {};
  }
}

function ipLink(name: string): IpLink {
  const { status, stdout, stderr, error } = spawnSync(
    "ip",
    ["-json", "-details", "-statistics", "link", "show", "dev", name],
    { encoding: "utf8" },
  );
  if (error) throw missingTool("ip", error);
  if (/does not exist/.test(stderr)) {
    const hint = inUserNamespace()
      ? "a lab without root sees no interfaces but its own: run it as root, or in a container that has the interface and CAP_SYS_ADMIN"
      : `make it first, such as: ip link add ${name} type vxlan id 42 dev DEV remote ADDRESS dstport 4789`;
    throw new WeirError(`there is no interface ${name}`, { hint });
  }
  if (status !== 0) throw new WeirError(`ip link show dev ${name}: ${stderr.trim()}`);
  return (JSON.parse(stdout) as IpLink[])[0] as IpLink;
}
