/** Tables as SONiC's tools draw them, with Python's tabulate: format `simple`. */

/**
 * Draws a table, which ends with a line feed. A column is at least two wider than its heading.
 * @param leftFrom Columns from this one on are aligned to the left; SONiC aligns even names to the right in most tables.
 */
export function tabulate(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  leftFrom = Number.POSITIVE_INFINITY,
): string {
  const widths = head.map((name, i) => Math.max(name.length + 2, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (i < leftFrom ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join("  ")
      .trimEnd();
  return [head, widths.map((width) => "-".repeat(width)), ...rows].map((cells) => `${line(cells)}\n`).join("");
}

/** Text for figures that a platform does not count. */
export const kNotAvailable = "N/A";

/** Writes "1,032,731". */
export function withCommas(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
