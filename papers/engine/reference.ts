/**
 * Curves of other simulators, from CSV files: DIR/<experiment>/<trace>/<label>.csv, a header line, then x and y in the units of
 * the trace, x increasing. They are drawn and compared, never judged. Anything else in DIR is an error.
 */
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { type CsvColumn, CsvTable } from "../../src/base/csv.js";
import { WeirError } from "../../src/base/error.js";
import { nearest } from "../../src/base/nearest.js";
import { CLOCKS, type Experiment, type Trace, type TraceValues } from "./experiment.js";

export interface Reference {
  label: string;
  values: TraceValues;
}

/** Curves by name of the trace. */
export type References = Readonly<Record<string, readonly Reference[]>>;

interface Entry {
  name: string;
  folder: boolean;
}

/**
 * The references in `directory` for each of `wanted` that has any, by id. Folders of the other experiments of `all` are not looked
 * into. @throws WeirError that names the file or folder.
 */
export function readReferences(
  directory: string,
  all: readonly Experiment[],
  wanted: readonly Experiment[],
): Map<string, References> {
  const found = new Map<string, References>();
  for (const { name } of foldersIn(directory, `${directory}/<experiment>/<trace>/<label>.csv`)) {
    const folder = join(directory, name);
    const experiment = all.find(({ id }) => id === name);
    if (experiment === undefined) throw unknown(folder, "experiment", traced(all));
    if (Object.keys(experiment.traces ?? {}).length === 0) {
      throw new WeirError(`${folder}: ${name} has no traces to compare`, { hint: `these have: ${list(traced(all))}` });
    }
    if (wanted.includes(experiment)) found.set(name, readTraces(folder, experiment));
  }
  return found;
}

function readTraces(directory: string, { id, traces = {} }: Experiment): References {
  const names = Object.keys(traces);
  const folders = foldersIn(directory, `${directory}/<trace>/<label>.csv; traces of ${id}: ${list(names)}`);
  return Object.fromEntries(
    folders.map(({ name }) => {
      const folder = join(directory, name);
      const trace = traces[name];
      if (trace === undefined) throw unknown(folder, `trace of ${id}`, names);
      const files = entriesOf(folder);
      if (files.length === 0) throw new WeirError(`${folder}: is empty`, { hint: `put ${folder}/<label>.csv there` });
      return [name, files.map((file) => readReference(folder, file, trace))];
    }),
  );
}

function readReference(directory: string, file: Entry, trace: Trace): Reference {
  const path = join(directory, file.name);
  const expected = `a header line, then lines of two numbers: ${trace.x_label}; ${trace.y_label}`;
  if (file.folder || !file.name.endsWith(".csv")) {
    throw new WeirError(`${path}: is no CSV file`, { hint: `a file <label>.csv: ${expected}` });
  }
  const label = basename(file.name, ".csv");
  if (CLOCKS.some((clock) => clock === label)) {
    throw new WeirError(`${path}: ${label} is the name of a clock`, {
      hint: "call the file by its simulator, ns3.csv",
    });
  }
  return { label, values: readValues(path, expected) };
}

function readValues(path: string, expected: string): TraceValues {
  const table = new CsvTable(path, ".");
  const columns = table.columns();
  const [first, second] = columns;
  if (first === undefined || second === undefined || columns.length > 2) {
    throw new WeirError(`${path}:1: ${columns.length} columns instead of 2`, { hint: expected });
  }
  if (columns.every(({ name }) => name !== "" && Number.isFinite(Number(name)))) {
    throw new WeirError(`${path}:1: two numbers instead of a header line`, { hint: expected });
  }
  if (table.rows < 2) throw new WeirError(`${path}: one point is no curve`, { hint: expected });
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const [x, y] = [first, second].map((column) => rows.map((row) => finite(column, row, expected)));
  const back = rows.find((row) => row > 0 && (x?.[row] as number) <= (x?.[row - 1] as number));
  if (back !== undefined) throw first.error(back, `${x?.[back]} is not more than ${x?.[back - 1]} before it`, expected);
  return { x: x as number[], y: y as number[] };
}

function finite(column: CsvColumn, row: number, expected: string): number {
  const text = column.text(row);
  const value = text === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value)) return value;
  throw column.error(row, `${text === "" ? "nothing" : JSON.stringify(text)} is not a number`, expected);
}

/** Returns the entries of a folder of folders, by name. */
function foldersIn(directory: string, expected: string): Entry[] {
  const entries = entriesOf(directory);
  const file = entries.find((entry) => !entry.folder);
  if (file !== undefined) throw new WeirError(`${join(directory, file.name)}: is not a folder`, { hint: expected });
  if (entries.length === 0) throw new WeirError(`${directory}: is empty`, { hint: expected });
  return entries;
}

function entriesOf(directory: string): Entry[] {
  try {
    return readdirSync(directory)
      .sort()
      .map((name) => ({
        name,
        folder: statSync(join(directory, name), { throwIfNoEntry: false })?.isDirectory() ?? false,
      }));
  } catch (error) {
    const reasons: { [code: string]: string } = { ENOENT: "no such folder", ENOTDIR: "is not a folder" };
    const { code, message } = error as NodeJS.ErrnoException;
    throw new WeirError(`${directory}: ${reasons[code ?? ""] ?? message}`, { cause: error });
  }
}

function traced(all: readonly Experiment[]): string[] {
  return all.filter(({ traces = {} }) => Object.keys(traces).length > 0).map(({ id }) => id);
}

function unknown(folder: string, what: string, known: readonly string[]): WeirError {
  const meant = nearest(basename(folder), known);
  const all = `known: ${list(known)}`;
  return new WeirError(`${folder}: ${basename(folder)} is no ${what}`, {
    hint: meant === undefined ? all : `did you mean ${meant}? ${all}`,
  });
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}
