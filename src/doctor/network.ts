/** Interfaces of this network namespace, and who has the RoCEv2 port. */
import type { Check } from "./report.js";
import type { System } from "./system.js";

const kRocePort = 4791;
/** More than a person reads; hosts of containers have thousands. */
const kMostInterfaces = 32;

export function checkNetwork(system: System): Check[] {
  const links = readLinks(system);
  if (links === undefined) {
    const found = "unknown: ip tells no details (see tools)";
    return [
      { id: "interfaces", group: "network", title: "interfaces", status: "warning", found },
      ...checkPort(system),
    ];
  }
  const shown = links.filter((link) => !link.loopback).slice(0, kMostInterfaces);
  const rest = links.filter((link) => !link.loopback).length - shown.length;
  return [
    ...shown.map((link) => checkInterface(system, link)),
    ...(shown.length === 0 ? [note("no interface but lo in this network namespace")] : []),
    ...(rest > 0 ? [note(`and ${rest} more, not looked at`)] : []),
    ...checkRxe(system),
    ...checkPort(system),
  ];
}

function note(found: string): Check {
  return { id: "interfaces", group: "network", title: "interfaces", status: "ok", found };
}

interface Link {
  name: string;
  loopback: boolean;
  up: boolean;
  mtu: number;
  /** As `ip -details` calls it: veth, tun, bridge ...; undefined: hardware, real or a virtual machine's. */
  kind?: string;
  /** What it is a member of: a bridge, a bond. */
  master?: string;
  xdp: boolean;
}

interface IpLink {
  ifname: string;
  flags: string[];
  mtu: number;
  master?: string;
  linkinfo?: { info_kind?: string; info_slave_kind?: string };
  xdp?: unknown;
}

/** From ip rather than /sys, which may show another namespace. */
function readLinks(system: System): Link[] | undefined {
  const output = system.run("ip", ["-details", "-json", "link", "show"]);
  if (output === undefined || output.status !== 0) return undefined;
  try {
    return (JSON.parse(output.stdout) as IpLink[]).map(({ ifname, flags, mtu, master, linkinfo, xdp }) => ({
      name: ifname,
      loopback: flags.includes("LOOPBACK"),
      up: flags.includes("UP") && flags.includes("LOWER_UP"),
      mtu,
      ...(linkinfo?.info_kind !== undefined && { kind: linkinfo.info_kind }),
      ...(master !== undefined && { master: `${linkinfo?.info_slave_kind ?? ""} ${master}`.trim() }),
      xdp: xdp !== undefined,
    }));
  } catch {
    return undefined;
  }
}

/** Kinds whose both ends are software: every frame passes. */
const kTransparent = ["veth", "tun", "tap", "dummy", "netkit"];

function checkInterface(system: System, link: Link): Check {
  const features = readFeatures(system, link.name);
  const { driver } = features;
  const problems: { impact: string; remedy: string }[] = [];
  const what = link.kind === "tun" ? "tun/tap" : (link.kind ?? `hardware${driver === undefined ? "" : ` (${driver})`}`);
  const found = [
    `${what}, ${link.up ? "up" : "down"}, MTU ${link.mtu}`,
    ...(link.master === undefined ? [] : [`member of ${link.master}`]),
    features.offloads === undefined ? "offloads unknown" : `offloads on: ${features.offloads.join(" ") || "none"}`,
    describePfc(link, driver),
  ];
  if (link.master !== undefined) {
    const impact = `${link.master} takes the frames as well, and a Linux bridge drops PFC frames`;
    problems.push({ impact, remedy: `if Weir is to have it: ip link set ${link.name} nomaster` });
  }
  if (link.xdp) {
    const impact = "an XDP program is attached: frames that it takes never reach Weir";
    problems.push({ impact, remedy: `if it is not wanted: ip link set ${link.name} xdp off` });
  }
  if (features.offloads?.includes("lro")) {
    const impact = "LRO merges frames for good: what crosses a weir switch may be larger than the MTU";
    problems.push({ impact, remedy: `ethtool -K ${link.name} lro off` });
  }
  if (features.pauses) {
    const impact = "the NIC sends and obeys PAUSE by itself, all priorities at once, unseen by Weir";
    problems.push({ impact, remedy: `ethtool -A ${link.name} autoneg off rx off tx off` });
  }
  return {
    id: `interface:${link.name}`,
    group: "network",
    title: link.name,
    status: problems.length > 0 ? "warning" : "ok",
    found: found.join("; "),
    ...(problems.length > 0 && {
      impact: problems.map(({ impact }) => impact).join("; "),
      remedy: problems.map(({ remedy }) => remedy).join("; "),
    }),
  };
}

