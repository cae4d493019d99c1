/** The folder that an experiment leaves: paper.json, report.md, report.html, figure.svg; runs have theirs beside them. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawFigure } from "../report/plot.js";
import { documentOf, type PaperDocument } from "./document.js";
import { renderMarkdown } from "./markdown.js";
import { overlayColumn } from "./overlay.js";
import { renderPaperPage } from "./page.js";
import type { PaperOutcome } from "./run.js";
import { headline } from "./text.js";

const kNames = { wire: "wire: real frames", sim: "sim: discrete events", model: "model: equations" } as const;

/** Writes all files (the directory is created when missing) and returns the page's path. */
export function writePaper(directory: string, outcome: PaperOutcome): string {
  mkdirSync(directory, { recursive: true });
  const document = documentOf(outcome);
  const svg = figureOf(document, outcome);
  const report = join(directory, "report.html");
  const write = (name: string, text: string) => writeFileSync(join(directory, name), text);
  write("paper.json", `${JSON.stringify(document, undefined, 2)}\n`);
  write("figure.svg", svg);
  write("report.md", renderMarkdown(document, "figure.svg"));
  writeFileSync(report, renderPaperPage(document, svg));
  return report;
}

/** What clocks have in common, then one column for each that has something to show. */
function figureOf(document: PaperDocument, { clocks, observations, overlays }: PaperOutcome): string {
  const columns = clocks.flatMap((clock) => {
    const plots = observations[clock]?.plots ?? [];
    return plots.length === 0 ? [] : [{ heading: kNames[clock], plots }];
  });
  const common = overlayColumn(overlays);
  return drawFigure(headline(document), common === undefined ? columns : [common, ...columns]);
}
