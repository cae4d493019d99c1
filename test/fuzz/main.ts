/**
 * Runs one target for `npm run fuzz`, in a process of its own: main.ts NAME --seed N --seconds N --corpus FOLDER --findings
 * FOLDER, or main.ts NAME --input FILE. Its output has the form of libFuzzer's. Exit status 1: an input failed, and was saved.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fuzz, nameOf, once, type Target } from "./engine.js";
import { Finding } from "./input.js";
import { kTargets } from "./targets.js";

/** Characters of the product's input that a person sees. */
const kShown = 4000;
const kFailed = 1;
/** Files of targets need no disk. */
const kMemory = "/dev/shm";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string", default: "1" },
    seconds: { type: "string", default: "60" },
    corpus: { type: "string", default: "" },
    findings: { type: "string", default: "." },
    input: { type: "string" },
  },
});
const [name = ""] = positionals;
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => stop.abort());
// Nobody reads the output any more.
process.stderr.on("error", () => process.exit(kFailed));
const say = (line: string) => process.stderr.write(`${line}\n`);

const folder = mkdtempSync(join(existsSync(kMemory) ? kMemory : tmpdir(), "weir-fuzz-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const target = await (await kTargets[name]?.())?.open(folder);
if (target === undefined) throw new Error(`there is no target ${name}`);
const current = join(values.findings, `${name}-current`);
// These may come of a promise that nobody waits for, or a timer: the input that runs is the one to blame.
for (const event of ["uncaughtException", "unhandledRejection"] as const) {
  process.on(event, (error: unknown) => {
    report(error, values.input === undefined ? readFileSync(current) : undefined);
    process.exit(kFailed);
  });
}
process.exitCode = values.input === undefined ? await search(target) : await replay(target, readFileSync(values.input));
target.close?.();

async function search(target: Target): Promise<number> {
  const begin = performance.now();
  const line = (what: string, { runs, corpus, added }: { runs: number; corpus: number; added: number }) =>
    say(
      `#${runs}\t${what} corp: ${corpus} new: ${added} exec/s: ${Math.round((runs / (performance.now() - begin)) * 1000)}`,
    );
  const outcome = await fuzz({
    target,
    seed: Number(values.seed),
    seconds: Number(values.seconds),
    corpus: values.corpus,
    current,
    signal: stop.signal,
    tell: (progress) => line("pulse", progress),
  });
  line("DONE", outcome);
  const { failure } = outcome;
  if (failure !== undefined) report(failure.error, failure.input);
  rmSync(current, { force: true });
  return failure === undefined ? 0 : kFailed;
}

async function replay(target: Target, input: Uint8Array): Promise<number> {
  try {
    await once(target, input);
    say("nothing was found");
    return 0;
  } catch (error) {
    report(error);
    return kFailed;
  }
}

/** Says what was found, and saves the input that shows it. */
function report(error: unknown, input?: Uint8Array): void {
  const given = error instanceof Finding ? error.given : "";
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
  if (error instanceof Finding && error.cause instanceof Error) say(`caused by ${error.cause.stack}`);
  if (given !== "") say(`given:\n${given.slice(0, kShown)}${given.length > kShown ? "\n..." : ""}`);
  if (input === undefined) return;
  mkdirSync(values.findings, { recursive: true });
  const file = join(values.findings, `${name}-${nameOf(input)}`);
  writeFileSync(file, input);
  say(`Test unit written to ${file}`);
}
