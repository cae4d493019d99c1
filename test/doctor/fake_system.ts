/** A machine of the test's making; left alone it is healthy. */

import type { ProgramOutput, System } from "../../src/host/doctor/system.js";
import type { InterfaceProbe } from "../../src/native/types.js";
import { kVeth } from "../daemon/probes.js";

export interface FakeMachine {
  nodeVersion?: string;
  uid?: number;
  cpus?: { present: number; allowed: number };
  /** Files by path; undefined takes one away. */
  files?: Record<string, string | undefined>;
  folders?: Record<string, string[]>;
  /** Outputs by program and arguments; undefined: no such program. */
  programs?: Record<string, ProgramOutput | undefined>;
  /** Interfaces as the native core sees them. */
  probes?: Record<string, InterfaceProbe>;
  /** Programs that are not on PATH. */
  missing?: string[];
  native?: Error;
  rawSocket?: Error;
  sleep?: number;
  controlPlace?: ReturnType<System["controlPlace"]>;
}

export const ok = (stdout = ""): ProgramOutput => ({ status: 0, stdout, stderr: "" });
export const failed = (stderr: string): ProgramOutput => ({ status: 1, stdout: "", stderr });

/** CapEff of /proc/self/status. */
export const capabilities = (...bits: number[]) =>
  `Name:\tnode\nCapEff:\t${bits
    .reduce((mask, bit) => mask | (1n << BigInt(bit)), 0n)
    .toString(16)
    .padStart(16, "0")}\n`;

export const limits = (memory: string, files = "1048576", nice = "0") =>
  `Limit                     Soft Limit           Hard Limit           Units
Max open files            ${files}               1048576              files
Max locked memory         ${memory}              unlimited            bytes
Max nice priority         ${nice}                    0
`;

export const link = (ifname: string, more: object = {}) => ({
  ifname,
  flags: ["BROADCAST", "UP", "LOWER_UP"],
  mtu: 1500,
  ...more,
});

export const kProtocols = "protocol  size\nPACKET    1600\nXDP   1088\nUDP    1344\n";
export const kUdpHeader =
  "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

const kFiles = {
  "/proc/self/maps": "7f00-7f01 r-xp 0 fe:00 1   /opt/weir/build-cmake/Release/weir.node\n",
  "/proc/sys/kernel/osrelease": "6.12.3-generic\n",
  "/proc/net/protocols": kProtocols,
  "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
  "/proc/self/status": capabilities(12, 13, 14, 21, 23),
  "/proc/self/uid_map": "         0          0 4294967295\n",
  "/proc/self/limits": limits("8388608"),
  "/proc/self/cgroup": "0::/user.slice\n",
  "/proc/sys/kernel/sched_autogroup_enabled": "1\n",
  "/proc/1/comm": "systemd\n",
  "/proc/net/udp": kUdpHeader,
};

const kBuilt = ["libweir-preload.so", "libweir-rdmav34.so", "weir.node"];
const kLibrary = "/lib/x86_64-linux-gnu/libibverbs.so.1";

const kPrograms = {
  "ldconfig -p": ok(`\tlibibverbs.so.1 (libc6,x86-64) => ${kLibrary}\n`),
  [`grep -aoE IBVERBS_PRIVATE_[0-9]+ ${kLibrary}`]: ok("IBVERBS_PRIVATE_34\n"),
  "stat -L -c %t:%T /dev/null": ok("1:3\n"),
  "unshare --user --map-root-user --net true": ok(),
  "systemctl --version": ok("systemd 252 (252.39-1)\n"),
  "ip -json link show": ok(JSON.stringify([link("lo", { flags: ["LOOPBACK", "UP", "LOWER_UP"] }), link("up0")])),
};

const kProbes = { lo: { ...kVeth, kind: "", driver: "", loopback: true }, up0: kVeth };

export function machine(with_: FakeMachine = {}): System {
  const files: Record<string, string | undefined> = { ...kFiles, ...with_.files };
  const programs: Record<string, ProgramOutput | undefined> = { ...kPrograms, ...with_.programs };
  return {
    nodeVersion: with_.nodeVersion ?? "20.17.0",
    uid: with_.uid ?? 0,
    cpus: with_.cpus ?? { present: 4, allowed: 4 },
    readText: (path) => files[path],
    readLink: () => undefined,
    list: (path) => with_.folders?.[path] ?? (path === "/opt/weir/build-cmake/Release" ? kBuilt : []),
    find: (program) => (with_.missing?.includes(program) ? undefined : `/usr/bin/${program}`),
    run: (program, args) => programs[[program, ...args].join(" ")],
    probe: (name) => (with_.native === undefined ? { ...kProbes, ...with_.probes }[name] : undefined),
    controlPlace: () => with_.controlPlace ?? { path: "/run/weir", by: "root", problem: undefined },
    loadNative() {
      if (with_.native) throw with_.native;
    },
    loadRawSocket() {
      if (with_.rawSocket) throw with_.rawSocket;
    },
    measureSleep: () => with_.sleep ?? 160_000,
    measureClock: () => 40,
  };
}
