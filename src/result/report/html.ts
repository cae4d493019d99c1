/** Pages of finished runs as one HTML file that needs nothing else: styles, the dashboard's charts and their data are inside. */
import { readFileSync } from "node:fs";
import { WeirError } from "../../base/error.js";
import { packageFile } from "../../base/package_file.js";
import type { SavedRun } from "../saved_run.js";
import { curveGrid } from "./curve_table.js";
import { escapeHtml, scriptJson } from "./markup.js";
import { pageRuns } from "./page_data.js";
import type { Grid } from "./table.js";

const kPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'";
/** Folder of script and style as web/ was built. */
const kBuilt = packageFile("dist/web/report/");

/** One page: `main` is markup, `data` feeds its charts, all else is text. */
export interface Page {
  title: string;
  /** Kind of the page, above the title. */
  kind: string;
  subtitle: string;
  main: string;
  data?: unknown;
}

export function renderPage({ title, kind, subtitle, main, data }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="${kPolicy}">
<title>${escapeHtml(title)} - Weir</title>
<style>${built("report.css")}</style>
</head>
<body class="report">
<header>
<p class="soft">${escapeHtml(kind)}</p>
<h1>${escapeHtml(title)}</h1>
<p class="soft">${escapeHtml(subtitle)}</p>
</header>
<main>
${main}
</main>
${data === undefined ? "" : scripts(data)}
</body>
</html>
`;
}

/** Places the curves of `runs` and their figures in the page, with the data for them; empty for runs without series. */
export function curves(runs: readonly (SavedRun & { label: string })[]): Pick<Page, "main" | "data"> {
  const drawn = pageRuns(runs);
  if (drawn.length === 0) return { main: "" };
  const grid = curveGrid(runs.length > 1 ? runs : runs.map(({ series }) => ({ series })));
  const main = `<h2>Over time</h2>
<p class="soft scripted">Shaded: warm-up. <span class="screen">Drag to zoom, double-click to reset; a click on a flow draws it alone.</span></p>
<noscript><p>Charts need JavaScript. Their figures are in the tables.</p></noscript>
<div id="charts"></div>
<details><summary>${escapeHtml(grid.title)}</summary>${tableOf(grid)}</details>`;
  return { main, data: drawn };
}

/** `level` is that of its heading. */
export function gridSection(grid: Grid, level = 2): string {
  return `<h${level}>${escapeHtml(grid.title)}</h${level}>\n${tableOf(grid)}`;
}

function tableOf({ head, names, rows }: Pick<Grid, "head" | "names" | "rows">): string {
  const cell = (tag: string) => (text: string, i: number) =>
    `<${tag}${i < names ? ' class="name"' : ""}${tag === "th" ? ' scope="col"' : ""}>${escapeHtml(text)}</${tag}>`;
  const body = rows.map((row) => `<tr>${row.map(cell("td")).join("")}</tr>`).join("\n");
  return `<div class="scroll"><table><thead><tr>${head.map(cell("th")).join("")}</tr></thead>
<tbody>${body}</tbody></table></div>`;
}

/** Table of names and values, with their meanings where any has one. */
export function factsTable(rows: readonly (readonly [name: string, value: string, meaning?: string])[]): string {
  const explained = rows.some(([, , meaning]) => meaning !== undefined);
  const body = rows.map(([name, value, meaning = ""]) => {
    const cells = [name, value, ...(explained ? [meaning] : [])];
    return `<tr>${cells.map((text) => `<td class="name">${escapeHtml(text)}</td>`).join("")}</tr>`;
  });
  return `<div class="scroll"><table class="${explained ? "explains" : "defines"}"><tbody>${body.join("\n")}</tbody></table></div>`;
}

/** Begins a page: a word and a sentence, which is text, then a list. */
export function banner(state: "valid" | "invalid", word: string, text: string, items: readonly string[] = []): string {
  const said = `<p><strong>${escapeHtml(word)}</strong> ${escapeHtml(text)}</p>`;
  return `<div class="banner ${state}" role="status">${said}${list(items)}</div>`;
}

export function list(items: readonly string[]): string {
  return items.length === 0 ? "" : `<ul>${items.map((item) => `<li>${escapeHtml(item)}</li>`).join("")}</ul>`;
}

function scripts(data: unknown): string {
  const code = built("report.js").replace(/<\/script/gi, "<\\/script");
  return `<script type="application/json" id="data">${scriptJson(data)}</script>
<script>${code}</script>`;
}

function built(name: string): string {
  try {
    return readFileSync(`${kBuilt}${name}`, "utf8").trim();
  } catch (cause) {
    throw new WeirError(`the page of reports is not built: ${kBuilt}${name} is not there`, {
      hint: "build it: npm run build:ts",
      cause,
    });
  }
}
