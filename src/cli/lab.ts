/** `weir lab run`: a scenario on this host, with a live picture, tables and a report. */
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { loadScenario } from "../config/scenario.js";
import type { Scenario } from "../config/types.js";
import { LiveView } from "../lab/live_view.js";
import type { CaptureRequest, LabOptions, LabOutcome } from "../lab/types.js";
import { writeRun } from "../report/run_files.js";
import { renderTable } from "../report/table.js";
import { asUsage, type CliContext, collect, kExit, load, UsageError, wantsColor } from "./context.js";
import type { AddVerb } from "./program.js";

interface RunOptions {
  json?: boolean;
  set?: string[];
  out?: string;
  series?: boolean;
  quiet?: boolean;
  seed?: string;
  scale?: string;
  duration?: string;
  capture?: CaptureRequest[];
}

const kExamples = `
Examples:
  weir lab run incast.yaml
  weir lab run incast.yaml --scale auto --duration 100ms
  weir lab run incast.yaml --set congestion.profile=mlx5 --set switch.ecn.kmax=100KB
  weir lab run incast.yaml --json --quiet | jq .totals
  weir lab run incast.yaml --capture sw:sw.pcap
`;

export const addLab: AddVerb = (parent, context, done) => {
  const lab = parent.command("lab").description("run networks of software NICs and switches on this host");
  lab
    .command("run")
    .description("run a scenario and report")
    .argument("<file>", "scenario file (YAML)")
    .option("--json", "the result as one JSON document on stdout instead of tables")
    .option("--set <path=value>", "override a field of the scenario, repeatable", collect)
    .option("--out <dir>", "folder for result, series and report (default: weir-results/<scenario>-<time>)")
    .option("--series", "put the series into the result as well")
    .option("--quiet", "no live picture and no progress")
    .option("--seed <n>", "as --set seed=<n>")
    .option("--scale <n|auto>", "as --set scale=<n>: rates divided, times multiplied by it")
    .option("--duration <time>", "as --set duration=<time>, meant time")
    .option("--capture <link|node:file>", "write frames to a pcap file, repeatable", captureRequest)
    .addHelpText("after", kExamples)
    .action(async (file: string, options: RunOptions) => done(await run(context, file, options)));
};

async function run(context: CliContext, file: string, options: RunOptions): Promise<number> {
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
  const directory = options.out ?? join("weir-results", `${fileName(scenario.name)}-${timestamp(new Date())}`);
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
  options: RunOptions,
  captureDir: string,
): Promise<LabOutcome | number> {
  const abort = new AbortController();
  let status: number | undefined;
  const stop = (signal: "SIGINT" | "SIGTERM") => {
    const wanted = signal === "SIGINT" ? kExit.sigint : kExit.sigterm;
    if (status !== undefined) return context.exit(wanted);
    status = wanted;
    if (!options.quiet) context.stderr.write(`${signal}: stopping; once more to quit at once\n`);
    abort.abort(new Error(`stopped by ${signal}`));
  };
  const view = options.quiet ? undefined : new LiveView(context.stderr, { scenario: scenario.name });
  const labOptions: LabOptions = { view, signal: abort.signal, capture: options.capture ?? [], captureDir };
  context.signals.on("SIGINT", stop).on("SIGTERM", stop);
  try {
    const outcome = await context.runLab(scenario, labOptions);
    return status ?? outcome;
  } catch (error) {
    if (status !== undefined) return status;
    throw error;
  } finally {
    view?.finish();
    if (readdirSync(captureDir).length === 0) rmdirSync(captureDir);
    context.signals.off("SIGINT", stop).off("SIGTERM", stop);
  }
}

/** "sw:r.pcap" and "h1--sw:a.pcap": everything up to the first colon is the place. */
function captureRequest(value: string, before: readonly CaptureRequest[] = []): CaptureRequest[] {
  const colon = value.indexOf(":");
  if (colon <= 0 || colon === value.length - 1) {
    throw new UsageError(`--capture ${value}: no file`, { hint: "use LINK:FILE or NODE:FILE, for example sw:sw.pcap" });
  }
  return [...before, { target: value.slice(0, colon), file: value.slice(colon + 1) }];
}

/** A scenario's name as part of a path: nothing in it can leave the folder. */
function fileName(name: string): string {
  return name.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^\.+/, "_");
}

/** UTC, sorts by time: 20260131T235959Z. */
function timestamp(date: Date): string {
  return date.toISOString().replace(/[-:]|\.\d+/g, "");
}
