/** Checks the kernel: what packet sockets can do, how threads are scheduled, clocks and timers. */

import type { InterfaceProbe } from "../../native/types.js";
import { about, type Check } from "./report.js";
import type { System } from "./system.js";

/** Features that the af_packet backend uses, with the Linux version that brought each. */
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
  // The list has families that the kernel has, built in or loaded.
  const protocols = system.readText("/proc/net/protocols") ?? "";
  const family = (name: string) => new RegExp(`^${name}\\s`, "m").test(protocols);
  return [
    checkPacketSockets(release, atLeast, family("PACKET")),
    checkXdp(family("XDP"), system.probe("lo")),
    checkLiveFrames(release, atLeast(5, 18), system.probe("lo")),
    checkSlices(release, atLeast(6, 12)),
    checkTimer(system.measureSleep()),
    checkClock(system),
  ];
}

type AtLeast = (major: number, minor: number) => boolean;

function checkPacketSockets(release: string, atLeast: AtLeast, there: boolean): Check {
  const check = about("kernel", "packet-sockets", "packet sockets");
  const missing = kPacketFeatures.filter(([, major, minor]) => !atLeast(major, minor));
  const lacks = missing.map(([name, major, minor]) => `${name} (Linux ${major}.${minor})`).join(", ");
  const impact = "the af_packet backend: weir lab, weir switch and weir nic do not run";
  if (missing.length > 0) return check.fail(`Linux ${release} lacks ${lacks}`, impact, "Linux 4.20 or later");
  const all = kPacketFeatures.map(([name]) => name).join(", ");
  if (there) return check.ok(`Linux ${release}: ${all}`);
  const unless = `${impact} where the kernel cannot load it`;
  return check.warning(`Linux ${release}, af_packet not loaded`, unless, "modprobe af_packet");
}

/** Asks a probe of lo: both are allowed, or not, whatever the interface. */
function checkXdp(there: boolean, probe: InterfaceProbe | undefined): Check {
  const check = about("kernel", "xdp-sockets", "AF_XDP sockets");
  if (!there) return check.ok("not in this kernel: af_packet serves everywhere");
  if (probe === undefined) return check.ok("in this kernel; not tried without the native core");
  const { xdp_sockets: sockets, xdp_programs: programs } = probe;
  if (sockets === "" && programs === "") return check.ok("sockets and programs allowed: backend af_xdp, both ways");
  const remedy = "root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF";
  if (sockets !== "") {
    return check.warning(`not allowed (${sockets})`, "backend af_xdp does not start; auto uses af_packet", remedy);
  }
  const impact = "backend af_xdp sends only, and `receive: af_xdp` does not start";
  return check.warning(`sockets allowed, programs not (${programs})`, impact, remedy);
}

function checkLiveFrames(release: string, there: boolean, probe: InterfaceProbe | undefined): Check {
  const check = about("kernel", "live-frames", "live XDP frames");
  if (!there) return check.ok(`not in Linux ${release} (5.18): auto does without, transmit: live does not start`);
  if (probe === undefined) return check.ok("in this kernel; not tried without the native core");
  const { live_frames: refusal = "" } = probe;
  if (refusal === "") return check.ok("allowed: auto sends them to a veth whose other end runs an XDP program");
  return check.ok(
    `not allowed (${refusal}; CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN): auto does without, transmit: live does not start`,
  );
}

function checkSlices(release: string, short: boolean): Check {
  const check = about("kernel", "slices", "short slices");
  if (short) return check.ok("a poll thread that wakes up runs at once (EEVDF, Linux 6.12)");
  return check.warning(
    `Linux ${release} has one slice for all threads`,
    "poll threads may wait milliseconds for a busy CPU: larger scales in labs, later CNPs and pauses",
    "Linux 6.12 or later, or keep the CPUs of Weir free of other work",
  );
}

function checkTimer(sleep: number): Check {
  const check = about("kernel", "timer", "timers");
  const found = `a sleep of 100 us takes ${Math.round(sleep / 1000)} us (median of 21)`;
  if (sleep < 1_000_000) return check.ok(found);
  const impact = "pacing, CNPs and pauses are late; labs need a larger scale";
  return check.warning(found, impact, "a kernel with CONFIG_HIGH_RES_TIMERS, or a less busy machine");
}

/** Clocks that user space reads without a system call, on x86 and Arm. */
const kFastClocks = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "stp", "riscv_clocksource"];

function checkClock(system: System): Check {
  const check = about("kernel", "clock", "clock source");
  const folder = "/sys/devices/system/clocksource/clocksource0";
  const source = system.readText(`${folder}/current_clocksource`)?.trim();
  const found = `${source ?? "unknown"}, ${Math.round(system.measureClock())} ns to read it from JavaScript`;
  if (source === undefined || kFastClocks.includes(source)) return check.ok(found);
  const others = system.readText(`${folder}/available_clocksource`)?.split(/\s+/) ?? [];
  const better = others.find((name) => kFastClocks.includes(name));
  const impact = "every turn of a poll loop reads the clock, with this one by a system call";
  return check.warning(found, impact, better && `echo ${better} > ${folder}/current_clocksource`);
}
