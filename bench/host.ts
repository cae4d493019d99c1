/** Where and when something was measured. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

export interface Host {
  cpu: string;
  cpus: number;
  memory_gb: number;
  kernel: string;
  /** Of the first CPU; undefined where the kernel does not say (virtual machines). */
  governor?: string;
  node: string;
  compiler: string;
  weir: string;
  /** Of the source; with "+" where it was changed. */
  commit?: string;
  date: string;
  /** 1-minute load averages when it began and when it ended. */
  load: number[];
}

const kRoot = fileURLToPath(new URL("..", import.meta.url));

export function describeHost(): Host {
  const all = cpus();
  const governor = attempt(() => readFileSync("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "utf8").trim());
  const commit = attempt(() => {
    const git = (...args: string[]) =>
      execFileSync("git", args, { cwd: kRoot, encoding: "utf8", stdio: "pipe" }).trim();
    return git("rev-parse", "--short=12", "HEAD") + (git("status", "--porcelain") === "" ? "" : "+");
  });
  return {
    cpu: all[0]?.model.trim() ?? "unknown",
    cpus: all.length,
    memory_gb: Math.round(totalmem() / 1e8) / 10,
    kernel: release(),
    ...(governor !== undefined && { governor }),
    node: process.versions.node,
    compiler:
      attempt(() => execFileSync(process.env.CXX || "c++", ["--version"], { encoding: "utf8" }).split("\n")[0]) ??
      "unknown",
    weir: (JSON.parse(readFileSync(`${kRoot}package.json`, "utf8")) as { version: string }).version,
    ...(commit !== undefined && { commit }),
    date: new Date().toISOString(),
    load: [load()],
  };
}

/** The 1-minute load average. */
export function load(): number {
  return Number(loadavg()[0]?.toFixed(2));
}

/** "AMD EPYC, 2 CPUs, kernel 6.18, Node 20.20.2, load 0.31 1.20". */
export function headline(host: Host): string {
  const governor = host.governor === undefined ? "" : `, governor ${host.governor}`;
  return `${host.cpu}, ${host.cpus} CPUs${governor}, kernel ${host.kernel}, Node ${host.node}, load ${host.load.join(" ")}`;
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
