/** `npm run fuzz`: feeds parsers of untrusted bytes inputs that are drawn and changed without end, and keeps those that fail. */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Command, InvalidArgumentError } from "commander";
import { drawGrid } from "../src/result/report/table.js";
import { Job, type JobOptions, replay } from "./fuzz/job.js";
import { buildNative } from "./fuzz/native.js";
import {
  type Finding,
  type FuzzTarget,
  kFindings,
  kFuzzFolder,
  kFuzzTargets,
  replayCommand,
  type Tally,
} from "./fuzz/targets.js";

const kExit = { ok: 0, findings: 1, usage: 2, interrupted: 130 } as const;
/** Interval at which a target tells its progress, s: a sixth of the time, within these bounds. */
const kTell = { least: 10, most: 60 };

interface Options {
  seconds: number;
  jobs: number;
  seed: number;
  input?: string;
  list?: boolean;
}

const count = (text: string) => {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1 && value < 2 ** 31) return value;
  throw new InvalidArgumentError("A whole number from 1 on, below 2^31.");
};

const program = new Command("npm run fuzz --")
  .description("Fuzzes what reads frames, messages and files that come from others.")
  .argument("[target...]", "which; all if none is named")
  .option("--seconds <n>", "how long each target runs", count, 60)
  .option("--jobs <n>", "how many run at a time (default: as many as there are CPUs)", count, availableParallelism())
  .option(
    "--seed <n>",
    "of what is drawn (default: another one each time)",
    count,
    1 + Math.floor(Math.random() * 2 ** 30),
  )
  .option("--input <file>", "run one target with this input alone, and show what happens")
  .option("--list", "list the targets")
  .addHelpText(
    "after",
    `
Inputs that show something new are kept in ${kFuzzFolder}/corpus, and later runs begin with them. An input that fails is kept in
${kFindings}, and the command that shows it again is printed; its target ends there. Exit status: 0 nothing was found, 1 something
was, 2 it could not run, 130 it was interrupted before anything was found.

Native targets are built by clang with libFuzzer, AddressSanitizer and UBSan, and are led by coverage. Where there is no clang, any
compiler with the sanitizers will do, without coverage. TypeScript targets keep an input for what the product answers to it.

Examples:
  npm run fuzz -- switch --seconds 3600
  npm run fuzz -- --jobs 4
  npm run fuzz -- cm --input ${kFindings}/cm-0123456789abcdef
`,
  )
  .configureOutput({ writeErr: (text) => process.stderr.write(text) })
  .exitOverride((error) => process.exit(error.exitCode === 0 ? kExit.ok : kExit.usage))
  .action(async (names: string[], options: Options) => {
    process.exitCode = await main(names, options);
  });
await program.parseAsync();

async function main(names: readonly string[], options: Options): Promise<number> {
  if (options.list) {
    for (const { name, isNative, about } of kFuzzTargets)
      console.log(`${name.padEnd(10)} ${isNative ? "C++" : "TS "}  ${about}`);
    return kExit.ok;
  }
  const unknown = names.find((name) => !kFuzzTargets.some((target) => target.name === name));
  if (unknown !== undefined) return refuse(`there is no target ${unknown}; --list lists them`);
  const targets = kFuzzTargets.filter(({ name }) => names.length === 0 || names.includes(name));
  const [only] = targets;
  if (options.input !== undefined) {
    if (names.length !== 1 || only === undefined) return refuse("--input is for one target: name it");
    if (!existsSync(options.input)) return refuse(`--input ${options.input}: no such file`);
  }
  let build: JobOptions["build"];
  try {
    if (targets.some(({ isNative }) => isNative)) build = buildNative();
  } catch (error) {
    return refuse((error as Error).message);
  }
  if (options.input !== undefined && only !== undefined) {
    return (await replay(only, options.input, build)) === 0 ? kExit.ok : kExit.findings;
  }
  return fuzz(targets, options, build);
}

function refuse(why: string): number {
  console.error(`npm run fuzz: ${why}`);
  return kExit.usage;
}

async function fuzz(
  targets: readonly FuzzTarget[],
  { seconds, jobs, seed }: Options,
  build: JobOptions["build"],
): Promise<number> {
  const running = new Set<Job>();
  let interrupted = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      interrupted = true;
      for (const job of running) job.stop();
    });
  }
  console.log(
    `npm run fuzz: ${targets.map(({ name }) => name).join(", ")}: ${seconds} s each, ${jobs} at a time, seed ${seed}`,
  );
  const done: Job[] = [];
  const left = [...targets];
  const work = async () => {
    for (let target = left.shift(); target !== undefined && !interrupted; target = left.shift()) {
      const job = new Job(target, { seed, seconds, build });
      running.add(job);
      await job.run();
      running.delete(job);
      done.push(job);
      console.log(`${progress(job)}${job.finding === undefined ? "" : ", FAILED"}`);
      if (job.finding !== undefined) tell(job.finding);
    }
  };
  const telling = new AbortController();
  void tellProgress(running, seconds, telling.signal);
  await Promise.all(Array.from({ length: jobs }, work));
  telling.abort();
  console.log(`\n${summary(done)}`);
  const findings = done.flatMap(({ finding }) => finding ?? []);
  for (const { target, file } of findings)
    console.log(`${target}: ${file === undefined ? "did not run" : replayCommand(target, file)}`);
  if (findings.length > 0) return kExit.findings;
  return interrupted ? kExit.interrupted : kExit.ok;
}

async function tellProgress(running: ReadonlySet<Job>, seconds: number, signal: AbortSignal): Promise<void> {
  const every = Math.min(Math.max(seconds / 6, kTell.least), kTell.most);
  for (;;) {
    try {
      await sleep(every * 1000, undefined, { signal });
    } catch {
      return;
    }
    for (const job of running) if (job.tally.runs > 0) console.log(progress(job));
  }
}

function progress({ tally, seconds }: Job): string {
  const { target, runs, coverage, corpus, added } = tally;
  const covered = coverage === undefined ? "" : `, coverage ${coverage}`;
  return `${target}: ${Math.round(seconds)} s, ${runs} runs${covered}, corpus ${corpus}${added > 0 ? `, ${added} new` : ""}`;
}

function tell({ target, said, file }: Finding): void {
  console.log(`\n${said}\n`);
  if (file === undefined) return;
  console.log(`${target}: its input is ${file}; to see it again:\n  ${replayCommand(target, file)}\n`);
}

function summary(done: readonly Job[]): string {
  const row = ({ tally, seconds, finding }: Job): string[] => [
    tally.target,
    ...figures(tally, seconds),
    finding === undefined ? "-" : (finding.file ?? "did not run"),
  ];
  return drawGrid({
    title: "Fuzzed",
    head: ["target", "runs", "runs/s", "coverage", "corpus", "new", "finding"],
    names: 1,
    rows: done.map(row),
  });
}

function figures({ runs, coverage, corpus, added }: Tally, seconds: number): string[] {
  return [runs, Math.round(runs / seconds), coverage ?? "-", corpus, added].map(String);
}
