/** The report of all experiments: report.html, report.md and summary.json beside the experiments' folders. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../../../src/base/folder.js";
import { writeWhole } from "../../../src/base/write_file.js";
import { renderAllPage } from "./page.js";
import type { Finished, Summary } from "./summary.js";
import { renderAllMarkdown } from "./text.js";

/** Writes them (the directory is created when missing), and returns the page's path. */
export function writeAll(directory: string, summary: Summary, finished: readonly Finished[]): string {
  makeFolder(directory);
  const shown = finished.flatMap(({ document }) => {
    if (document === undefined) return [];
    return { document, svg: readFileSync(join(directory, document.experiment, "figure.svg"), "utf8") };
  });
  const report = join(directory, "report.html");
  writeWhole(report, renderAllPage(summary, shown));
  writeWhole(join(directory, "report.md"), renderAllMarkdown(summary, finished));
  writeWhole(join(directory, "summary.json"), `${JSON.stringify(summary, undefined, 2)}\n`);
  return report;
}
