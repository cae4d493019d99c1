/** The kernel: what packet sockets can do, how threads are scheduled, clocks and timers. */
import type { InterfaceProbe } from "../../native/types.js";
import type { Check } from "./report.js";
import type { System } from "./system.js";

/** What the af_packet backend uses, by the Linux version that brought it. */
const kPacketFeatures = [
  ["TPACKET_V2", 2, 6],
  ["PACKET_QDISC_BYPASS", 3, 14],
  ["PACKET_VNET_HDR in rings", 4, 6],
  ["PACKET_IGNORE_OUTGOING", 4, 20],
] as const;

export function checkKernel(system: System): Check[] {
  const release = system.readText("/proc/sys/kernel/osrelease")?.trim() ?? "";
  const [major = 0, minor = 0] = release.split(/[.-]/).map(Number);
  const atLeast = (wantedMajor: number, wantedMinor: number) =>
    major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
  // Families that the kernel has, built in or loaded.
  const protocols = system.readText("/proc/net/protocols") ?? "";
  const family = (name: string) => new RegExp(`^${name}\\s`, "m").test(protocols);
  return [
    checkPacketSockets(release, atLeast, family("PACKET")),
    checkXdp(family("XDP"), system.probe("lo")),
    checkSlices(release, atLeast(6, 12)),
    checkTimer(system.measureSleep()),
    checkClock(system),
  ];
}

type AtLeast = (major: number, minor: number) => boolean;

function checkPacketSockets(release: string, atLeast: AtLeast, there: boolean): Check {
  const check = { id: "packet-sockets", group: "kernel", title: "packet sockets" } as const;
  const missing = kPacketFeatures.filter(([, major, minor]) => !atLeast(major, minor));
  const lacks = missing.map(([name, major, minor]) => `${name} (Linux ${major}.${minor})`).join(", ");
  const impact = "the af_packet backend: weir lab, weir switch and weir nic do not run";
  if (missing.length > 0) {
    return {
      ...check,
      status: "fail",
      found: `Linux ${release} lacks ${lacks}`,
      impact,
      remedy: "Linux 4.20 or later",
    };
  }
  const all = kPacketFeatures.map(([name]) => name).join(", ");
  if (there) return { ...check, status: "ok", found: `Linux ${release}: ${all}` };
  return {
    ...check,
    status: "warning",
    found: `Linux ${release}, af_packet not loaded`,
    impact: `${impact} where the kernel cannot load it`,
    remedy: "modprobe af_packet",
  };
}

/** Tried on lo: both are allowed, or not, whatever the interface. */
function checkXdp(there: boolean, probe: InterfaceProbe | undefined): Check {
  const check = { id: "xdp-sockets", group: "kernel", title: "AF_XDP sockets" } as const;
  if (!there) return { ...check, status: "ok", found: "not in this kernel: af_packet serves everywhere" };
  if (probe === undefined)
    return { ...check, status: "ok", found: "in this kernel; not tried without the native core" };
  const { xdp_sockets: sockets, xdp_programs: programs } = probe;
  if (sockets === "" && programs === "") {
    return { ...check, status: "ok", found: "sockets and programs allowed: backend af_xdp, both ways" };
  }
  const [found, impact] =
    sockets === ""
      ? [
          `sockets allowed, programs not (${programs})`,
          "backend af_xdp sends only, and `receive: af_xdp` does not start",
        ]
      : [`not allowed (${sockets})`, "backend af_xdp does not start; auto uses af_packet"];
  return {
    ...check,
    status: "warning",
    found,
    impact,
    remedy: "root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
  };
}

function checkSlices(release: string, short: boolean): Check {
  const check = { id: "slices", group: "kernel", title: "short slices" } as const;
  if (short) return { ...check, status: "ok", found: "a poll thread that wakes up runs at once (EEVDF, Linux 6.12)" };
  return {
    ...check,
    status: "warning",
    found: `Linux ${release} has one slice for all threads`,
    impact: "poll threads may wait milliseconds for a busy CPU: larger scales in labs, later CNPs and pauses",
    remedy: "Linux 6.12 or later, or keep the CPUs of Weir free of other work",
  };
}

function checkTimer(sleep: number): Check {
  const check = { id: "timer", group: "kernel", title: "timers" } as const;
  const found = `a sleep of 100 us takes ${Math.round(sleep / 1000)} us (median of 21)`;
  if (sleep < 1_000_000) return { ...check, status: "ok", found };
  const impact = "pacing, CNPs and pauses are late; labs need a larger scale";
  return {
    ...check,
    status: "warning",
    found,
    impact,
    remedy: "a kernel with CONFIG_HIGH_RES_TIMERS, or a less busy machine",
  };
}

/** Read by user space without a system call, on x86 and Arm. */
const kFastClocks = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "stp", "riscv_clocksource"];

function checkClock(system: System): Check {
  const check = { id: "clock", group: "kernel", title: "clock source" } as const;
  const folder = "/sys/devices/system/clocksource/clocksource0";
  const source = system.readText(`${folder}/current_clocksource`)?.trim();
  const found = `${source ?? "unknown"}, ${Math.round(system.measureClock())} ns to read it from JavaScript`;
  if (source === undefined || kFastClocks.includes(source)) return { ...check, status: "ok", found };
  const others = system.readText(`${folder}/available_clocksource`)?.split(/\s+/) ?? [];
  const better = others.find((name) => kFastClocks.includes(name));
  return {
    ...check,
    status: "warning",
    found,
    impact: "every turn of a poll loop reads the clock, with this one by a system call",
    ...(better !== undefined && { remedy: `echo ${better} > ${folder}/current_clocksource` }),
  };
}
