/** Options that `weir paper ID` and `weir paper all` share. */
import type { Command } from "commander";
import { clockList } from "../../src/cli/clock_option.js";
import { UsageError } from "../../src/cli/context.js";
import { integer } from "../../src/cli/device_options.js";
import { CLOCKS, type Clock } from "../engine/experiment.js";

export interface PaperChoice {
  on?: Clock[];
  out?: string;
  json?: boolean;
  quiet?: boolean;
  seed?: number;
  scale?: number;
  reference?: string;
  jobs?: number;
  fresh?: boolean;
}

const kMostJobs = 1024;

export function addPaperOptions(command: Command, out: string): Command {
  return command
    .option("--on <clock,...|all>", "clocks to run on: wire, sim, model (default: sim and model)", clockList(CLOCKS))
    .option("--out <dir>", `folder for the report (default: ${out})`)
    .option("--json", "one JSON document on stdout instead of text")
    .option("--quiet", "no progress")
    .option("--seed <n>", "seed of all runs (default: the scenarios')", integer("--seed", 0, 2 ** 32 - 1))
    .option("--scale <n>", "time scale of wire runs (default: the scenarios')", scale)
    .option("--jobs <n>", "runs in virtual time at a time (default: the CPUs)", integer("--jobs", 1, kMostJobs))
    .option("--fresh", "run again what is there, too")
    .option("--reference <dir>", "curves of other simulators: <dir>/<id>/<trace>/<label>.csv");
}

function scale(text: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1) return value;
  throw new UsageError(`--scale ${text}: not a number from 1 on`);
}
