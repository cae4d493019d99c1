/** `weir` with no verb but `sweep`, and the simulation of the tests. */
import { Command } from "commander";
import { addSweepOn } from "../../../src/cli/sweep.js";
import { kClocks } from "../../../src/clocks/clocks.js";
import { fakeSimulate } from "./fake_simulate.js";
import { kCode, startFakeWorker } from "./fake_tools.js";

const { stdin, stdout, stderr, env, exit } = process;
const program = new Command("weir");
addSweepOn(
  { codeVersion: () => kCode, clock: () => ({ run: fakeSimulate }), startWorker: startFakeWorker, environment: env },
  program,
  {
    stdin,
    stdout,
    stderr,
    signals: process,
    exit,
    clocks: kClocks,
    elevate: async () => undefined,
  },
  (status) => {
    process.exitCode = status;
  },
);
await program.parseAsync();
