/** Looks at this machine: processes of a test, packet sockets, devices and namespaces. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { processesWith } from "../../scripts/test_processes.mjs";

/** Every process started with this variable in its environment, and all that it starts, is found again by its value. */
export const kTestMarker = "WEIR_LIVE_TEST";

/** Returns `read`'s answer; undefined where the process has ended meanwhile or is none of ours. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Processes that carry the marker with this value, as "pid command line". */
export function markedProcesses(value: string): string[] {
  return processesWith(kTestMarker, value).map(({ pid, command }) => `${pid} ${command}`);
}

/** Tells whether a process with this marker runs a thread of this name. */
export function hasThread(value: string, name: string): boolean {
  return markedProcesses(value).some((line) => {
    const tasks = `/proc/${line.split(" ")[0]}/task`;
    const names = attempt(() =>
      readdirSync(tasks).map((id) => attempt(() => readFileSync(`${tasks}/${id}/comm`, "utf8"))),
    );
    return names?.includes(`${name}\n`) ?? false;
  });
}

/** Network namespaces that this process holds open. */
export function namespacesHeld(): Set<string> {
  const targets = readdirSync("/proc/self/fd").map((fd) => attempt(() => readlinkSync(`/proc/self/fd/${fd}`)));
  return new Set(targets.filter((target) => target?.startsWith("net:[")) as string[]);
}

/** Things that a lab could leave behind where it was started: devices and packet sockets there, and named namespaces. */
export interface NetworkState {
  devices: string;
  packetSockets: string[];
  namespaces: string[];
}

/** `inside` goes in front of a command to run it in the namespace to look at. */
export function networkState(inside: readonly string[]): NetworkState {
  const run = (...command: string[]) => {
    const [program = "", ...args] = [...inside, ...command];
    return execFileSync(program, args, { encoding: "utf8" });
  };
  const sockets = run("cat", "/proc/self/net/packet").trim().split("\n").slice(1);
  // Other users of this machine may have namespaces of their own.
  const named = run("ip", "netns", "list")
    .split("\n")
    .filter((name) => name.startsWith("weir"));
  return {
    devices: run("ip", "-brief", "link"),
    // A socket's line ends in counters; its kernel address is first.
    packetSockets: sockets.map((line) => line.trim().split(/\s+/)[0] ?? ""),
    namespaces: named,
  };
}
