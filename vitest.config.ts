import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { kPatienceMs, kTestLimitMs } from "./test/limits.js";
import { makePath } from "./test/needs.js";
import { SummaryReporter } from "./test/summary_reporter.js";

/** Tests find the programs of test/needs.json and no others, and are at no particular terminal. */
// What a build finds it remembers for the next one, when that folder is gone: it has the path that this process has.
const env = { PATH: makePath(), WEIR_BUILD_PATH: process.env.PATH ?? "", TERM: "xterm" };

/** Labs that are asked whether their run was valid, and such as take all CPUs: no other test has a part of these meanwhile. */
const kAlone = ["test/live/{dashboard,lab_{hpcc,messages,nscc,parts,qcn,round_trips,run,trimming}}.test.ts"];

/** In the order in which they run: those of a list beside one another, lists one after another. */
const groups: NonNullable<TestProjectInlineConfiguration["test"]>[][] = [
  [
    {
      name: "unit",
      include: ["test/**/*.test.ts", "papers/**/*.test.ts"],
      exclude: ["test/{native,live,browser,interop,nics}/**"],
      // Files share the modules of a process: to load them for each takes as long as the tests do.
      isolate: false,
      // Every CPU, so a test may take longer than alone.
      maxWorkers: "100%",
      testTimeout: kTestLimitMs,
      hookTimeout: kTestLimitMs,
    },
    {
      // Builds and runs the native tests.
      name: "native",
      include: ["test/native/**/*.test.ts"],
      maxWorkers: "100%",
      testTimeout: 1_200_000,
    },
  ],
  [
    {
      // Namespaces, veth and packet sockets of this machine. Three files at a time: some of them wait for something.
      name: "live",
      include: ["test/live/**/*.test.ts"],
      exclude: kAlone,
      isolate: false,
      maxWorkers: 3,
      testTimeout: kTestLimitMs,
      hookTimeout: kTestLimitMs,
    },
  ],
  [
    {
      name: "labs",
      include: kAlone,
      fileParallelism: false,
      testTimeout: kTestLimitMs,
      hookTimeout: kTestLimitMs,
    },
  ],
  [
    {
      // The dashboard's page in Chromium.
      name: "browser",
      include: ["test/browser/**/*.test.ts"],
      globalSetup: "test/browser/setup.ts",
      maxWorkers: 2,
      testTimeout: kTestLimitMs,
      hookTimeout: kTestLimitMs,
    },
  ],
  [
    {
      // Linux guests in emulation: one file at a time, on a machine that may have other things to do.
      name: "interop",
      include: ["test/interop/**/*.test.ts"],
      globalSetup: "test/guests/setup.ts",
      fileParallelism: false,
      testTimeout: kTestLimitMs,
      hookTimeout: kTestLimitMs,
    },
  ],
  [
    {
      // Weir in guests, on the drivers of QEMU's NICs.
      name: "nics",
      include: ["test/nics/**/*.test.ts"],
      globalSetup: "test/guests/setup.ts",
      fileParallelism: false,
      testTimeout: 2 * kTestLimitMs,
      hookTimeout: kTestLimitMs,
    },
  ],
];

export default defineConfig({
  test: {
    reporters: ["default", new SummaryReporter()],
    globalSetup: "test/command.ts",
    projects: groups.flatMap((group, groupOrder) =>
      group.map((test) => ({
        test: { ...test, env, sequence: { groupOrder }, expect: { poll: { timeout: kPatienceMs } } },
      })),
    ),
  },
});
