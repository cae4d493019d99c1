/** All benchmarks of the core and of the data plane: `npm run bench -- [options]`, see docs/evidence/performance.md. */
import { fork } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, InvalidArgumentError } from "commander";
import { drawGrid } from "../src/result/report/table.js";
import { BENCHMARKS } from "./benchmarks.js";
import type { Answer, Request } from "./child.js";
import { type BenchResult, compare, comparisonGrid, merge, missing } from "./compare.js";
import { describeHost, headline, load } from "./host.js";
import { numberIn, pattern } from "./options.js";
import { markdown, rowGrid } from "./table.js";

const kBaseline = fileURLToPath(new URL("baseline.json", import.meta.url));
const kOutput = fileURLToPath(new URL("../weir-results/bench.json", import.meta.url));
interface Options {
  only?: RegExp;
  rows?: RegExp;
  quick: boolean;
  peer: string[];
  saveBaseline?: boolean;
  check?: boolean;
  tolerance?: number;
  json?: boolean;
  markdown?: boolean;
}

/** Of one benchmark: whatever hangs must end. */
const kLimitMs = 20 * 60_000;

const values = new Command("npm run bench --")
  .description("Benchmarks of the core and of the data plane.")
  .option("--only <regex>", "benchmarks, by file: 'core', 'forwarding'", pattern)
  .option("--rows <regex>", "lines of their tables", pattern)
  .option("--quick", "shorter and rougher", false)
  .option(
    "--peer <name=command>",
    "one more switch for `forwarding`: a command that forwards between the interfaces gen and sink; repeatable",
    (one: string, before: string[]) => {
      if (!/^[^=]+=./.test(one)) throw new InvalidArgumentError("It is NAME=COMMAND.");
      return [...before, one];
    },
    [],
  )
  .option("--save-baseline", "keep the figures in bench/baseline.json; what was not measured now stays")
  .option("--check", "exit status 1 if a figure is worse than in the baseline")
  .option("--tolerance <percent>", "by how much, instead of each one's own", numberIn(0, 1000))
  .option("--json", "JSON instead of tables")
  .option("--markdown", "tables in Markdown")
  .addHelpText("after", "\nEverything is written as JSON into weir-results/bench.json too.")
  .parse()
  .opts<Options>();
const tolerance = values.tolerance === undefined ? undefined : values.tolerance / 100;
const baseline = existsSync(kBaseline) ? (JSON.parse(readFileSync(kBaseline, "utf8")) as BenchResult) : undefined;
if (values.check && baseline === undefined) throw new Error("--check: there is no baseline; --save-baseline makes one");

const host = describeHost();
const result: BenchResult = { host, quick: values.quick, benchmarks: [] };
for (const module of BENCHMARKS.filter((one) => values.only?.test(one) ?? true)) {
  process.stderr.write(`${module}\n`);
  try {
    result.benchmarks.push(
      await runBenchmark(module, { quick: values.quick, rows: values.rows?.source ?? "", peers: values.peer }),
    );
  } catch (error) {
    process.stderr.write(`left out: ${(error as Error).message}\n`);
    process.exitCode = 2;
  }
}
host.load.push(load());

const comparisons = baseline === undefined ? [] : compare(result, baseline, tolerance);
const worse = comparisons.filter(({ regression }) => regression);
const gone = baseline === undefined || values.rows !== undefined ? [] : missing(result, baseline);
write(kOutput, result);
if (values.json) process.stdout.write(`${JSON.stringify({ ...result, comparisons }, undefined, 2)}\n`);
else report();
if (values.saveBaseline) write(kBaseline, baseline === undefined ? result : merge(result, baseline));
if (values.check && worse.length + gone.length > 0) process.exitCode = 1;

function report(): void {
  const render = values.markdown ? markdown : drawGrid;
  const grids = result.benchmarks.map(({ title, rows }) => rowGrid(title, rows));
  if (baseline !== undefined && comparisons.length > 0) {
    const elsewhere = (["cpu", "kernel"] as const).filter((fact) => baseline.host[fact] !== host[fact]);
    const warning =
      elsewhere.length === 0 ? "" : `; ANOTHER ${elsewhere.join(" AND ").toUpperCase()}: ${headline(baseline.host)}`;
    grids.push(comparisonGrid(comparisons, `Beside the baseline of ${baseline.host.date}${warning}`));
  }
  const lost = gone.map((one) => `in the baseline and not here: ${one}`);
  process.stdout.write(`${[headline(host), ...grids.map((grid) => render(grid)), ...lost].join("\n\n")}\n`);
}

/** In a process of its own, whose standard output goes to our standard error. */
function runBenchmark(module: string, request: Request): Promise<Answer> {
  return new Promise((done, failed) => {
    const child = fork(fileURLToPath(new URL("child.ts", import.meta.url)), [module, JSON.stringify(request)], {
      stdio: ["inherit", 2, 2, "ipc"],
      detached: true,
      timeout: kLimitMs,
    });
    let answer: Answer | undefined;
    child.on("message", (message) => {
      answer = message as Answer;
    });
    child.on("error", failed);
    child.on("exit", (code, signal) => {
      if (code === 0 && answer !== undefined) done(answer);
      else failed(new Error(`${module}: ${signal === null ? `exit status ${code}` : `ended by ${signal}`}`));
    });
  });
}

function write(file: string, content: BenchResult): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(content, undefined, 1)}\n`);
}
