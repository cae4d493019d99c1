/** `weir lab run`: a scenario on this host, with a live picture, tables and a report. */
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { loadScenario } from "../config/scenario.js";
import type { Scenario } from "../config/types.js";
import { controlDirectory } from "../daemon/control_client.js";
import { LabControl } from "../lab/control.js";
import { LiveView } from "../lab/live_view.js";
import type { CaptureRequest, LabOptions, LabOutcome } from "../lab/types.js";
import { writeRun } from "../report/run_files.js";
import { renderTable } from "../report/table.js";
import { asUsage, type CliContext, kExit, load, placeAndFile, wantsColor } from "./context.js";
import type { AddVerb } from "./program.js";
import { runFolder } from "./run_folder.js";
import { addRunOptions, type RunOptions } from "./run_options.js";
import { StopSignals } from "./stop_signals.js";
import { packageVersion } from "./version.js";

interface LabChoice extends RunOptions {
  seed?: string;
  scale?: string;
  capture?: CaptureRequest[];
}

const kExamples = `
Examples:
  weir lab run incast.yaml
  weir lab run incast.yaml --scale auto --duration 100ms
  weir lab run incast.yaml --set congestion.profile=mlx5 --set switch.ecn.kmax=100KB
  weir lab run incast.yaml --json --quiet | jq .totals
  weir lab run incast.yaml --capture sw:sw.pcapng          with comments on ECN, CNP and PFC, for Wireshark
`;

export const addLab: AddVerb = (parent, context, done) => {
  const lab = parent.command("lab").description("run networks of software NICs and switches on this host");
  addRunOptions(lab.command("run"))
    .description("run a scenario and report")
    .option("--seed <n>", "as --set seed=<n>")
    .option("--scale <n|auto>", "as --set scale=<n>: rates divided, times multiplied by it")
    .option("--capture <link|node:file>", "write frames to a pcap or pcapng file, repeatable", captureRequest)
    .addHelpText("after", kExamples)
    .action(async (file: string, options: LabChoice) => done(await run(context, file, options)));
};

async function run(context: CliContext, file: string, options: LabChoice): Promise<number> {
  const set = [...(options.set ?? [])];
  for (const name of ["seed", "scale", "duration"] as const) {
    if (options[name] !== undefined) set.push(`${name}=${options[name]}`);
  }
  // A bad scenario is told before rights are asked for; warnings only by the process that runs it.
  asUsage(() => loadScenario(file, { set }));
  const elevated = await context.elevate();
  if (elevated !== undefined) return elevated;
  const { scenario } = load(context, file, set);
  const text = readFileSync(file, "utf8");
  const directory = options.out ?? runFolder(scenario.name, new Date());
  mkdirSync(directory, { recursive: true });

  const ended = await runUntilSignal(context, scenario, options, directory);
  if (typeof ended === "number") return ended;
  const { series } = ended;
  const result = options.series ? { ...ended.result, series } : ended.result;
  const report = writeRun(directory, result, series, { text, set, scenario });
  const { stdout } = context;
  if (options.json) stdout.write(`${JSON.stringify(result, undefined, 2)}\n`);
  else stdout.write(`${renderTable(result, { color: wantsColor(stdout) })}\nreport: ${report}\n`);
  return result.fidelity.valid ? kExit.ok : kExit.invalid;
}

/** The outcome, or the exit status of the signal that ended the run. A second signal ends the process at once. */
async function runUntilSignal(
  context: CliContext,
  scenario: Scenario,
  options: LabChoice,
  captureDir: string,
): Promise<LabOutcome | number> {
  const stop = new StopSignals(context, options.quiet === true);
  const view = options.quiet ? undefined : new LiveView(context.stderr, { scenario: scenario.name });
  const control = await openControl(context, scenario.name);
  const labOptions: LabOptions = {
    view,
    observers: control === undefined ? [] : [control],
    signal: stop.signal,
    capture: options.capture ?? [],
    captureDir,
    version: packageVersion(),
  };
  try {
    const outcome = await context.runLab(scenario, labOptions);
    return stop.status ?? outcome;
  } catch (error) {
    if (stop.status !== undefined) return stop.status;
    throw error;
  } finally {
    view?.finish();
    control?.close();
    if (readdirSync(captureDir).length === 0) rmdirSync(captureDir);
    stop.release();
  }
}

/** A lab runs without as well. */
async function openControl({ stderr }: CliContext, name: string): Promise<LabControl | undefined> {
  try {
    return await LabControl.open(name, controlDirectory(), packageVersion());
  } catch (error) {
    stderr.write(`warning: weir show and weir top cannot see this lab: ${(error as Error).message}\n`);
    return undefined;
  }
}

function captureRequest(value: string, before: readonly CaptureRequest[] = []): CaptureRequest[] {
  return [...before, placeAndFile("--capture", value, "sw:sw.pcap")];
}
