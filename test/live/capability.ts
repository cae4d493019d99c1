/** Live tests build networks on this machine; where they may not, they are skipped and say why. In CI they fail instead. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, it } from "vitest";
import { missingCapabilities } from "../../src/lab/rootless.js";

/** Why live tests cannot run here; undefined if they can. */
export function liveObstacle(): string | undefined {
  const missing = missingCapabilities(readFileSync("/proc/self/status", "utf8"));
  if (missing.length > 0) {
    return `no ${missing.join(", ")}; run as root, or: unshare --user --map-root-user --net npx vitest run --project live`;
  }
  for (const tool of ["ip", "nsenter", "unshare", "setpriv"]) {
    if (spawnSync(tool, ["--help"]).error) return `${tool} is not installed`;
  }
  const { status, stderr } = spawnSync("unshare", ["--net", "true"], { encoding: "utf8" });
  return status === 0 ? undefined : stderr.trim();
}

/** describe() for tests that need network namespaces. */
export function describeLive(name: string, body: () => void): void {
  describeUnless(liveObstacle(), name, body);
}

/** describe() for tests that something may be in the way of: then they are skipped and say why; in CI they fail. */
export function describeUnless(obstacle: string | undefined, name: string, body: () => void): void {
  if (skips(name, obstacle)) describe.skip(`${name} (skipped: ${obstacle})`, body);
  else describe(name, body);
}

/** The same for one test. */
export function itUnless(obstacle: string | undefined, name: string, body: () => void | Promise<void>): void {
  if (skips(name, obstacle)) it.skip(`${name} (skipped: ${obstacle})`, body);
  else it(name, body);
}

function skips(name: string, obstacle: string | undefined): boolean {
  if (obstacle === undefined || process.env.CI) return false;
  console.warn(`SKIPPED: ${name}: ${obstacle}`);
  return true;
}

/** Why a command cannot be used; undefined if it succeeds. */
export function failing(program: string, ...args: string[]): string | undefined {
  return spawnSync(program, args).status === 0 ? undefined : `${[program, ...args].join(" ")} fails`;
}

/** In front of a command: runs it as an ordinary user, if this is root; as it is, if this is one. */
export const kOrdinaryUser =
  process.getuid?.() === 0
    ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/nonexistent"]
    : [];

/** Why labs without root cannot be tested here; undefined if they can. */
function rootlessObstacle(): string | undefined {
  const attempt = (...command: string[]) => {
    const [program = "", ...rest] = [...kOrdinaryUser, ...command];
    const { status, error, stderr } = spawnSync(program, rest, { encoding: "utf8" });
    if (error !== undefined) return error.message;
    return status === 0 ? undefined : stderr.trim() || `${command.join(" ")} fails`;
  };
  const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
  const unreadable = attempt("test", "-r", main);
  if (unreadable !== undefined) return `an ordinary user may not read this folder: ${unreadable}`;
  const forbidden = attempt("unshare", "--user", "--map-root-user", "--net", "true");
  return forbidden && `an ordinary user may not make user namespaces here: ${forbidden}`;
}

/** describe() for labs of an ordinary user. */
export function describeOrdinaryUser(name: string, body: () => void): void {
  describeUnless(rootlessObstacle(), name, body);
}
