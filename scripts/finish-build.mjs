// Does what the bundler leaves undone: sets the permission to run the command, and notes the commit that it was built from.
import { spawnSync } from "node:child_process";
import { chmodSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
chmodSync(`${root}dist/cli/main.js`, 0o755);

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
