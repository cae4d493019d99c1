/** The folder that a simulation leaves: what every run does, completion times, what it cost, and series for other programs. */
import { join } from "node:path";
import { makeFolder } from "../base/folder.js";
import { writeWhole } from "../base/write_file.js";
import { writeRun } from "../report/run_report.js";
import type { RunSource } from "../result/saved_run.js";
import { csvLine, type SeriesFormat, writeSeries } from "./series_files.js";
import type { FlowCompletion, SimOutcome } from "./types.js";

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

/**
 * Writes all files into `directory` (created when missing) and returns the report's path. `result`: as it is to be saved.
 * All but performance.json and report.html are the same for the same scenario and seed, byte by byte.
 */
export function writeSimulation(
  directory: string,
  { result, series, flowTable, performance }: SimOutcome,
  source: RunSource,
  seriesFormat?: SeriesFormat,
): string {
  makeFolder(directory);
  if (result.fct !== undefined) writeWhole(join(directory, "fct.csv"), completionsCsv(flowTable));
  const hopsPerSecond = performance.cpu_s > 0 ? performance.hops / performance.cpu_s : 0;
  const figures = { ...performance, hops_per_cpu_s: hopsPerSecond };
  writeWhole(join(directory, "performance.json"), `${JSON.stringify(figures, undefined, 2)}\n`);
  if (seriesFormat !== undefined) writeSeries(directory, series, seriesFormat);
  return writeRun(directory, result, series, source);
}

function completionsCsv(rows: readonly FlowCompletion[]): string {
  return [csvLine(kColumns), ...rows.map((row) => csvLine(kColumns.map((column) => row[column])))].join("");
}
