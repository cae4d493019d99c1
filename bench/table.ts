/** Rows of a benchmark as a table. */
import { fixed } from "../src/result/report/format.js";
import type { Grid } from "../src/result/report/table.js";
import type { Metric, Row } from "./row.js";

/** One column per metric, in the order of first use; notes last. */
export function rowGrid(title: string, rows: readonly Row[]): Grid {
  const units = new Map<string, string>();
  for (const { metrics } of rows) {
    for (const [name, { unit }] of Object.entries(metrics)) units.set(name, unit);
  }
  const noted = rows.some(({ note }) => note !== undefined);
  const heading = ([name, unit]: [string, string]) => (unit === "" || name.endsWith(unit) ? name : `${name} ${unit}`);
  return {
    title,
    head: ["", ...[...units].map(heading), ...(noted ? ["note"] : [])],
    names: 1,
    rows: rows.map(({ name, metrics, note }) => [
      name,
      ...[...units.keys()].map((metric) => cell(metrics[metric])),
      ...(noted ? [note ?? ""] : []),
    ]),
  };
}

/** "1088 (1077..1102)". */
function cell(metric: Metric | undefined): string {
  if (metric === undefined) return "";
  const { value, min, max } = metric;
  const range = min === undefined || max === undefined || min === max ? "" : ` (${fixed(min)}..${fixed(max)})`;
  return fixed(value) + range;
}

export function markdown({ title, head, names, rows }: Grid): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, i) => (i < names ? "---" : "---:"));
  return [`**${title}**`, "", line(head), line(rule), ...rows.map(line)].join("\n");
}
