/** Tests with guests boot Linux in QEMU: if that is impossible they are skipped and say why. In CI they fail instead. */
import { execFileSync } from "node:child_process";
import { accessSync, constants, readFileSync } from "node:fs";
import { kNeeds } from "../../scripts/needs.mjs";
import { liveObstacle } from "../live/capability.js";
import { lacking } from "../needs.js";
import { describeUnless } from "../obstacles.js";
import type { Machine } from "./guest.js";

/** With its packages installed and the kernel downloaded it takes seven seconds. */
const kBuildLimitMs = 300_000;

/** Kernel and initrd of a kind of guests. */
export class GuestImage {
  #folder: string | undefined;

  /** @param project Project of vitest.config.ts whose packages it is made of; `script` makes it, and prints its folder. */
  constructor(
    readonly project: string,
    readonly script: string,
  ) {}

  /** The folder that guests boot from: built, or found built. */
  folder(): string {
    this.#folder ??= execFileSync(this.script, {
      encoding: "utf8",
      timeout: kBuildLimitMs,
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
    return this.#folder;
  }
}

function obstacle(images: readonly GuestImage[]): string | undefined {
  const users = new Set(images.map(({ project }) => project));
  const packages = kNeeds.filter((need) => need.for.some((user) => users.has(user))).map((need) => need.package);
  const absent = liveObstacle() ?? lacking(...packages);
  if (absent !== undefined) return absent;
  try {
    accessSync("/dev/net/tun", constants.R_OK | constants.W_OK);
    for (const image of images) image.folder();
    return undefined;
  } catch (error) {
    return (error as { stderr?: string }).stderr || String(error);
  }
}

/** describe() for tests with guests of these images. */
export function describeGuests(images: readonly GuestImage[], name: string, body: () => void): void {
  describeUnless(obstacle(images), name, body);
}

/** KVM where the processor has it, or emulation. KVM without the processor's help (PVM) runs no kernel of Debian's. */
export function accelerator(): Machine["accelerator"] {
  try {
    accessSync("/dev/kvm", constants.R_OK | constants.W_OK);
  } catch {
    return "tcg";
  }
  return /^flags\s*:.*\b(?:vmx|svm)\b/m.test(readFileSync("/proc/cpuinfo", "utf8")) ? "kvm" : "tcg";
}
