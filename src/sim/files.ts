/** The folder that a simulation leaves: what every run does, completion times, what it cost, and series for other programs. */
import { join } from "node:path";
import { makeFolder } from "../base/folder.js";
import { writeWhole } from "../base/write_file.js";
import { writeRun } from "../report/run_report.js";
import { writeCompletions } from "../result/completions_file.js";
import type { RunSource } from "../result/saved_run.js";
import { type SeriesFormat, writeSeries } from "./series_files.js";
import type { SimOutcome } from "./types.js";

/**
 * Writes all files into `directory` (created when missing) and returns the report's path. `result`: as it is to be saved.
 * All but performance.json, report.html and `made` of the result are the same for the same scenario and seed, byte by byte.
 */
export function writeSimulation(
  directory: string,
  { result, series, flowTable, performance }: SimOutcome,
  source: RunSource,
  seriesFormat?: SeriesFormat,
): string {
  makeFolder(directory);
  writeCompletions(directory, result, flowTable);
  const hopsPerSecond = performance.cpu_s > 0 ? performance.hops / performance.cpu_s : 0;
  const figures = { ...performance, hops_per_cpu_s: hopsPerSecond };
  writeWhole(join(directory, "performance.json"), `${JSON.stringify(figures, undefined, 2)}\n`);
  if (seriesFormat !== undefined) writeSeries(directory, series, seriesFormat);
  return writeRun(directory, result, series, source);
}
