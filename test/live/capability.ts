/** Live tests build networks on this machine; where they may not, they are skipped. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { missingCapabilities } from "../../src/host/rootless.js";
import { kMain } from "../command.js";
import { lacking } from "../needs.js";
import { describeUnless, kThisMachine, nativeObstacle } from "../obstacles.js";

/** Says why live tests cannot run here; undefined if they can. */
export function liveObstacle(): string | undefined {
  const missing = missingCapabilities(readFileSync("/proc/self/status", "utf8"));
  if (missing.length > 0) {
    return `no ${missing.join(", ")}; run as root, or: unshare --user --map-root-user --net npx vitest run --project live`;
  }
  const absent = lacking("iproute2", "util-linux") ?? nativeObstacle();
  if (absent !== undefined) return absent;
  const { status, stderr } = spawnSync("unshare", ["--net", "true"], { encoding: "utf8" });
  return status === 0 ? undefined : stderr.trim();
}

/** describe() for tests that need network namespaces. */
export function describeLive(name: string, body: () => void): void {
  describeUnless(liveObstacle(), name, body);
}

/** Says why programs cannot run in virtual time here; undefined if they can. */
export function virtualObstacle(): string | undefined {
  if (process.arch !== "x64") return `${kThisMachine} is not x86-64`;
  return liveObstacle();
}

/** describe() for tests of programs in virtual time. */
export function describeVirtual(name: string, body: () => void): void {
  describeUnless(virtualObstacle(), name, body);
}

/** Words in front of a command that run it as an ordinary user, if this is root; as it is, if this is one. */
export const kOrdinaryUser =
  process.getuid?.() === 0
    ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/nonexistent"]
    : [];

/** Error of a command that an ordinary user runs; undefined if it succeeds. */
function attempt(...command: string[]): string | undefined {
  const [program = "", ...rest] = [...kOrdinaryUser, ...command];
  const { status, error, stderr } = spawnSync(program, rest, { encoding: "utf8" });
  if (error !== undefined) return error.message;
  return status === 0 ? undefined : stderr.trim() || `${command.join(" ")} fails`;
}

/** Says why an ordinary user cannot run Weir here; undefined if one can. */
export function ordinaryUserObstacle(): string | undefined {
  const unreadable = attempt("test", "-r", kMain);
  return unreadable && `an ordinary user may not read this folder: ${unreadable}`;
}

/** Says why labs without root cannot be tested here; undefined if they can. */
function rootlessObstacle(): string | undefined {
  const obstacle = ordinaryUserObstacle();
  if (obstacle !== undefined) return obstacle;
  const forbidden = attempt("unshare", "--user", "--map-root-user", "--net", "true");
  return forbidden && `an ordinary user may not make user namespaces here: ${forbidden}`;
}

/** describe() for labs of an ordinary user. */
export function describeOrdinaryUser(name: string, body: () => void): void {
  describeUnless(rootlessObstacle(), name, body);
}
