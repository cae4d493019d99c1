/** The native core, an operation at a time: native/bench/. */
import { kBenchProgram, loadBenchAddon } from "../native.js";
import type { BenchOptions, Row } from "../row.js";
import { measureOperations } from "./measure.js";

export const name = "core";
export const title = "Native core, per operation";

export async function run(options: BenchOptions): Promise<Row[]> {
  const addon = loadBenchAddon();
  const operations = addon.cases().map((name, i) => ({
    name,
    make: () => addon.makeCase(i),
    program: [kBenchProgram, "case", name],
  }));
  return await measureOperations(operations, options);
}
