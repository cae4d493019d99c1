/** The addon that only benchmarks need: `npm run build:bench`. */
import { fileURLToPath } from "node:url";
import { loadFirst } from "../src/native/addon.js";

const kFolder = fileURLToPath(new URL("../build-bench/", import.meta.url));

export interface BenchAddon {
  /** Names of the micro benchmarks. */
  cases(): string[];
  /** Makes one; the function does its operation `count` times. */
  makeCase(index: number): (count: number) => void;
}

/** The same cases as a program, and traffic: see native/bench/main.cc. */
export const kBenchProgram = `${kFolder}weir_bench`;

export function loadBenchAddon(): BenchAddon {
  return loadFirst([`${kFolder}Release/weir_bench.node`]) as BenchAddon;
}
