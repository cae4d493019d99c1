/** Lets tests call the programs of needs.json alone: PATH has nothing else on it. */
import { chmodSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram, kNeeds, lackingOf, programsForTests } from "../scripts/needs.mjs";

/** Beginning of lacking()'s text. */
export const kNotInstalled = "not installed: ";

/** Says why something that needs these packages cannot run here; undefined if it can. */
export function lacking(...packages: readonly string[]): string | undefined {
  const absent = packages.filter((name) => {
    const need = kNeeds.find((one) => one.package === name);
    if (need === undefined) throw new Error(`${name} is not in test/needs.json`);
    return lackingOf(need).length > 0;
  });
  return absent.length === 0 ? undefined : `${kNotInstalled}${absent.join(", ")}`;
}

/** Path of a program for interfaces that take no name; only where lacking() has nothing to say. */
export function pathOf(program: string): string {
  const path = findProgram(program);
  if (path === undefined) throw new Error(`${program} is not installed`);
  return path;
}

/** A folder with links to the listed programs and to no other; gone with this process. */
export function makePath(): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-programs-"));
  // Tests also run commands as an ordinary user.
  chmodSync(folder, 0o755);
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const [name, path] of programsForTests()) symlinkSync(path, join(folder, name));
  return folder;
}
