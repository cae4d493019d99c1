/** Finds the processes of a process namespace, as seen from outside. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface Inhabitant {
  pid: number;
  command: string;
}

/** The process namespace that a process is in; undefined: it is gone, or none of ours to look at. */
export function processNamespace(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

/** Processes of each of these namespaces, in the order of their pids. */
export function inhabitants(namespaces: ReadonlySet<string>): Map<string, Inhabitant[]> {
  const found = new Map<string, Inhabitant[]>([...namespaces].map((one) => [one, []]));
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    found.get(processNamespace(pid) ?? "")?.push({ pid, command: commandOf(pid) });
  }
  for (const list of found.values()) list.sort((a, b) => a.pid - b.pid);
  return found;
}

/** Children of its first thread, which is all that a program of one thread has. @throws an error of the system where it has ended. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? [] : text.split(" ").map(Number);
}

/** Returns an empty text if the process has ended meanwhile. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trimEnd();
  } catch {
    return "";
  }
}
