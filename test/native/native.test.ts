import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

it("passes the tests of the native core", (context) => {
  const env = { ...process.env, PATH: process.env.WEIR_BUILD_PATH };
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/native-tests.mjs"], {
    cwd: root,
    encoding: "utf8",
    env,
  });
  if (status === 77 && !process.env.CI) {
    console.warn(`SKIPPED: ${stderr.trim()}`);
    context.skip(stderr.trim());
  }
  const summary = stdout.split("\n").filter((line) => line.startsWith("[doctest]"));
  console.log(summary.join("\n"));
  expect(status, `${stdout}\n${stderr}`).toBe(0);
});
