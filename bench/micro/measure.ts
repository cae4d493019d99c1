/** Micro benchmarks with benny: ns per operation, and instructions per operation where valgrind is installed. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import benny from "benny";
import type { BenchOptions, Row } from "../row.js";

export interface Operation {
  name: string;
  /** Makes what `run` needs; the function does the operation `count` times. */
  make: () => (count: number) => void;
  /** A program that does it as often as its last argument says: for counting instructions. */
  program?: readonly string[];
}

/** One call lasts about this long: enough that the call itself costs nothing, and short beside a time slice. */
const kCallMs = 0.5;
/** Of a timing on a machine that does other things too. */
const kTimeTolerance = 0.15;
const kCountTolerance = 0.01;

export async function measureOperations(operations: readonly Operation[], options: BenchOptions): Promise<Row[]> {
  const chosen = operations.filter(({ name }) => options.wants(name));
  const valgrind = await hasValgrind();
  if (!valgrind) process.stderr.write("no instructions are counted: apt install valgrind\n");
  const rows: Row[] = [];
  for (const [i, operation] of chosen.entries()) {
    process.stderr.write(`  ${i + 1}/${chosen.length} ${operation.name}\n`);
    const row = await timed(operation, options.quick ? 0.1 : 0.5);
    if (valgrind && operation.program !== undefined) {
      const value = await instructions(operation.program);
      if (value !== undefined)
        row.metrics.instructions = { value, unit: "", better: "less", tolerance: kCountTolerance };
    }
    rows.push(row);
  }
  return rows;
}

async function timed({ name, make }: Operation, seconds: number): Promise<Row> {
  const operation = make();
  const count = calibrate(operation);
  const { results } = await benny.suite(
    name,
    benny.add(name, () => () => operation(count)),
    benny.configure({ cases: { maxTime: seconds } }),
  );
  const details = results[0]?.details;
  if (details === undefined) throw new Error(`${name}: no result`);
  const ns = (perCall: number) => (perCall / count) * 1e9;
  // The least is what the operation costs; the median has in it what else the machine did.
  return {
    name,
    metrics: {
      "least ns": { value: ns(details.min), unit: "ns", better: "less", tolerance: kTimeTolerance },
      "median ns": { value: ns(details.median), unit: "ns" },
    },
  };
}

/** How many operations make a call of kCallMs. */
function calibrate(operation: (count: number) => void): number {
  for (let count = 64; ; count *= 2) {
    const start = performance.now();
    operation(count);
    const took = performance.now() - start;
    if (took > kCallMs / 4) return Math.max(1, Math.round((count * kCallMs) / took));
  }
}

const kCounted = 20_000;
/** Exit status of weir_bench. */
const kNoSuchCase = 2;

/** Per operation, without what the program does besides; undefined where valgrind's processor lacks what it needs (AVX-512). */
async function instructions(program: readonly string[]): Promise<number | undefined> {
  const [once, twice] = [await executed(program, kCounted), await executed(program, 2 * kCounted)];
  return once === undefined || twice === undefined ? undefined : (twice - once) / kCounted;
}

const run = promisify(execFile);

async function executed(program: readonly string[], count: number): Promise<number | undefined> {
  const tool = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
  try {
    const { stderr } = await run("valgrind", [...tool, ...program, String(count)], { timeout: 120_000 });
    const text = /I\s+refs:\s+([\d,]+)/.exec(stderr)?.[1];
    if (text === undefined) throw new Error(`valgrind has not counted: ${stderr}`);
    return Number(text.replaceAll(",", ""));
  } catch (error) {
    if ((error as { code?: unknown }).code === kNoSuchCase) return undefined;
    throw error;
  }
}

async function hasValgrind(): Promise<boolean> {
  return await run("valgrind", ["--version"]).then(
    () => true,
    () => false,
  );
}
