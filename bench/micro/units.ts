/** Parsing and printing quantities. */
import { formatRate, parseRate, parseSize, parseTime } from "../../src/base/units.js";
import type { BenchOptions, Row } from "../row.js";
import { measureOperations } from "./measure.js";

export const name = "units";
export const title = "Quantities, per operation";

export async function run(options: BenchOptions): Promise<Row[]> {
  const operations: Readonly<Record<string, () => unknown>> = {
    "parseRate 40Gbps": () => parseRate("40Gbps"),
    "parseSize 22.4KB": () => parseSize("22.4KB"),
    "parseTime 55us": () => parseTime("55us"),
    "formatRate 40e9": () => formatRate(40e9),
  };
  const repeat = (operation: () => unknown) => (count: number) => {
    for (let i = 0; i < count; i++) operation();
  };
  return await measureOperations(
    Object.entries(operations).map(([name, operation]) => ({ name, make: () => repeat(operation) })),
    options,
  );
}
