/** One fuzzer in a process of its own: starts it, reads what it says, and keeps the input with which it fails. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { NativeBuild } from "./native.js";
import { writeSeeds } from "./seeds.js";
import { corpusOf, type Finding, type FuzzTarget, kBuildFolder, kFindings, type Tally } from "./targets.js";

/** Longest time for an input, s: it takes milliseconds, on a machine that has other things to do as well. */
const kLongestRun = 60;
/** Time after which a silent process counts as hanging, ms; libFuzzer, which watches itself, may be silent. */
const kSilentMs = 2 * kLongestRun * 1000;
/** Last lines of a process that are shown. */
const kShownLines = 60;
/** libFuzzer's exit status when it was told to end. */
const kInterrupted = 72;

/** Options for traces with lines, from addr2line if there is no llvm-symbolizer. */
const kSanitizers = { ASAN_OPTIONS: "allow_addr2line=1", UBSAN_OPTIONS: "print_stacktrace=1" };

export interface JobOptions {
  seed: number;
  seconds: number;
  /** Undefined if no target is native. */
  build: NativeBuild | undefined;
}

export class Job {
  readonly tally: Tally;
  finding: Finding | undefined;
  private readonly started = performance.now();
  private ended: number | undefined;
  private readonly child: ChildProcess;
  private readonly lines: string[] = [];
  private readonly log: number;
  private silence: NodeJS.Timeout | undefined;
  private stopped = false;
  private hangs = false;

  constructor(
    readonly target: FuzzTarget,
    private readonly options: JobOptions,
  ) {
    this.tally = { target: target.name, runs: 0, coverage: undefined, corpus: 0, added: 0 };
    for (const folder of [corpusOf(target.name), kFindings, join(kBuildFolder, "logs")])
      mkdirSync(folder, { recursive: true });
    rmSync(this.#current, { force: true });
    this.log = openSync(join(kBuildFolder, "logs", `${target.name}.log`), "w");
    const [command, ...args] = commandOf(target, options);
    this.child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...kSanitizers } });
  }

  /** Runs until the process has ended. */
  async run(): Promise<void> {
    const ended = new Promise<number | undefined>((resolve) => {
      this.child.on("error", (error) => {
        this.lines.push(error.message);
        resolve(undefined);
      });
      this.child.on("close", (code) => resolve(code ?? undefined));
    });
    this.#listen();
    if (this.child.stderr !== null) for await (const line of createInterface(this.child.stderr)) this.#hear(line);
    const status = await ended;
    this.ended = performance.now();
    clearTimeout(this.silence);
    closeSync(this.log);
    const isOver = status === 0 || (this.stopped && (status === kInterrupted || status === undefined));
    if (!isOver || this.hangs) this.finding = { target: this.target.name, said: this.#said(), file: this.#keepInput() };
    rmSync(this.#current, { force: true });
  }

  /** Ends it between two inputs. Idempotent. */
  stop(): void {
    this.stopped = true;
    this.child.kill("SIGINT");
  }

  /** Time for which it has run. */
  get seconds(): number {
    return ((this.ended ?? performance.now()) - this.started) / 1000;
  }

  get #current(): string {
    return join(kFindings, `${this.target.name}-current`);
  }

  #listen(): void {
    clearTimeout(this.silence);
    if (this.target.isNative && this.options.build?.isGuided) return;
    this.silence = setTimeout(() => {
      this.hangs = true;
      this.lines.push(`it said nothing for ${kSilentMs / 1000} s: an input does not end`);
      this.child.kill("SIGKILL");
    }, kSilentMs);
  }

  #hear(line: string): void {
    this.#listen();
    writeSync(this.log, `${line}\n`);
    this.lines.push(line);
    if (this.lines.length > 10 * kShownLines) this.lines.splice(0, kShownLines);
    const { tally } = this;
    const number = (pattern: RegExp) => Number(pattern.exec(line)?.[1] ?? Number.NaN);
    const take = (value: number, set: (value: number) => void) => void (Number.isNaN(value) || set(value));
    take(number(/^#(\d+)\t/), (runs) => {
      tally.runs = runs;
      take(number(/ cov: (\d+)/), (coverage) => {
        tally.coverage = coverage;
      });
      take(number(/ corp: (\d+)/), (corpus) => {
        tally.corpus = corpus;
      });
      take(number(/ new: (\d+)/), (added) => {
        tally.added = added;
      });
    });
    take(number(/^stat::number_of_executed_units: (\d+)/), (runs) => {
      tally.runs = runs;
    });
    take(number(/^stat::new_units_added: +(\d+)/), (added) => {
      tally.added = added;
    });
  }

  /** Output without the progress before an error, and without libFuzzer's words on the input behind it. */
  #said(): string {
    const end = this.lines.findIndex((line) => line.startsWith("MS: "));
    const words = this.lines.slice(0, end < 0 ? undefined : end);
    return words
      .filter((line) => !/^(#\d+\t|INFO:|NOTE: lib| +Combine lib)/.test(line))
      .slice(-kShownLines)
      .join("\n");
  }

  /** Path of the input that ended the process. */
  #keepInput(): string | undefined {
    const written = this.lines.map((line) => /Test unit written to (.+)$/.exec(line)?.[1]).findLast(Boolean);
    if (written !== undefined) return written;
    if (!existsSync(this.#current)) return undefined;
    const name = createHash("sha1").update(readFileSync(this.#current)).digest("hex").slice(0, 16);
    const file = join(kFindings, `${this.target.name}-${name}`);
    renameSync(this.#current, file);
    return file;
  }
}

/** Runs one input, and shows all that the process says. Returns its exit status. */
export async function replay(target: FuzzTarget, input: string, build: NativeBuild | undefined): Promise<number> {
  const command = target.isNative
    ? [build?.program(target.name) ?? "", input]
    : [process.execPath, ...kTypeScript, target.name, "--input", input];
  const child = spawn(command[0] as string, command.slice(1), {
    stdio: "inherit",
    env: { ...process.env, ...kSanitizers },
  });
  return new Promise((resolve, reject) => child.on("error", reject).on("close", (code) => resolve(code ?? 1)));
}

/** Command for targets in TypeScript; by gc() they see which memory is held. */
const kTypeScript = ["--expose-gc", "--max-old-space-size=2048", "--import", "tsx", "test/fuzz/main.ts"];

function commandOf(
  { name, isNative, longest }: FuzzTarget,
  { seed, seconds, build }: JobOptions,
): [string, ...string[]] {
  const corpus = corpusOf(name);
  if (!isNative || build === undefined) {
    const options = ["--seed", `${seed}`, "--seconds", `${seconds}`, "--corpus", corpus, "--findings", kFindings];
    return [process.execPath, ...kTypeScript, name, ...options];
  }
  const options = {
    seed,
    max_total_time: seconds,
    max_len: longest,
    // Inputs are decisions, and long ones are no worse than short ones.
    len_control: 0,
    timeout: kLongestRun,
    report_slow_units: kLongestRun,
    print_final_stats: 1,
    artifact_prefix: join(kFindings, `${name}-`),
  };
  const given = Object.entries(options).map(([option, value]) => `-${option}=${value}`);
  return [build.program(name), ...given, corpus, writeSeeds(name, seed)];
}
