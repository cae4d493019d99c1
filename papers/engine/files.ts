/** The folder that an experiment leaves: paper.json, report.md, report.html, figure.svg; runs have theirs beside them. */
import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../../src/base/folder.js";
import { writeWhole } from "../../src/base/write_file.js";
import { drawFigure } from "../../src/result/report/figure.js";
import type { Place, ResultStore } from "../../src/study/store.js";
import { documentOf, type PaperDocument } from "./document.js";
import { CLOCKS } from "./experiment.js";
import { renderMarkdown } from "./markdown.js";
import { overlayColumn } from "./overlay.js";
import { renderPaperPage } from "./page.js";
import type { PaperOutcome } from "./run.js";
import { headline } from "./text.js";

/** paper.json goes first, so that nothing is taken for whole while it is removed. Older versions left a figure.png. */
const kFiles = ["paper.json", "report.html", "report.md", "figure.svg", "figure.png"] as const;
const kNames = { wire: "wire: real frames", sim: "sim: discrete events", model: "model: equations" } as const;

/** Writes all files (the directory is created when missing); `document` is of `outcome`. Returns the page's path. */
export async function writePaper(
  directory: string,
  outcome: PaperOutcome,
  document = documentOf(outcome),
): Promise<string> {
  makeFolder(directory);
  const svg = await figureOf(document, outcome);
  const report = join(directory, "report.html");
  const write = (name: string, data: string) => writeWhole(join(directory, name), data);
  write("figure.svg", svg);
  write("report.md", renderMarkdown(document, "figure.svg"));
  writeWhole(report, renderPaperPage(document, svg));
  // Last: where it is, everything is.
  write("paper.json", `${JSON.stringify(document, undefined, 2)}\n`);
  return report;
}

/** Removes what an experiment leaves in its folder but for those runs of `points` that are there, and the folder if nothing else is. */
export function clearPaper(store: ResultStore, id: string, points: readonly Place[]): void {
  const keep = points.flatMap((point) => (store.hasResult(point) ? [point.folder as string] : []));
  const folder = join(store.directory, id);
  for (const name of kFiles) rmSync(join(folder, name), { force: true });
  for (const clock of CLOCKS) clearRuns(store.directory, join(id, clock), keep);
  removeEmpty(folder);
}

function clearRuns(directory: string, folder: string, keep: readonly string[]): void {
  const path = join(directory, folder);
  if (keep.includes(folder) || !existsSync(path)) return;
  if (keep.some((one) => one.startsWith(`${folder}/`))) {
    for (const name of readdirSync(path)) clearRuns(directory, join(folder, name), keep);
  } else rmSync(path, { recursive: true, force: true });
}

function removeEmpty(path: string): void {
  if (existsSync(path) && readdirSync(path).length === 0) rmdirSync(path);
}

/** Figure of the parts that clocks have in common, then one column for each that has something to show. */
function figureOf(document: PaperDocument, outcome: PaperOutcome): Promise<string> {
  const { clocks, observations, alternative, overlays } = outcome;
  const columns = clocks.flatMap((clock) => [
    { heading: kNames[clock], plots: observations[clock]?.plots ?? [] },
    { heading: `${clock}: ${document.alternative?.name}`, plots: alternative?.observations[clock]?.plots ?? [] },
  ]);
  const common = overlayColumn(overlays);
  const drawn = columns.filter(({ plots }) => plots.length > 0);
  return drawFigure(headline(document), common === undefined ? drawn : [common, ...drawn]);
}
