import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { lacking } from "../needs.js";
import { itUnless } from "../obstacles.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

itUnless(lacking("build-essential", "cmake", "doctest-dev"), "passes the tests of the native core", () => {
  const env = { ...process.env, PATH: process.env.WEIR_BUILD_PATH };
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/native-tests.mjs"], {
    cwd: root,
    encoding: "utf8",
    env,
  });
  const summary = stdout.split("\n").filter((line) => line.startsWith("[doctest]"));
  console.log(summary.join("\n"));
  expect(status, `${stdout}\n${stderr}`).toBe(0);
});
