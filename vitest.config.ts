import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: { name: "unit", include: ["test/**/*.test.ts"], exclude: ["test/{native,live,interop}/**"] },
      },
      {
        // Builds and runs the native tests.
        test: { name: "native", include: ["test/native/**/*.test.ts"], testTimeout: 600_000 },
      },
      {
        // Namespaces, veth and packet sockets of this machine: one file at a time.
        test: {
          name: "live",
          include: ["test/live/**/*.test.ts"],
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        // Linux guests in emulation: one file at a time, on a machine that may have other things to do.
        test: {
          name: "interop",
          include: ["test/interop/**/*.test.ts"],
          globalSetup: "test/interop/setup.ts",
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
