/** The folder that an experiment leaves: paper.json, report.md, report.html, figure.svg; runs have theirs beside them. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawFigure } from "../report/plot.js";
import { documentOf } from "./document.js";
import { renderPaperPage } from "./page.js";
import type { PaperOutcome } from "./run.js";
import { headline, renderMarkdown } from "./text.js";

const kNames = { wire: "wire: real frames", sim: "sim: discrete events", model: "model: equations" } as const;

/** Writes all files (the directory is created when missing) and returns the page's path. */
export function writePaper(directory: string, outcome: PaperOutcome): string {
  mkdirSync(directory, { recursive: true });
  const svg = figureOf(outcome);
  const report = join(directory, "report.html");
  const write = (name: string, text: string) => writeFileSync(join(directory, name), text);
  write("paper.json", `${JSON.stringify(documentOf(outcome), undefined, 2)}\n`);
  write("figure.svg", svg);
  write("report.md", renderMarkdown(outcome, "figure.svg"));
  writeFileSync(report, renderPaperPage(outcome, svg));
  return report;
}

/** One column for each clock that has something to show. */
export function figureOf({ experiment, clocks, observations }: PaperOutcome): string {
  const columns = clocks.flatMap((clock) => {
    const plots = observations[clock]?.plots ?? [];
    return plots.length === 0 ? [] : [{ heading: kNames[clock], plots }];
  });
  return drawFigure(headline(experiment), columns);
}
