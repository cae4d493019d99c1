/** What a verb loads before it runs: starting Node.js is quick, and reading files that nobody needs is not. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { kMain, kRoot } from "../command.js";
import { kPatienceMs } from "../limits.js";
import { itUnless, nativeObstacle } from "../obstacles.js";

interface Coverage {
  result: { url: string }[];
}

/** JavaScript files that a command has loaded, by their paths in the checkout: V8 lists them all in its coverage. */
function loadedBy(args: readonly string[]): string[] {
  const folder = mkdtempSync(join(tmpdir(), "weir-start-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { status, stderr } = spawnSync(process.execPath, [kMain, ...args], {
    encoding: "utf8",
    timeout: kPatienceMs,
    env: { ...process.env, NODE_V8_COVERAGE: folder },
  });
  expect(status, stderr).toBe(0);
  const scripts = readdirSync(folder).flatMap(
    (file) => (JSON.parse(readFileSync(join(folder, file), "utf8")) as Coverage).result,
  );
  const files = scripts.map(({ url }) => url).filter((url) => url.startsWith("file:"));
  return [...new Set(files.map((url) => fileURLToPath(url).replace(kRoot, "")))];
}

const kilobytes = (files: readonly string[]) =>
  files.reduce((sum, file) => sum + statSync(join(kRoot, file)).size, 0) / 1000;

/** Limits are what it takes, and a quarter more. A verb that passes one imports something that it could do without, or import(). */
const kLimits: readonly [args: string, files: number, kilobytes: number][] = [
  ["--version", 4, 155],
  ["show --help", 6, 640],
  ["run --help", 9, 755],
  ["switch --help", 19, 2310],
  ["collective --help", 19, 2180],
];

it.each(kLimits)("weir %s loads at most %i files, of %i kB", (args, files, size) => {
  const loaded = loadedBy(args.split(" "));
  expect(loaded).toContain("dist/cli/main.js");
  expect(loaded.filter((file) => !file.startsWith("dist/"))).toEqual([]);
  expect(loaded.length).toBeLessThanOrEqual(files);
  expect(kilobytes(loaded)).toBeLessThanOrEqual(size);
});

itUnless(
  nativeObstacle(),
  "a simulated collective takes little more than its verb, and nothing from node_modules",
  () => {
    const loaded = loadedBy(["collective", "allreduce", "--ranks", "2", "--size", "1kB", "--quiet"]);
    expect(loaded.filter((file) => !file.startsWith("dist/"))).toEqual([]);
    expect(kilobytes(loaded)).toBeLessThanOrEqual(2250);
  },
);
