/** `weir report`: the HTML page of a finished run. */
import { dirname, join } from "node:path";
import { writeWhole } from "../base/write_file.js";
import { renderSavedRun } from "../result/report/run_report.js";
import { type AddVerb, asUsage } from "./context.js";

export const addReport: AddVerb = (parent, context) => {
  parent
    .command("report")
    .description("render the HTML report of a finished run")
    .argument("<result.json>", "result of a run; series.json and scenario.json beside it are used")
    .option("-o, --output <file>", "HTML file (default: report.html beside the result)")
    .addHelpText("after", "\nExample:\n  weir report weir-results/incast/result.json -o incast.html\n")
    .action((file: string, options: { output?: string }) => {
      const page = asUsage(() => renderSavedRun(file));
      const output = options.output ?? join(dirname(file), "report.html");
      writeWhole(output, page);
      context.stdout.write(`${output}\n`);
    });
};
