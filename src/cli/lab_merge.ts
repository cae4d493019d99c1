/** `weir lab merge`: the results of all parts of a lab as one. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { writeCompletions } from "../result/completions_file.js";
import { withMade } from "../result/made.js";
import { mergeParts } from "../result/merge_parts.js";
import { readPart } from "../result/part_files.js";
import { writeRun } from "../result/report/run_report.js";
import { asUsage, type CliContext, UsageError } from "./context.js";
import { meetExpectations } from "./expectations.js";
import { runFolder } from "./run_folder.js";
import { tellResult } from "./run_options.js";

interface MergeOptions {
  json?: boolean;
  out?: string;
  series?: boolean;
  junit?: string;
}

const kExamples = `
Example:
  weir lab merge rack1/out rack2/out --out merged

Every frame that one part sent to another must have come there. What the scenario expects (expect) is looked at here, for all parts.

Exit status: 0 valid, 2 the folders are not those of one run, 3 a part is not valid, or frames are missing, 4 not as expected.
`;

export function addMerge(lab: Command, context: CliContext, done: (status: number) => void): void {
  lab
    .command("merge")
    .description("make one result of those of all parts (weir lab run --part)")
    .argument("<dir...>", "folder of each part's results")
    .option("--json", "the result as one JSON document on stdout instead of tables")
    .option("--out <dir>", "folder for the result (default: weir-results/<scenario>-<time>)")
    .option("--series", "put the series into the result as well")
    .option(
      "--junit <output>",
      "write what the scenario expects (`expect`), and whether the run is valid, as JUnit XML",
    )
    .addHelpText("after", kExamples)
    .action((folders: string[], options: MergeOptions) => done(merge(context, folders, options)));
}

function merge(context: CliContext, folders: readonly string[], options: MergeOptions): number {
  const begun = performance.now();
  const same = folders.find((folder) => options.out !== undefined && resolve(folder) === resolve(options.out));
  if (same !== undefined) {
    throw new UsageError(`--out ${options.out}: it is the folder of a part`, { hint: "give another one" });
  }
  const { source, merged } = asUsage(() => {
    const [first, ...others] = folders.map(readPart) as [ReturnType<typeof readPart>, ...ReturnType<typeof readPart>[]];
    const { source } = first;
    return {
      source,
      merged: mergeParts(
        source.scenario,
        [first, ...others].map(({ part }) => part),
      ),
    };
  });
  const { series, flowTable } = merged;
  const directory = options.out ?? runFolder(source.scenario.name, new Date());
  const result = withMade(options.series ? { ...merged.result, series } : merged.result);
  writeCompletions(directory, result, flowTable);
  tellResult(context, options, result, writeRun(directory, result, series, source));
  return meetExpectations(context, options, source.scenario, result, begun);
}
