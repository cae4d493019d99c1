/** A target under a few inputs, the same each time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { fuzz } from "./engine.js";

/** Bytes of an input; long ones take long. */
const kLongest = 1024;

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-fuzz-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Outcome of `runs` inputs of one seed. The target is imported now: modules may have been replaced for it. */
export async function fuzzShortly(name: string, runs: number) {
  const { kTargets } = await import("./targets.js");
  const target = await (await kTargets[name]?.())?.open(temporaryFolder());
  if (target === undefined) throw new Error(`there is no target ${name}`);
  onTestFinished(() => target.close?.());
  const folder = temporaryFolder();
  return fuzz({
    target: { longest: Math.min(target.longest, kLongest), run: target.run.bind(target) },
    seed: 1,
    seconds: 1000,
    runs,
    corpus: join(folder, "corpus"),
    current: join(folder, "current"),
    signal: new AbortController().signal,
    tell: () => {},
  });
}
