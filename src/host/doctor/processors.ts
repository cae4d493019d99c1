/** Checks what a machine does with the CPUs that poll threads run on: frequency, sleep, interrupts and who else may use them. */
import { about, type Check } from "./report.js";
import type { System } from "./system.js";

const kCpus = "/sys/devices/system/cpu";
/** A CPU that takes longer to wake up than a frame waits in a switch at most, us. */
const kDeepSleep = 50;

/** Nothing of what a machine does not tell: virtual ones have neither frequencies nor idle states. */
export function checkProcessors(system: System): Check[] {
  return [checkGovernor, checkIdle, checkSiblings, checkIsolation, checkIrqbalance].flatMap(
    (check) => check(system) ?? [],
  );
}

const cpusOf = (system: System) => system.list(kCpus).filter((name) => /^cpu\d+$/.test(name));

function checkGovernor(system: System): Check | undefined {
  const governors = new Set(
    cpusOf(system).flatMap((cpu) => system.readText(`${kCpus}/${cpu}/cpufreq/scaling_governor`)?.trim() ?? []),
  );
  if (governors.size === 0) return undefined;
  const check = about("host", "governor", "governor");
  const found = [...governors].sort().join(", ");
  if (found === "performance") return check.ok(found);
  return check.warning(
    found,
    "the frequency follows the load: the first frames after a pause take longer, and two measurements differ",
    "cpupower frequency-set -g performance (package linux-cpupower)",
  );
}

/** Looks at the deepest idle state that is allowed, of CPU 0 for all. */
function checkIdle(system: System): Check | undefined {
  const folder = `${kCpus}/cpu0/cpuidle`;
  const states = system
    .list(folder)
    .filter((state) => system.readText(`${folder}/${state}/disable`)?.trim() !== "1")
    .map((state) => ({
      name: system.readText(`${folder}/${state}/name`)?.trim() ?? state,
      latency: Number(system.readText(`${folder}/${state}/latency`)),
    }))
    .sort((a, b) => b.latency - a.latency);
  const [deepest] = states;
  if (deepest === undefined) return undefined;
  const check = about("host", "idle-states", "idle states");
  const found = `down to ${deepest.name}, which takes ${deepest.latency} us to leave`;
  if (deepest.latency <= kDeepSleep) return check.ok(found);
  return check.warning(
    found,
    "a frame that finds its poll thread asleep waits for that",
    `polling: busy for ports whose latency counts, or: cpupower idle-set -D ${kDeepSleep} (package linux-cpupower)`,
  );
}

function checkSiblings(system: System): Check | undefined {
  if (system.readText(`${kCpus}/smt/active`)?.trim() !== "1") return undefined;
  const siblings = system.readText(`${kCpus}/cpu0/topology/thread_siblings_list`)?.trim();
  return about("host", "smt", "threads of cores").ok(
    `two or more CPUs share a core${siblings ? ` (${siblings} do)` : ""}: workers that poll go on CPUs of different cores`,
  );
}

function checkIsolation(system: System): Check | undefined {
  const isolated = system.readText(`${kCpus}/isolated`)?.trim();
  if (isolated === undefined) return undefined;
  const check = about("host", "isolated-cpus", "isolated CPUs");
  if (isolated === "") return check.ok("none: other programs run on the CPUs of workers, too");
  const tickless = system.readText(`${kCpus}/nohz_full`)?.trim().replace("(null)", "");
  const ticks = tickless ? `, without ticks ${tickless}` : ", each with the timer's ticks (nohz_full=)";
  return check.ok(`${isolated}${ticks}: workers run there that name one as their cpu`);
}

/** Interrupts of NICs on a worker's CPU take its time; where they go is said by irqbalance, while it runs. */
function checkIrqbalance(system: System): Check | undefined {
  const pids = system.list("/proc").filter((name) => /^\d+$/.test(name));
  if (!pids.some((pid) => system.readText(`/proc/${pid}/comm`)?.trim() === "irqbalance")) return undefined;
  return about("host", "irqbalance", "irqbalance").ok(
    "running: it moves interrupts of NICs to CPUs of workers, too, but for isolated ones and those of " +
      "IRQBALANCE_BANNED_CPULIST (/etc/default/irqbalance)",
  );
}
