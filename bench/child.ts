/** Runs one benchmark and sends its rows to the parent: fork(child, [module, JSON of a Request]). */
import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import type { Benchmark } from "./row.js";

/** What a child gets to know. */
export interface Request {
  quick: boolean;
  /** A regular expression: which rows. */
  rows: string;
  peers: readonly string[];
}

/** What it answers. */
export type Answer = Pick<Benchmark, "name" | "title"> & { rows: Awaited<ReturnType<Benchmark["run"]>> };

process.on("disconnect", () => process.exit());
comeFirst();
const [module, request] = process.argv.slice(2) as [string, string];
const { quick, rows, peers } = JSON.parse(request) as Request;
const wanted = new RegExp(rows);
const { name, title, run } = (await import(`./${module}`)) as Benchmark;
const answer: Answer = { name, title, rows: await run({ quick, wants: (row) => wanted.test(row), peers }) };
process.send?.(answer, () => process.disconnect());

/** Before other work of this machine, where it lets us: a session has a scheduling group of its own, and this process is one. */
function comeFirst(): void {
  try {
    writeFileSync("/proc/self/autogroup", "-20");
    setPriority(-20);
  } catch {
    process.stderr.write("  no priority over what else runs: needs root\n");
  }
}
