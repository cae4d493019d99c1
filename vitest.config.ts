import { defineConfig } from "vitest/config";

export default defineConfig({
  // The projects run one after another: groupOrder.
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/{native,live,browser,interop}/**"],
          // Every CPU, so a test may take longer than alone.
          maxWorkers: "100%",
          testTimeout: 30_000,
        },
      },
      {
        // Builds and runs the native tests.
        test: {
          name: "native",
          include: ["test/native/**/*.test.ts"],
          sequence: { groupOrder: 1 },
          testTimeout: 600_000,
        },
      },
      {
        // Namespaces, veth and packet sockets of this machine: one file at a time.
        test: {
          name: "live",
          include: ["test/live/**/*.test.ts"],
          sequence: { groupOrder: 2 },
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // The dashboard's page in Chromium: one file at a time.
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          globalSetup: "test/browser/setup.ts",
          sequence: { groupOrder: 3 },
          fileParallelism: false,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        // Linux guests in emulation: one file at a time, on a machine that may have other things to do.
        test: {
          name: "interop",
          include: ["test/interop/**/*.test.ts"],
          globalSetup: "test/interop/setup.ts",
          sequence: { groupOrder: 4 },
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
