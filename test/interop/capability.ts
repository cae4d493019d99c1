/** Interoperability tests boot Linux guests: if that is impossible they are skipped and say why. In CI they fail instead. */
import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { fileURLToPath } from "node:url";
import { kNeeds } from "../../scripts/needs.mjs";
import { liveObstacle } from "../live/capability.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";

const kBuild = fileURLToPath(new URL("guest/build.sh", import.meta.url));
/** With its packages installed and the kernel downloaded it takes seven seconds. */
const kBuildLimitMs = 300_000;

/** Packages of which guests are made. */
const kPackages = kNeeds.filter((need) => need.for.includes("interop")).map((need) => need.package);

let image: string | undefined;

/** The folder that guests boot from: built, or found built. */
export function guestImage(): string {
  image ??= execFileSync(kBuild, {
    encoding: "utf8",
    timeout: kBuildLimitMs,
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
  return image;
}

function obstacle(): string | undefined {
  const absent = liveObstacle() ?? lacking(...kPackages);
  if (absent !== undefined) return absent;
  try {
    accessSync("/dev/net/tun", constants.R_OK | constants.W_OK);
    guestImage();
    return undefined;
  } catch (error) {
    return (error as { stderr?: string }).stderr || String(error);
  }
}

/** describe() for tests with guests. */
export function describeInterop(name: string, body: () => void): void {
  describeUnless(obstacle(), name, body);
}
