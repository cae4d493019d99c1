/** Live tests build networks on this machine; where they may not, they are skipped and say why. In CI they fail instead. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe } from "vitest";
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
  const obstacle = liveObstacle();
  if (obstacle !== undefined && !process.env.CI) {
    console.warn(`SKIPPED: ${name}: ${obstacle}`);
    describe.skip(`${name} (skipped: ${obstacle})`, body);
  } else {
    describe(name, body);
  }
}
