import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { kPatienceMs, kTestLimitMs } from "./test/limits.js";
import { makePath } from "./test/needs.js";
import { SummaryReporter } from "./test/summary_reporter.js";

/** Tests find the programs of test/needs.json and no others, and are at no particular terminal. */
// What a build finds it remembers for the next one, when that folder is gone: it has the path that this process has.
const env = { PATH: makePath(), WEIR_BUILD_PATH: process.env.PATH ?? "", TERM: "xterm" };

/** In the order in which they run, one after another. */
const projects: NonNullable<TestProjectInlineConfiguration["test"]>[] = [
  {
    name: "unit",
    include: ["test/**/*.test.ts"],
    exclude: ["test/{native,live,browser,interop}/**"],
    // Every CPU, so a test may take longer than alone.
    maxWorkers: "100%",
    testTimeout: kTestLimitMs,
    hookTimeout: kTestLimitMs,
  },
  {
    // Builds and runs the native tests.
    name: "native",
    include: ["test/native/**/*.test.ts"],
    testTimeout: 1_200_000,
  },
  {
    // Namespaces, veth and packet sockets of this machine: one file at a time.
    name: "live",
    include: ["test/live/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: kTestLimitMs,
    hookTimeout: kTestLimitMs,
  },
  {
    // The dashboard's page in Chromium: one file at a time.
    name: "browser",
    include: ["test/browser/**/*.test.ts"],
    globalSetup: "test/browser/setup.ts",
    fileParallelism: false,
    testTimeout: kTestLimitMs,
    hookTimeout: kTestLimitMs,
  },
  {
    // Linux guests in emulation: one file at a time, on a machine that may have other things to do.
    name: "interop",
    include: ["test/interop/**/*.test.ts"],
    globalSetup: "test/interop/setup.ts",
    fileParallelism: false,
    testTimeout: kTestLimitMs,
    hookTimeout: kTestLimitMs,
  },
];

export default defineConfig({
  test: {
    reporters: ["default", new SummaryReporter()],
    globalSetup: "test/command.ts",
    projects: projects.map((test, groupOrder) => ({
      test: { ...test, env, sequence: { groupOrder }, expect: { poll: { timeout: kPatienceMs } } },
    })),
  },
});
