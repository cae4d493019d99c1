/** The folder that a run leaves, on every clock. */
import { join } from "node:path";
import { makeFolder } from "../base/folder.js";
import { writeWhole } from "../base/write_file.js";
import { writeCompletions } from "../result/completions_file.js";
import { writeRun } from "../result/report/run_report.js";
import type { RunSource } from "../result/saved_run.js";
import type { Outcome } from "./clock.js";
import { type SeriesFormat, writeSeries } from "./series_files.js";

/**
 * Writes all files into `directory` (created when missing) and returns the report's path. In virtual time all but performance.json,
 * report.html and `made` of the result are the same for the same scenario and seed, byte by byte.
 */
export function writeOutcome(
  directory: string,
  { result, series, flowTable, timeline, performance }: Outcome,
  source: RunSource,
  seriesFormat?: SeriesFormat,
): string {
  makeFolder(directory);
  writeCompletions(directory, result, flowTable);
  if (timeline !== undefined) writeWhole(join(directory, "timeline.json"), timeline);
  if (performance !== undefined) {
    writeWhole(join(directory, "performance.json"), `${JSON.stringify(performance, undefined, 2)}\n`);
  }
  if (seriesFormat !== undefined) writeSeries(directory, series, seriesFormat);
  return writeRun(directory, result, series, source);
}
