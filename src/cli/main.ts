#!/usr/bin/env node
import { describeError, kExit } from "./context.js";
import { heedNpmShell } from "./npm_shell.js";
import { runCli } from "./program.js";

heedNpmShell();

// A reader that went away (`weir ... | head`) is no failure; the status still tells how the run went. A full disk is one, if the
// output is the result. Text that cannot be written to stderr is lost, and no reason to end: daemons have their log there.
process.stderr.on("error", () => {});
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") return;
  process.stderr.write(describeError(new Error(`cannot write to stdout: ${error.message}`)));
  process.exit(kExit.failure);
});

process.exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signals: process,
  exit: (status) => process.exit(status),
  // The module is loaded when needed: help, validation and reports work without the native core.
  elevate: async (handed) => (await import("../host/rootless.js")).reexecuteRootless(handed),
  clocks: async () => (await import("../clocks/clocks.js")).kClocks,
});
