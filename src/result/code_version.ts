/** Tells which code makes a result: part of every point's id, so that results of another version are never taken for this one's. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { addonFile } from "../native/addon.js";

/**
 * Returns "0.1.0+4f1c2a90b7de": the package's version, and a hash of the code that runs here, byte by byte: the native core as it was
 * built, and Weir's JavaScript modules but for figures of papers. Two builds of the same sources can differ, also by the npm packages that
 * a build has inside; packages that are loaded, Node.js and the system are not in it.
 * Throws WeirError when the native core was not built.
 */
export function codeVersion(): string {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  const hash = createHash("sha256").update(readFileSync(addonFile()));
  const modules = fileURLToPath(new URL("..", import.meta.url));
  const kind = extname(import.meta.url);
  // Figures of papers are made of results, and none of them comes into a result.
  for (const [file, text] of modulesIn(modules, kind)) {
    if (!file.startsWith("papers/")) hash.update(`\0${file}\0`).update(text);
  }
  return `${version}+${hash.digest("hex").slice(0, 12)}`;
}

/** Modules of a folder in the order of their names: the files with this ending. */
export function modulesIn(folder: string, ending: string): [file: string, text: Buffer][] {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => extname(file) === ending);
  return files.sort().map((file) => [file, readFileSync(join(folder, file))]);
}
