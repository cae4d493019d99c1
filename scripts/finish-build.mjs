// Does what tsc leaves undone: sets the permission to run the command, has papers find the product, and notes the commit that it
// was built from.
import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, realpathSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const main = `${root}dist/cli/main.js`;
chmodSync(main, 0o755);
// tsc does not touch files that have not changed.
const now = new Date();
utimesSync(main, now, now);

// In the checkout papers/ is beside src/; a build has src/ as dist/ itself, with papers/ in it.
for (const name of readdirSync(`${root}dist/papers`, { recursive: true, encoding: "utf8" })) {
  if (!name.endsWith(".js")) continue;
  const module = `${root}dist/papers/${name}`;
  const text = readFileSync(module, "utf8");
  const placed = text.replace(/(\bfrom |\bimport\(|^import )"((?:\.\.\/)+)src\//gm, '$1"$2');
  if (placed !== text) writeFileSync(module, placed);
}
// tsc needs its notes on built files for as long as it runs, and every build builds everything.
for (const part of ["src", "papers"]) rmSync(`${root}dist/${part}.tsbuildinfo`, { force: true });

const commit = commitOf(root);
const file = `${root}dist/build.json`;
if (commit === undefined) rmSync(file, { force: true });
else writeFileSync(file, `${JSON.stringify({ commit })}\n`);

/** Returns undefined if `folder` is no checkout, though it may be within another one. */
function commitOf(folder) {
  const git = (...args) => {
    const { status, stdout } = spawnSync("git", ["-C", folder, ...args], { encoding: "utf8" });
    return status === 0 ? stdout.trim() : undefined;
  };
  const top = git("rev-parse", "--show-toplevel");
  if (top === undefined || realpathSync(top) !== realpathSync(folder)) return undefined;
  return git("describe", "--always", "--abbrev=40", "--dirty", "--exclude=*");
}
