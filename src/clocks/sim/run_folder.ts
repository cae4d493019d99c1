/**
 * Folders of sockets and shared memory of runs with programs. A run that was killed leaves its own, which the next removes: a
 * folder's name says whose it is.
 */
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Makes a folder, whose path is short enough for sockets. */
export function makeRunFolder(): string {
  // Process numbers mean something within their namespace.
  const namespace = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0];
  const start = `weir-sim-${namespace}-`;
  for (const name of readdirSync(tmpdir())) {
    const process = name.startsWith(start) ? /^\d+/.exec(name.slice(start.length))?.[0] : undefined;
    if (process === undefined || existsSync(`/proc/${process}`)) continue;
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // It is another user's.
    }
  }
  return mkdtempSync(join(tmpdir(), `${start}${process.pid}-`));
}
