/** `weir` with no verb but `sweep`, and the simulation of the tests. */
import { Command } from "commander";
import { addSweepOn } from "../../src/cli/sweep.js";
import { fakeSimulate } from "./fake_simulate.js";
import { clocksWith, kCode, startFakeWorker } from "./fake_tools.js";

const { stdin, stdout, stderr, env, exit } = process;
const program = new Command("weir");
addSweepOn(
  { codeVersion: () => kCode, loadCore: () => {}, startWorker: startFakeWorker, environment: env },
  program,
  {
    stdin,
    stdout,
    stderr,
    signals: process,
    exit,
    clocks: async () => clocksWith(fakeSimulate),
    elevate: async () => undefined,
  },
  (status) => {
    process.exitCode = status;
  },
);
await program.parseAsync();
