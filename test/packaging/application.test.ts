/** Weir as a dependency of an application: by a link to the checkout, and as the archive that `npm pack` makes. */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { addonFile } from "../../src/native/addon.js";
import { itUnless, nativeObstacle } from "../obstacles.js";
import { manifest, read, root } from "./files.js";

const kQuiet = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];

function run(command: string, args: readonly string[], cwd: string) {
  return spawnSync(command, args, { cwd, encoding: "utf8", timeout: 60_000 });
}

/** A package with the example program in it. */
function application(): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-application-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "application", private: true }));
  copyFileSync(join(root, "examples/remote-write.mjs"), join(folder, "remote-write.mjs"));
  return folder;
}

/** It has found the package, and the package its own needs: it is the package that refuses the address. */
function expectRuns(folder: string): void {
  const { stderr } = run(process.execPath, ["remote-write.mjs", "server", "lo", "nowhere"], folder);
  expect(stderr).toContain("WeirError: address: nowhere is not an IP address with a prefix length");
  const { stdout } = run(join(folder, "node_modules/.bin/weir"), ["--version"], folder);
  expect(stdout).toBe(`${manifest.version}\n`);
}

/** Puts the archive that `npm pack` makes where npm install would, below `folder`, and other packages from here. */
function installArchive(folder: string): string {
  const packed = run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], root);
  expect(packed.status, packed.stderr).toBe(0);
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules")).filter((name) => !name.startsWith(".")))
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  const archive = join(folder, "weir.tar");
  writeFileSync(archive, gunzipSync(readFileSync(join(folder, `weir-${manifest.version}.tgz`))));
  const unpacked = run("tar", ["-xf", archive], folder);
  expect(unpacked.status, unpacked.stderr).toBe(0);
  renameSync(join(folder, "package"), join(modules, "weir"));
  symlinkSync(`../weir/${manifest.bin.weir}`, join(modules, ".bin/weir"));
  return join(modules, "weir");
}

beforeAll(() => {
  expect(existsSync(join(root, "dist/verbs/index.js")), "not built: npm run build:ts").toBe(true);
});

it("a link to the checkout", () => {
  const folder = application();
  const { status, stderr } = run("npm", ["install", ...kQuiet, root], folder);
  expect(status, stderr).toBe(0);
  expectRuns(folder);
});

it("the archive of npm pack, which has what its install script builds the native core from", () => {
  const folder = application();
  const installed = installArchive(folder);
  expectRuns(folder);
  const sources = read("native/sources.txt").trim().split("\n");
  const built = ["scripts/install.mjs", "CMakeLists.txt", "binding.gyp", "native/sources.txt", "schema", ...sources];
  expect(built.filter((file) => !existsSync(join(installed, file)))).toEqual([]);
  expect(existsSync(join(installed, "dist/verbs/index.d.ts"))).toBe(true);
  for (const [file, inside] of [
    ["licenses.md", "commander"],
    ["web/dashboard/licenses.txt", "preact"],
    ["web/report/licenses.txt", "uplot"],
  ] as const)
    expect(readFileSync(join(installed, "dist", file), "utf8")).toContain(`## ${inside} - `);
});

itUnless(nativeObstacle(), "the archive's figures of papers run, with their scenarios", () => {
  const folder = application();
  const installed = installArchive(folder);
  const core = dirname(dirname(addonFile()));
  symlinkSync(core, join(installed, basename(core)));
  const paper = <T>(...args: string[]): T => {
    const { status, stdout, stderr } = run(
      join(folder, "node_modules/.bin/weir"),
      ["paper", ...args, "--json"],
      folder,
    );
    expect(status, stderr).toBe(0);
    return JSON.parse(stdout) as T;
  };
  const files = paper<{ scenarios: string[] }[]>("list").flatMap(({ scenarios }) => scenarios);
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter((file) => !existsSync(join(installed, "papers", file)))).toEqual([]);
  for (const [id = "", clock = ""] of [
    ["qcn-shu-fig3", "model"],
    ["dcqcn-section3.3", "sim"],
  ])
    expect(paper(id, "--on", clock, "--quiet", "--out", id)).toMatchObject({ complete: true });
  const sources = readdirSync(join(installed, "papers"), { recursive: true, encoding: "utf8" });
  expect(sources.filter((file) => file.endsWith(".ts"))).toEqual([]);
});

it("the guide's commands are those", () => {
  const [, section = ""] = /## In an application\n([\s\S]*?)\n## /.exec(read("docs/guides/verbs.md")) ?? [];
  expect(section).toContain("npm install ../weir ");
  expect(section).toContain(`npm install ../weir/weir-${manifest.version}.tgz`);
});
