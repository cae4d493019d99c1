// Brings a checkout up to date before it is run or tested: missing dependencies, and the native core.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgram } from "./needs.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * `who` begins each line that is printed. `complete` has optional dependencies installed that could not be compiled before. A
 * build that fails ends the process.
 */
export function build(who, complete = false) {
  const { optionalDependencies } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  const installed = (name) => existsSync(`${root}node_modules/${name}/package.json`);
  if (!installed("vitest")) {
    console.log(`${who}: npm ci`);
    execute("npm", ["ci"]);
  } else if (complete && !Object.keys(optionalDependencies).every(installed)) {
    // npm leaves out an optional dependency that cannot be compiled.
    console.log(`${who}: npm install, for ${Object.keys(optionalDependencies).join(", ")}`);
    // If Node.js came with its headers, they need not be fetched.
    const prefix = dirname(dirname(process.execPath));
    const headers = existsSync(`${prefix}/include/node/node.h`) ? { npm_config_nodedir: prefix } : {};
    execute("npm", ["install", "--no-save"], headers);
  }
  if (["c++", "make", "cmake"].some((name) => findProgram(name) === undefined)) return;
  console.log(`${who}: bringing the native core up to date`);
  execute(process.execPath, [`${root}scripts/install.mjs`, "--strict"]);
}

/** Runs a command; its output is shown if it fails. */
function execute(command, args, variables = {}) {
  const options = { cwd: root, encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, ...variables } };
  const { status, error, stdout, stderr } = spawnSync(command, args, options);
  if (status === 0) return;
  console.error(`${stdout ?? ""}${stderr ?? ""}${command} ${args.join(" ")}: ${error?.message ?? `status ${status}`}`);
  process.exit(1);
}
