/** Checks CPUs, scheduling of sessions, and the service manager. */
import { checkProcessors } from "./processors.js";
import { about, type Check } from "./report.js";
import type { System } from "./system.js";

export function checkHost(system: System): Check[] {
  const rest = [checkQuota(system), checkAutogroup(system), checkSystemd(system)].flatMap((check) => check ?? []);
  return [checkCpus(system), ...checkProcessors(system), ...rest];
}

function checkCpus({ cpus: { present, allowed } }: System): Check {
  const check = about("host", "cpus", "CPUs");
  const found = allowed === present ? String(present) : `${allowed} of ${present} allowed`;
  if (allowed >= 3) return check.ok(`${found}: poll threads have their own, one is left for the rest`);
  if (allowed === 2) return check.ok(`${found}: a lab's two poll threads share them with everything else`);
  const impact = "switches, NICs, Node.js and the kernel take turns: labs need a larger scale, and may be invalid";
  return check.warning(found, impact, "two CPUs or more");
}

/** A quota stops all threads of the group until the next period: tens of milliseconds. */
function checkQuota(system: System): Check | undefined {
  const path = /^0::(.*)$/m.exec(system.readText("/proc/self/cgroup") ?? "")?.[1] ?? "/";
  const [quota, period] = (system.readText(`/sys/fs/cgroup${path}/cpu.max`) ?? "max").trim().split(/\s+/).map(Number);
  if (quota === undefined || period === undefined || Number.isNaN(quota)) return undefined;
  return about("host", "cpu-quota", "CPU quota").warning(
    `${quota / period} CPUs, enforced every ${period / 1000} ms (cgroup ${path})`,
    "a thread that used up the quota stands still until the period ends: labs become invalid",
    "run without a CPU limit (docker run without --cpus, Kubernetes: no cpu limit)",
  );
}

function checkAutogroup(system: System): Check {
  const check = about("host", "autogroup", "autogroup");
  const enabled = system.readText("/proc/sys/kernel/sched_autogroup_enabled")?.trim();
  if (enabled !== "1") return check.ok(enabled === undefined ? "not in this kernel" : "off");
  return check.ok(
    "on: outside of services, other sessions count as much as Weir's threads, whatever their nice value " +
      "(sysctl kernel.sched_autogroup_enabled=0)",
  );
}

function checkSystemd(system: System): Check {
  const check = about("host", "systemd", "systemd");
  if (system.list("/run/systemd/system").length === 0 && system.readText("/proc/1/comm")?.trim() !== "systemd") {
    return check.ok("not running: start daemons in the foreground, or under another supervisor");
  }
  const version = /^systemd (\d+)/.exec(system.run("systemctl", ["--version"])?.stdout ?? "")?.[1];
  return check.ok(`running${version === undefined ? "" : `, version ${version}`}: packaging/systemd has units`);
}
