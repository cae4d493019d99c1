/** Runs command lines inside the test, with streams that remember and a lab that does as told. */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import type { CliContext } from "../../src/cli/context.js";
import { runCli } from "../../src/cli/program.js";
import type { Outcome } from "../../src/clocks/clock.js";
import { kClocks } from "../../src/clocks/clocks.js";
import type { LabOptions } from "../../src/clocks/lab/types.js";
import type { SimOptions, SimOutcome } from "../../src/clocks/sim/types.js";
import type { Scenario } from "../../src/scenario/types.js";
import { sampleResult, sampleSeries } from "../result/report/sample.js";
import { memoryStream } from "./memory_stream.js";

export interface Ran {
  status: number;
  stdout: string;
  stderr: string;
  exits: number[];
}

export type FakeLab = (options: LabOptions, signals: EventEmitter) => Promise<Outcome>;

export const finishedLab: FakeLab = async () => ({
  result: sampleResult(2),
  series: sampleSeries(2, 50),
  flowTable: [],
  complete: true,
});

export type FakeSim = (options: SimOptions, signals: EventEmitter, scenario: Scenario) => Promise<SimOutcome>;

const noSim: FakeSim = async () => {
  throw new Error("no simulation is expected to run");
};

/** `elevated` is the exit status of the same command run again with more rights; undefined: it has the rights. */
export async function weir(
  argv: readonly string[],
  lab: FakeLab = finishedLab,
  elevated?: number,
  sim = noSim,
  signals = new EventEmitter(),
): Promise<Ran> {
  const out = memoryStream();
  const err = memoryStream();
  const exits: number[] = [];
  const context: CliContext = {
    stdin: new PassThrough(),
    stdout: out.stream,
    stderr: err.stream,
    signals,
    exit: (status) => void exits.push(status),
    elevate: async () => elevated,
    clocks: async () => ({
      ...kClocks,
      wire: { ...kClocks.wire, run: (_scenario, options) => lab(options, signals) },
      sim: { ...kClocks.sim, run: (scenario, options) => sim(options, signals, scenario) },
    }),
  };
  const status = await runCli(argv, context);
  return { status, stdout: out.text(), stderr: err.text(), exits };
}
