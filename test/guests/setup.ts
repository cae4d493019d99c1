/** Makes a folder for the files of all the tests' daemons. It goes with Vitest, interrupted or not. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    folder: string;
  }
}

export function setup(project: TestProject): void {
  const folder = mkdtempSync(join(tmpdir(), "weir-guests-"));
  project.provide("folder", folder);
  // Interrupted, Vitest ends without tearing down.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
}
