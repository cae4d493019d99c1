/** `weir` at the root of a checkout: runs what was built there, and starts nothing else. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { endWithTest } from "../end_with_test.js";

const kLauncher = fileURLToPath(new URL("../../weir", import.meta.url));
const kProgram = `console.log(JSON.stringify({ args: process.argv.slice(2), cwd: process.cwd(), pid: process.pid }));`;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "weir-launcher-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A checkout whose build is `program`, with a blank in its path. */
function checkout(program?: string): string {
  const root = join(folder(), "the checkout");
  mkdirSync(root);
  copyFileSync(kLauncher, join(root, "weir"));
  if (program !== undefined) {
    mkdirSync(join(root, "dist/cli"), { recursive: true });
    writeFileSync(join(root, "dist/cli/main.js"), program);
  }
  return root;
}

/** Has npm and npx leave a file, if somebody starts them. */
function environment(trap: string): NodeJS.ProcessEnv {
  for (const name of ["npm", "npx", "tsc", "cmake"])
    writeFileSync(join(trap, name), `#!/bin/sh\ntouch '${trap}/started'\n`, { mode: 0o755 });
  return { PATH: `${trap}:${dirname(process.execPath)}:/usr/bin:/bin` };
}

it("runs what was built, from anywhere and by a link, and builds nothing", () => {
  const root = checkout(kProgram);
  const elsewhere = folder();
  symlinkSync(join(root, "weir"), join(elsewhere, "weir"));
  const trap = folder();
  const before = readdirSync(root, { recursive: true });
  for (const [command, cwd] of [
    ["./weir", root],
    [join(elsewhere, "weir"), elsewhere],
    ["weir", elsewhere],
  ] as const) {
    const env = environment(trap);
    env.PATH = `${root}:${env.PATH}`;
    const { status, stdout, stderr } = spawnSync(command, ["lab", "run", "a b.yaml"], { cwd, env, encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({ args: ["lab", "run", "a b.yaml"], cwd });
  }
  expect(readdirSync(trap)).not.toContain("started");
  expect(readdirSync(root, { recursive: true })).toEqual(before);
});

it("is the program itself: signals reach it, and its status is the launcher's", async () => {
  const root = checkout(
    `process.on("SIGTERM", () => process.exit(42)); setInterval(() => {}, 1000); console.log(process.pid);`,
  );
  const child = spawn("./weir", { cwd: root, stdio: ["ignore", "pipe", "inherit"], env: environment(folder()) });
  endWithTest(child);
  const [pid] = await once(child.stdout, "data");
  expect(Number(String(pid))).toBe(child.pid);
  child.kill("SIGTERM");
  expect(await once(child, "close")).toEqual([42, null]);
});

it("says what to do where nothing was built", () => {
  const { status, stdout, stderr } = spawnSync("./weir", ["--version"], { cwd: checkout(), encoding: "utf8" });
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: "",
    stderr: "error: Weir is not built here yet\n  hint: npm ci\n",
  });
});
