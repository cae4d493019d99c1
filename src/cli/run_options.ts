/** Options that verbs share that run a scenario: `weir lab run`, `weir sim run`, `weir model run`. */

import { readdirSync, rmdirSync } from "node:fs";
import { type Command, Option } from "commander";
import type { SeriesFormat } from "../clocks/series_files.js";
import { renderTable } from "../result/report/table.js";
import type { Result } from "../result/result.js";
import { type CliContext, collect, print } from "./context.js";

/** Options as chosen. */
export interface RunChoice {
  json?: boolean;
  set?: string[];
  out?: string;
  series?: boolean;
  quiet?: boolean;
  seed?: string;
  scale?: string;
  duration?: string;
  junit?: string;
  seriesFormat?: SeriesFormat;
}

/** Fields of the scenario that options put over the file. */
export function overridesOf(options: RunChoice): string[] {
  const named = (["seed", "scale", "duration"] as const).filter((name) => options[name] !== undefined);
  return [...(options.set ?? []), ...named.map((name) => `${name}=${options[name]}`)];
}

/** Removes a folder that nothing was written into. */
export function removeEmpty(folder: string): void {
  if (readdirSync(folder).length === 0) rmdirSync(folder);
}

/** Prints a finished run: tables, and where its report is, or the document. `more` comes behind the tables. */
export function tellResult(context: CliContext, { json }: RunChoice, result: Result, report: string, more = ""): void {
  print(context, json, result, (color) => `${renderTable(result, { color })}${more}\nreport: ${report}`);
}

export function addRunOptions(command: Command): Command {
  const formats = ["csv", "arrow"] satisfies SeriesFormat[];
  return command
    .argument("<file>", "scenario file (YAML)")
    .option("--json", "the result as one JSON document on stdout instead of tables")
    .option("--set <path=value>", "override a field of the scenario, repeatable", collect)
    .option("--out <dir>", "folder for results (default: weir-results/<scenario>-<time>)")
    .option("--series", "put the series into the result as well")
    .option("--quiet", "no progress")
    .option(
      "--junit <output>",
      "write what the scenario expects (`expect`), and whether the run is valid, as JUnit XML",
    )
    .option("--duration <time>", "as --set duration=<time>; of the network, not of this machine")
    .addOption(new Option("--series-format <format>", "series as files for other programs, too").choices(formats));
}
