/** What the verbs that run a scenario have in common: `weir lab run`, `weir sim run`, `weir model run`. */
import { type Command, Option } from "commander";
import type { SeriesFormat } from "../sim/series_files.js";
import { collect } from "./context.js";

export interface RunOptions {
  json?: boolean;
  set?: string[];
  out?: string;
  series?: boolean;
  quiet?: boolean;
  duration?: string;
}

/** A run whose series other programs can have too. */
export interface SeriesOptions {
  seriesFormat?: SeriesFormat;
}

export function addRunOptions(command: Command): Command {
  return command
    .argument("<file>", "scenario file (YAML)")
    .option("--json", "the result as one JSON document on stdout instead of tables")
    .option("--set <path=value>", "override a field of the scenario, repeatable", collect)
    .option("--out <dir>", "folder for results (default: weir-results/<scenario>-<time>)")
    .option("--series", "put the series into the result as well")
    .option("--quiet", "no progress")
    .option("--duration <time>", "as --set duration=<time>, meant time");
}

export function addSeriesOptions(command: Command): Command {
  const formats = ["csv", "arrow"] satisfies SeriesFormat[];
  return command.addOption(
    new Option("--series-format <format>", "series as files for other programs, too").choices(formats),
  );
}
