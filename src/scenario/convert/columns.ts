/** Text files of columns between blanks, read line by line: errors name file and line, the field, and its allowed values. */
import { WeirError } from "../../base/error.js";
import { showValue } from "../../base/fields.js";
import { readConfigText } from "../../base/yaml.js";

/** Largest file that is read, bytes: a million flows are 40 MB. */
const kLargest = 128 << 20;

/** A line that is not empty; lines are numbered from 1. */
export interface Row {
  line: number;
  words: readonly string[];
}

export class ColumnFile {
  private at = 0;
  private line = 0;

  constructor(
    readonly file: string,
    private readonly text = readConfigText(file, "file", kLargest),
  ) {}

  /** The next line that is not empty; undefined at the end. */
  next(): Row | undefined {
    while (this.at < this.text.length) {
      const end = this.text.indexOf("\n", this.at);
      const text = this.text.slice(this.at, end < 0 ? undefined : end).trim();
      this.at = end < 0 ? this.text.length : end + 1;
      this.line++;
      if (text !== "") return { line: this.line, words: text.split(/\s+/) };
    }
    return undefined;
  }

  /** The next line, which has as many columns. `what` names the thing that the line describes. */
  record(columns: readonly string[], what: string): Row {
    const row = this.next();
    const hint = `a line of its own for each, with ${columns.join(" ")}`;
    if (row === undefined) throw this.error(undefined, `ends before ${what}`, hint);
    if (row.words.length === columns.length) return row;
    throw this.error(row, `${what}: ${row.words.length} columns, not ${columns.length}`, hint);
  }

  error(row: Row | undefined, message: string, hint?: string): WeirError {
    const place = row === undefined ? this.file : `${this.file}:${row.line}`;
    return new WeirError(`${place}: ${message}`, { field: "file", hint });
  }

  /** The word as a whole number from `least` to `most`. */
  integer(row: Row, column: number, field: string, least: number, most: number): number {
    const text = row.words[column] ?? "";
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    return this.within(row, field, text, value, least, most, "whole number");
  }

  /** The word as a decimal fraction from `least` to `most`. */
  number(row: Row, column: number, field: string, least: number, most: number): number {
    const text = row.words[column] ?? "";
    const value = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
    return this.within(row, field, text, value, least, most, "number");
  }

  /** Returns the word as `parse` reads it; `range` names the allowed values. */
  quantity(
    row: Row,
    column: number,
    field: string,
    parse: (text: string) => number,
    allowed: { least: number; most: number; range: string },
  ): number {
    const text = row.words[column] ?? "";
    const hint = `must be ${allowed.range}`;
    let value: number;
    try {
      value = parse(text);
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      throw this.error(row, `${field}: ${showValue(error.message)}`, hint);
    }
    if (value >= allowed.least && value <= allowed.most) return value;
    throw this.error(row, `${field}: ${showValue(text)} is out of range`, hint);
  }

  private within(
    row: Row,
    field: string,
    text: string,
    value: number,
    least: number,
    most: number,
    kind: string,
  ): number {
    if (value >= least && value <= most) return value;
    const message = Number.isNaN(value) ? `is no ${kind}` : "is out of range";
    throw this.error(row, `${field}: ${showValue(text)} ${message}`, `must be a ${kind} from ${least} to ${most}`);
  }
}
