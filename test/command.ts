/** The command line as a process of its own: what was built of the sources as they are, by the set-up of Vitest. */
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { programFile } from "./programs/files.js";

export const kRoot = fileURLToPath(new URL("..", import.meta.url));
export const kMain = join(kRoot, "dist/cli/main.js");
/** Command in front of its arguments. */
export const kWeir: readonly string[] = [process.execPath, kMain];

/** What both bundles are made of. */
const kSources = ["src", "papers", "package.json", "scripts/bundle.config.ts"];

/** Vitest's global set-up: builds what is older than its sources. */
export async function setup(): Promise<void> {
  if (isOld(kMain, [...kSources, "web", "tsconfig.json", "tsconfig.build.json"])) buildWeir();
  if (!isOld(programFile("sweep"), [...kSources, "papers/engine/test", "test"])) return;
  // Test files import this module, too, and need no bundler.
  const { buildPrograms } = await import("./programs/bundle.js");
  await buildPrograms(kRoot);
}

/** Tells whether a file is missing, or older than one of its sources. */
export function isOld(file: string, sources: readonly string[]): boolean {
  const built = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return sources.some((path) => newest(join(kRoot, path)) >= built);
}

function buildWeir(): void {
  const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", "build:ts"], {
    cwd: kRoot,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`npm run build:ts: ${stdout}${stderr}`);
}

/** Tests beside what they test: it is built without them. */
const kTests = /(^|\/)test(\/|$)/;

/** Time of the last change in a file or folder; ms. */
function newest(path: string): number {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const below = readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => !kTests.test(name));
  return Math.max(mtimeMs, ...below.map((name) => statSync(join(path, name)).mtimeMs));
}
