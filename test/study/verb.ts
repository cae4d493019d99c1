/** One command line of a verb that runs points, with the tests' simulation. */
import { EventEmitter } from "node:events";
import { Writable } from "node:stream";
import { Command } from "commander";
import { type AddVerb, type CliContext, describeError, exitStatusOf } from "../../src/cli/context.js";
import type { PointTools } from "../../src/cli/points.js";
import { fakeSimulate } from "./fake_simulate.js";
import { clocksWith, kCode, startFakeWorker } from "./fake_tools.js";

type AddVerbOn = (tools: PointTools, ...verb: Parameters<AddVerb>) => void;

export async function runVerb(
  add: AddVerbOn,
  argv: readonly string[],
  tools: Partial<PointTools> = {},
  signals = new EventEmitter(),
  more: Partial<CliContext> = {},
) {
  const text = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof text) =>
    new Writable({
      write(chunk, _encoding, done) {
        text[name] += String(chunk);
        done();
      },
    });
  const context = {
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    signals,
    clocks: async () => clocksWith(fakeSimulate),
    ...more,
  } as unknown as CliContext;
  const all: PointTools = {
    codeVersion: () => kCode,
    loadCore: () => {},
    startWorker: startFakeWorker,
    environment: {},
    ...tools,
  };
  let status = 0;
  const program = new Command("weir").exitOverride().configureOutput({ writeErr: () => {} });
  add(all, program, context, (value) => {
    status = value;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    status = exitStatusOf(error);
    text.stderr += describeError(error);
  }
  return { status, ...text };
}
