/** Checks interfaces of this network namespace, and says who has the RoCEv2 port. */

import type { InterfaceProbe } from "../../native/types.js";
import { kRocePort } from "../../wire/headers.js";
import { chooseBackend, kSuperFrameRate } from "../backend.js";
import { describeKind, describeXdp, macControl, offloadsOn } from "../port_probe.js";
import { about, type Check } from "./report.js";
import type { System } from "./system.js";

/** Most interfaces that are shown; hosts of containers have thousands. */
const kMostInterfaces = 32;

export function checkNetwork(system: System): Check[] {
  const links = readLinks(system);
  if (links === undefined) {
    return [kInterfaces.warning("unknown: ip tells no details (see tools)"), ...checkPort(system)];
  }
  const shown = links.filter((link) => !link.loopback).slice(0, kMostInterfaces);
  const rest = links.filter((link) => !link.loopback).length - shown.length;
  return [
    ...shown.map((link) => checkInterface(system, link)),
    ...(shown.length === 0
      ? [
          kInterfaces.warning(
            "none but lo in this network namespace: nothing to judge",
            "weir nic and weir switch have no interface to run on; labs make their own",
          ),
        ]
      : []),
    ...(rest > 0 ? [kInterfaces.ok(`and ${rest} more, not looked at`)] : []),
    ...checkRxe(system),
    ...checkPort(system),
  ];
}

const kInterfaces = about("network", "interfaces", "interfaces");

interface Link {
  name: string;
  loopback: boolean;
  up: boolean;
  mtu: number;
}

interface IpLink {
  ifname: string;
  flags: string[];
  mtu: number;
}

/** Reads links from ip rather than /sys, which may show another namespace. */
function readLinks(system: System): Link[] | undefined {
  const output = system.run("ip", ["-json", "link", "show"]);
  if (output === undefined || output.status !== 0) return undefined;
  try {
    return (JSON.parse(output.stdout) as IpLink[]).map(({ ifname, flags, mtu }) => ({
      name: ifname,
      loopback: flags.includes("LOOPBACK"),
      up: flags.includes("UP") && flags.includes("LOWER_UP"),
      mtu,
    }));
  } catch {
    return undefined;
  }
}

function checkInterface(system: System, link: Link): Check {
  const check = about("network", `interface:${link.name}`, link.name);
  const state = `${link.up ? "up" : "down"}, MTU ${link.mtu}`;
  const probe = system.probe(link.name);
  if (probe === undefined) return check.ok(`${state}; the native core would tell more`);
  const { receive_queues: queues } = probe;
  const found = [
    `${describeKind(probe)}, ${state}`,
    ...(probe.master === "" ? [] : [`member of ${`${probe.master_kind} ${probe.master}`.trim()}`]),
    `offloads on: ${offloadsOn(probe)?.join(" ") || "none"}`,
    ...(queues === undefined ? [] : [`${queues} receive queue${queues === 1 ? "" : "s"}`]),
    ...nodeOf(system, link.name),
    `XDP: ${describeXdp(probe)}`,
    describePfc(probe),
    describeBackends(link.name, probe),
  ].join("; ");
  const problems = problemsOf(link.name, probe);
  if (problems.length === 0) return check.ok(found);
  const all = (part: "impact" | "remedy") => problems.map((problem) => problem[part]).join("; ");
  return check.warning(found, all("impact"), all("remedy"));
}

/** The node of the memory that the NIC's device is at, on a machine that has several. */
function nodeOf(system: System, name: string): string[] {
  const node = Number(system.readText(`/sys/class/net/${name}/device/numa_node`) ?? -1);
  if (node < 0 || system.list("/sys/devices/system/node").filter((entry) => /^node\d+$/.test(entry)).length < 2)
    return [];
  const cpus = system.readText(`/sys/devices/system/node/node${node}/cpulist`)?.trim();
  return [`at NUMA node ${node}${cpus ? ` (CPUs ${cpus})` : ""}`];
}

function problemsOf(name: string, probe: InterfaceProbe): { impact: string; remedy: string }[] {
  const problems: { impact: string; remedy: string }[] = [];
  const { master, master_kind } = probe;
  if (master !== "") {
    const impact = `${`${master_kind} ${master}`.trim()} takes the frames as well, and a Linux bridge drops PFC frames`;
    problems.push({ impact, remedy: `if Weir is to have it: ip link set ${name} nomaster` });
  }
  if (probe.xdp_attached !== "none") {
    const impact = "an XDP program is attached: frames that it takes reach nobody else";
    problems.push({ impact, remedy: `if it is not wanted: ip link set ${name} xdp off` });
  }
  if (probe.offloads.lro) {
    const impact = "LRO merges frames for good: what crosses a weir switch may be larger than the MTU";
    problems.push({ impact, remedy: `ethtool -K ${name} lro off` });
  }
  if (probe.pause.rx || probe.pause.tx) {
    const impact = "the NIC sends and obeys PAUSE by itself, all priorities at once, unseen by Weir";
    problems.push({ impact, remedy: `ethtool -A ${name} autoneg off rx off tx off` });
  }
  return problems;
}

function describePfc(probe: InterfaceProbe): string {
  const { reaches, reason } = macControl(probe);
  const state = { yes: "works", no: "not possible here", unlikely: "not to be expected here", unknown: "unknown" }[
    reaches
  ];
  return `PFC: ${state}, ${reason}`;
}

/** Says what `backend: auto` would pick, for a switch's port and for a NIC's. */
function describeBackends(name: string, probe: InterfaceProbe): string {
  const backend = { receive: "auto", transmit: "auto", xdp_mode: "auto", ring: 512 } as const;
  const pick = (role: "switch" | "nic", rate: number) => {
    const { receive, transmit, reason } = chooseBackend(
      role,
      { interface: name, rate, mtu: probe.mtu, backend },
      probe,
    );
    return `${receive === transmit ? receive : `${receive} in, ${transmit} out`} (${reason})`;
  };
  const [free, fast, shaped] = [pick("switch", 0), pick("nic", kSuperFrameRate), pick("switch", 1)];
  if (free === shaped) return `backend auto: ${free}`;
  return `backend auto: ${free}; for weir nic of 10 Gb/s or more: ${fast}; with a rate, or for weir nic below 10 Gb/s: ${shaped}`;
}

/** Finds software RoCE of the kernel: a device that has no hardware below and counts as rxe does. */
function checkRxe(system: System): Check[] {
  const folder = "/sys/class/infiniband";
  return system
    .list(folder)
    .filter((name) => system.list(`${folder}/${name}/ports/1/hw_counters`).includes("sent_pkts"))
    .map((name) => {
      const parent = system.readText(`${folder}/${name}/parent`)?.trim();
      return about("network", `rxe:${name}`, name).warning(
        `rxe, software RoCE of the kernel${parent ? `, on ${parent}` : ""}: it has UDP ${kRocePort}`,
        `weir nic on ${parent ?? "its interface"} with the same address: both answer every packet`,
        `give weir nic an address of its own, or: rdma link delete ${name}`,
      );
    });
}

/** Reads lines of /proc/net/udp: "sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode". */
function checkPort(system: System): Check[] {
  const check = about("network", "udp-4791", `UDP ${kRocePort}`);
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
    return [check.ok(found)];
  }
  // Sockets of the kernel itself have no inode.
  const found = owner.inode === "0" ? "held by the kernel: rxe, or a tunnel" : `held by a process of uid ${owner.uid}`;
  const impact = "RoCEv2 packets to the kernel's addresses go to it as well";
  return [check.warning(found, impact, `find it: ss -uanp sport = :${kRocePort}`)];
}
