/**
 * All benchmarks of the core and of the data plane: `npm run bench -- [options]`, see docs/evidence/performance.md.
 *
 * --only REGEX: benchmarks, by file: 'core', 'forwarding'.  --rows REGEX: lines of their tables.  --quick: shorter and rougher.
 * --save-baseline: keep the figures in bench/baseline.json; what was not measured now stays.
 * --check: exit status 1 if a figure is worse than in the baseline.  --tolerance PERCENT: by how much, instead of each one's own.
 * --json, --markdown: the form of the output.  Always: everything as JSON in weir-results/bench.json.
 */
import { fork } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { drawGrid } from "../src/report/table.js";
import { BENCHMARKS } from "./benchmarks.js";
import type { Answer, Request } from "./child.js";
import { type BenchResult, compare, comparisonGrid, merge, missing } from "./compare.js";
import { describeHost, headline, load } from "./host.js";
import { markdown, rowGrid } from "./table.js";

const kBaseline = fileURLToPath(new URL("baseline.json", import.meta.url));
const kOutput = fileURLToPath(new URL("../weir-results/bench.json", import.meta.url));
/** Of one benchmark: whatever hangs must end. */
const kLimitMs = 20 * 60_000;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    rows: { type: "string", default: "" },
    quick: { type: "boolean", default: false },
    "save-baseline": { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    tolerance: { type: "string" },
    json: { type: "boolean", default: false },
    markdown: { type: "boolean", default: false },
  },
});
const tolerance = values.tolerance === undefined ? undefined : Number(values.tolerance) / 100;
if (tolerance !== undefined && !(tolerance >= 0)) throw new Error(`--tolerance ${values.tolerance}: a percentage`);
const baseline = existsSync(kBaseline) ? (JSON.parse(readFileSync(kBaseline, "utf8")) as BenchResult) : undefined;
if (values.check && baseline === undefined) throw new Error("--check: there is no baseline; --save-baseline makes one");

const host = describeHost();
const result: BenchResult = { host, quick: values.quick, benchmarks: [] };
for (const module of BENCHMARKS.filter((one) => new RegExp(values.only).test(one))) {
  process.stderr.write(`${module}\n`);
  try {
    result.benchmarks.push(await runBenchmark(module, { quick: values.quick, rows: values.rows }));
  } catch (error) {
    process.stderr.write(`left out: ${(error as Error).message}\n`);
    process.exitCode = 2;
  }
}
host.load.push(load());

const comparisons = baseline === undefined ? [] : compare(result, baseline, tolerance);
const worse = comparisons.filter(({ regression }) => regression);
const gone = baseline === undefined || values.rows !== "" ? [] : missing(result, baseline);
write(kOutput, result);
if (values.json) process.stdout.write(`${JSON.stringify({ ...result, comparisons }, undefined, 2)}\n`);
else report();
if (values["save-baseline"]) write(kBaseline, baseline === undefined ? result : merge(result, baseline));
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
