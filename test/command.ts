/** The command line as a process of its own: what was built of the sources as they are, by the set-up of Vitest. */
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const kRoot = fileURLToPath(new URL("..", import.meta.url));
export const kMain = join(kRoot, "dist/cli/main.js");
/** Command in front of its arguments. */
export const kWeir: readonly string[] = [process.execPath, kMain];

/** Vitest's global set-up: builds what is older than its sources. */
export function setup(): void {
  const sources = [
    "src",
    "papers",
    "web",
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "scripts/bundle.config.ts",
  ];
  const built = statSync(kMain, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (sources.every((path) => newest(join(kRoot, path)) < built)) return;
  const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", "build:ts"], {
    cwd: kRoot,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`npm run build:ts: ${stdout}${stderr}`);
}

/** Time of the last change in a file or folder; ms. */
function newest(path: string): number {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const below = readdirSync(path, { recursive: true, encoding: "utf8" });
  return Math.max(mtimeMs, ...below.map((name) => statSync(join(path, name)).mtimeMs));
}
