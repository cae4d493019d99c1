/**
 * `npm run package:npm`: the archive that `npm install` takes, with the native core and the libraries of `weir run` for x64 and
 * arm64, so that who installs it needs no compiler: build-package/npm/weir-VERSION.tgz. They are built against this machine's C
 * library, and run where there is one as new (Debian 12's: glibc 2.36); elsewhere the installation compiles.
 *
 * arm64 is compiled by Debian's cross compiler, x64 by the machine's own, on an x64 machine.
 */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { outputFolder, packaging, root, run, version } from "./package-tree.js";

const kCross = "aarch64-linux-gnu";
/** Options of cmake for each architecture. */
const kArchitectures: Readonly<Record<string, readonly string[]>> = {
  x64: [],
  arm64: [
    "--CDCMAKE_SYSTEM_NAME=Linux",
    "--CDCMAKE_SYSTEM_PROCESSOR=aarch64",
    `--CDCMAKE_C_COMPILER=${kCross}-gcc`,
    `--CDCMAKE_CXX_COMPILER=${kCross}-g++`,
  ],
};
/** Most bytes of the archive. */
const kMost = 10e6;

await packaging("package:npm", { [`${kCross}-g++`]: `g++-${kCross}`, objdump: "binutils" }, async () => {
  if (process.arch !== "x64") throw new Error("package:npm runs on x64");
  const prebuilds = join(root, "prebuilds");
  rmSync(prebuilds, { recursive: true, force: true });
  for (const [architecture, options] of Object.entries(kArchitectures)) build(architecture, options, prebuilds);
  const output = outputFolder("npm");
  run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", output], { stdio: "ignore" });
  rmSync(prebuilds, { recursive: true });
  const file = join(output, `weir-${version}.tgz`);
  const { size } = statSync(file);
  if (size > kMost) throw new Error(`${file} has ${size} bytes, more than ${kMost}`);
  console.log(file);
});

function build(architecture: string, options: readonly string[], prebuilds: string): void {
  const folder = join(root, "build-package", `core-${architecture}`);
  const all = ["-d", root, "-O", folder, "--CDWEIR_UNITY=ON", "--CDWEIR_PORTABLE=ON", ...options];
  const cmakeJs = join(root, "node_modules/.bin/cmake-js");
  run(cmakeJs, ["configure", ...all], { stdio: ["ignore", "ignore", "inherit"] });
  run(cmakeJs, ["build", ...all, "--parallel", "2"], { stdio: ["ignore", "ignore", "inherit"] });
  const target = join(prebuilds, `linux-${architecture}`);
  mkdirSync(target, { recursive: true });
  const links: Record<string, string> = {};
  for (const name of readdirSync(join(folder, "Release"))) {
    const from = join(folder, "Release", name);
    // An archive of npm has no links.
    if (lstatSync(from).isSymbolicLink()) links[name] = readlinkSync(from);
    else copyFileSync(from, join(target, name));
  }
  writeFileSync(join(target, "links.json"), `${JSON.stringify(links)}\n`);
  const symbols = execFileSync("objdump", ["-T", join(target, "weir.node")], { encoding: "utf8", maxBuffer: 1e8 });
  const versions = [...symbols.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
  console.error(`linux-${architecture}: needs glibc 2.${Math.max(...versions)}`);
}
