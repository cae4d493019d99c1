// CSV files that a scenario refers to: a header, then rows; errors name file, line and column.
import { resolve } from "node:path";
import { type CsvError, parse } from "csv-parse/sync";
import { fileReason, WeirError } from "./error.js";
import { showValue } from "./fields.js";
import { nearest } from "./nearest.js";
import { readAtMost } from "./read_file.js";

const kLargest = 256 << 20;
const kOptions = { bom: true, comment: "#", skip_empty_lines: true, trim: true } as const;

/** A column by the names that it may have, the preferred one first. */
export type ColumnNames = readonly [string, ...string[]];

/** One table. Lines that begin with # and empty ones do not count. */
export class CsvTable {
  private readonly header: readonly string[];
  private readonly records: readonly string[][];
  private readonly bytes: Buffer;

  /** @throws WeirError when `file` (relative to `directory`) cannot be read or is no CSV. */
  constructor(
    readonly file: string,
    directory: string,
  ) {
    const { bytes, records: all } = readRecords(file, resolve(directory, file));
    const [first, ...records] = all;
    this.bytes = bytes;
    this.header = first?.map((name) => name.toLowerCase()) ?? [];
    this.records = records;
    if (records.length === 0) throw new WeirError(`${file}: there are no rows`, { hint: "a header, then rows" });
  }

  get rows(): number {
    return this.records.length;
  }

  /** The column with the first of these names that is there. @throws WeirError when none is. */
  column(names: ColumnNames): CsvColumn {
    const found = this.find(names);
    if (found !== undefined) return found;
    const meant = nearest(names[0], this.header);
    const known = `columns: ${this.header.map(showValue).join(", ")}`;
    throw new WeirError(`${this.file}:1: there is no column ${names.join(", or ")}`, {
      hint: meant === undefined ? known : `rename ${meant}? ${known}`,
    });
  }

  /** Returns the same; undefined when none is there. */
  find(names: ColumnNames): CsvColumn | undefined {
    const name = names.find((candidate) => this.header.includes(candidate));
    return name === undefined ? undefined : new CsvColumn(this, name, this.header.indexOf(name));
  }

  /** All columns, from left to right. */
  columns(): CsvColumn[] {
    return this.header.map((name, index) => new CsvColumn(this, name, index));
  }

  /** @param row Number of a row, from 0. */
  text(row: number, column: number): string {
    return this.records[row]?.[column] ?? "";
  }

  /** Only errors want it, so it is looked for anew. */
  line(row: number): number {
    const options = { ...kOptions, info: true, from: row + 2, to: row + 2 } as const;
    const [found] = parse(this.bytes, options) as unknown as { info: { lines: number } }[];
    return found?.info.lines ?? 0;
  }
}

export class CsvColumn {
  constructor(
    private readonly table: CsvTable,
    readonly name: string,
    private readonly index: number,
  ) {}

  /** @param row Number of a row, from 0. */
  text(row: number): string {
    return this.table.text(row, this.index);
  }

  /** @throws WeirError unless it is a number from `least` to `most`. */
  number(row: number, least: number, most: number): number {
    const text = this.text(row);
    const value = text === "" ? Number.NaN : Number(text);
    if (value >= least && value <= most) return value;
    throw this.error(row, `${text === "" ? "nothing" : showValue(text)} is not a number from ${least} to ${most}`);
  }

  /** An error that says what is wrong with a value, and where the value is. */
  error(row: number, message: string, hint?: string): WeirError {
    const where = `${this.table.file}:${this.table.line(row)}: column ${this.name}`;
    return new WeirError(`${where}: ${message}`, { hint });
  }
}

function readRecords(file: string, path: string): { bytes: Buffer; records: string[][] } {
  try {
    const bytes = readAtMost(path, kLargest);
    if (bytes === undefined) throw new WeirError(`${file}: is too large; the limit is ${kLargest} bytes`);
    return { bytes, records: parse(bytes, kOptions) };
  } catch (error) {
    if (error instanceof WeirError) throw error;
    // A file that is no CSV may be no text either, and the parser's message has a part of it.
    const reason = fileReason(error) ?? `is not CSV: ${showValue((error as CsvError).message)}`;
    const where = (error as NodeJS.ErrnoException).code === "ENOENT" ? ` (looked for ${path})` : "";
    throw new WeirError(`${file}: ${reason}${where}`, { cause: error });
  }
}
