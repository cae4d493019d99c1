/** Writes fct.csv: the time at which each message was complete. */
import { join } from "node:path";
import { csvLine } from "../base/csv_line.js";
import { makeFolder } from "../base/folder.js";
import { writeWhole } from "../base/write_file.js";
import type { FlowCompletion } from "./completions.js";
import type { Result } from "./result.js";

const kColumns = [
  "flow",
  "id",
  "from",
  "to",
  "message",
  "bytes",
  "start_ns",
  "end_ns",
  "ideal_ns",
  "slowdown",
] as const satisfies (keyof FlowCompletion)[];

/** Writes into `directory` (created when missing), if flows of the run have an end. */
export function writeCompletions(
  directory: string,
  { fct }: Pick<Result, "fct">,
  rows: readonly FlowCompletion[],
): void {
  if (fct === undefined) return;
  makeFolder(directory);
  writeWhole(join(directory, "fct.csv"), completionsCsv(rows));
}

function completionsCsv(rows: readonly FlowCompletion[]): string {
  return [csvLine(kColumns), ...rows.map((row) => csvLine(kColumns.map((column) => row[column])))].join("");
}