function describePfc({ kind }: Link, driver: string | undefined): string {
  if (kind !== undefined && kTransparent.includes(kind)) return "PFC: works, frames pass unchanged";
  if (kind !== undefined) return `PFC: not to be expected, a ${kind} does not pass its frames on`;
  if (driver === "virtio_net") return "PFC: not to be expected, bridges of hypervisors drop its frames";
  return "PFC: sending works, but most MACs keep the frames they receive (0x8808) from user space";
}

interface Features {
  driver?: string;
  /** Those that change frames; undefined: not known. */
  offloads?: string[];
  pauses: boolean;
}

/** ethtool's names and the short ones that its -K takes. */
const kOffloads = [
  ["tcp-segmentation-offload", "tso"],
  ["generic-segmentation-offload", "gso"],
  ["generic-receive-offload", "gro"],
  ["large-receive-offload", "lro"],
  ["tx-udp-segmentation", "tx-udp-segmentation"],
  ["tx-checksumming", "tx"],
  ["rx-vlan-offload", "rxvlan"],
] as const;

function readFeatures(system: System, name: string): Features {
  const ask = (option: string) => {
    const output = system.run("ethtool", [option, name]);
    return output?.status === 0 ? output.stdout : undefined;
  };
  const on = (text: string, feature: string) => new RegExp(`^\\s*${feature}:\\s+on\\b`, "m").test(text);
  const offloads = ask("-k");
  const pause = ask("-a") ?? "";
  const driver =
    /^driver: (.+)$/m.exec(ask("-i") ?? "")?.[1] ??
    system.readLink(`/sys/class/net/${name}/device/driver`)?.split("/").at(-1);
  return {
    ...(driver !== undefined && { driver }),
    ...(offloads !== undefined && {
      offloads: kOffloads.flatMap(([feature, short]) => (on(offloads, feature) ? [short] : [])),
    }),
    pauses: on(pause, "RX") || on(pause, "TX"),
  };
}

/** Software RoCE of the kernel: a device that has no hardware below and counts as rxe does. */
function checkRxe(system: System): Check[] {
  const folder = "/sys/class/infiniband";
  return system
    .list(folder)
    .filter((name) => system.list(`${folder}/${name}/ports/1/hw_counters`).includes("sent_pkts"))
    .map((name) => {
      const parent = system.readText(`${folder}/${name}/parent`)?.trim();
      return {
        id: `rxe:${name}`,
        group: "network",
        title: name,
        status: "warning",
        found: `rxe, software RoCE of the kernel${parent ? `, on ${parent}` : ""}: it has UDP ${kRocePort}`,
        impact: `weir nic on ${parent ?? "its interface"} with the same address: both answer every packet`,
        remedy: `give weir nic an address of its own, or: rdma link delete ${name}`,
      };
    });
}

/** Lines of /proc/net/udp: "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode". */
function checkPort(system: System): Check[] {
  const check = { id: "udp-4791", group: "network", title: `UDP ${kRocePort}` } as const;
  const tables = ["/proc/net/udp", "/proc/net/udp6"].map((path) => system.readText(path));
  const suffix = `:${kRocePort.toString(16).toUpperCase().padStart(4, "0")}`;
  const owners = tables.flatMap((table) =>
    (table ?? "")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local]) => local?.endsWith(suffix))
      .map((fields) => ({ uid: fields[7], inode: fields[9] })),
  );
  const [owner] = owners;
  if (owner === undefined) {
    const found = "free: the kernel refuses RoCEv2 to its own addresses, unless weir nic or weir probe hold the port";
    return [{ ...check, status: "ok", found }];
  }
  // Sockets of the kernel itself have no inode.
  const found = owner.inode === "0" ? "held by the kernel: rxe, or a tunnel" : `held by a process of uid ${owner.uid}`;
  const impact = "RoCEv2 packets to the kernel's addresses go to it as well";
  return [{ ...check, status: "warning", found, impact, remedy: `find it: ss -uanp sport = :${kRocePort}` }];
}
