/** Runs one benchmark and sends its rows to the parent: fork(child, [module, JSON of a Request]). */
import type { Benchmark } from "./row.js";

/** What a child gets to know. */
export interface Request {
  quick: boolean;
  /** A regular expression: which rows. */
  rows: string;
}

/** What it answers. */
export type Answer = Pick<Benchmark, "name" | "title"> & { rows: Awaited<ReturnType<Benchmark["run"]>> };

const [module, request] = process.argv.slice(2) as [string, string];
const { quick, rows } = JSON.parse(request) as Request;
const wanted = new RegExp(rows);
const { name, title, run } = (await import(`./${module}`)) as Benchmark;
const answer: Answer = { name, title, rows: await run({ quick, wants: (row) => wanted.test(row) }) };
process.send?.(answer, () => process.disconnect());
