/** Making packages: missing programs are told before anything is built, and the checkout is left alone. */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { copySources } from "../../scripts/package-tree.js";
import { read, root } from "./files.js";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-packaging-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

/** A path on which of all programs only these are found; they do nothing. */
function pathOf(...programs: string[]): string {
  const path = folder();
  for (const program of programs) writeFileSync(join(path, program), "#!/bin/sh\n", { mode: 0o755 });
  return path;
}

const kAll = ["c++", "cmake", "help2man", "dpkg-buildpackage", "dh", "tar"];

it.each([
  [
    "deb",
    kAll.filter((name) => !["help2man", "dh"].includes(name)),
    "needs help2man, dh: apt install help2man debhelper",
  ],
  ["deb --lint", kAll, "needs lintian: apt install lintian"],
  [
    "deb",
    [],
    "needs c++, cmake, help2man, dpkg-buildpackage, dh: apt install build-essential cmake help2man debhelper",
  ],
  ["tar", kAll.filter((name) => name !== "cmake"), "needs cmake: apt install cmake"],
])("package:%s with only %j on the path", (kind, programs, message) => {
  const [name = "", ...options] = kind.split(" ");
  const built = statSync(join(root, "dist")).mtimeMs;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--import", "tsx", join(root, `scripts/package-${name}.ts`), ...options],
    { cwd: root, encoding: "utf8", env: { ...process.env, PATH: pathOf(...programs) } },
  );
  expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: "", stderr: `npm run package:${name} ${message}\n` });
  expect(statSync(join(root, "dist")).mtimeMs).toBe(built);
});

it("the guide asks for what is looked for", () => {
  const guide = read("docs/start/install.md");
  const before = (script: string) => guide.slice(0, guide.indexOf(script)).split("```sh").at(-1);
  expect(before("npm run package:deb")).toContain(
    "apt install build-essential cmake libibverbs-dev debhelper help2man",
  );
  expect(before("npm run package:tar")).toContain("apt install build-essential cmake help2man");
});

it("builds in a copy: what an earlier build left of the core stays, everything else is as in the checkout", () => {
  const copy = join(folder(), "build");
  mkdirSync(join(copy, "build-cmake/Release"), { recursive: true });
  mkdirSync(join(copy, "src"));
  writeFileSync(join(copy, "build-cmake/Release/weir.node"), "compiled");
  writeFileSync(join(copy, "src/gone.ts"), "");
  for (let time = 0; time < 2; time++) {
    copySources(copy);
    expect(existsSync(join(copy, "src/gone.ts"))).toBe(false);
    expect(existsSync(join(copy, "dist"))).toBe(false);
    expect(readFileSync(join(copy, "build-cmake/Release/weir.node"), "utf8")).toBe("compiled");
    expect(lstatSync(join(copy, "node_modules")).isSymbolicLink()).toBe(true);
    // cmake goes by these times; copies are dated to the millisecond, up or down.
    const [ours = 0, theirs = 0] = [root, copy].map((path) => statSync(join(path, "native/base/histogram.h")).mtimeMs);
    expect(Math.abs(theirs - ours)).toBeLessThanOrEqual(1);
  }
  // The copy has all files that the build's own files name.
  for (const file of [
    "src/cli/main.ts",
    "papers/cli/paper.ts",
    "web/vite.config.ts",
    "scripts/bundle.config.ts",
    "scripts/install.mjs",
    "scripts/finish-build.mjs",
  ])
    expect(existsSync(join(copy, file)), file).toBe(true);
});
