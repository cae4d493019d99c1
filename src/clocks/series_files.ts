/** Series of a run as tables for other programs: one row for each sample of each flow, queue or host, as CSV or Arrow. */
import { join } from "node:path";
import { columnFromArray, dictionary, float64, int32, tableFromColumns, tableToIPC, utf8 } from "@uwdata/flechette";
import { csvLine } from "../base/csv_line.js";
import { makeFolder } from "../base/folder.js";
import { writeWhole } from "../base/write_file.js";
import type { Series } from "../result/result.js";

export type SeriesFormat = "csv" | "arrow";

/** Rows: the samples of the first name in order of time, then those of the next. */
interface SeriesTable {
  name: string;
  /** Column of the names: "flow", "queue" or "host". */
  key: string;
  /** The columns behind time_s and the key. */
  columns: readonly string[];
  /** Samples by name, then by column; a column that was not sampled is missing. */
  entries: readonly (readonly [string, Readonly<Record<string, readonly number[] | undefined>>])[];
}

/** Rows that are put together before they are written. */
const kRowsAtOnce = 10_000;

/**
 * Writes flows, queues, pauses, cnps, cnms and marks, each as `<kind>.csv` or `<kind>.arrow` (Arrow IPC file format), into
 * `directory` (created when missing). Kinds without any entry have no file. Units as in the series, and
 * the same bytes for the same series. Returns the paths written.
 */
export function writeSeries(directory: string, series: Series, format: SeriesFormat): string[] {
  makeFolder(directory);
  return tablesOf(series).map((table) => {
    const file = join(directory, `${table.name}.${format}`);
    writeWhole(file, format === "csv" ? csvFile(table, series.time_s) : arrowFile(table, series.time_s));
    return file;
  });
}

function tablesOf({ flows, queues, pauses, cnps, cnms, marks }: Series): SeriesTable[] {
  const counts = (
    name: string,
    key: string,
    byName: Readonly<Record<string, readonly number[]>> = {},
  ): SeriesTable => ({
    name,
    key,
    columns: [name],
    entries: Object.entries(byName).map(([place, values]) => [place, { [name]: values }]),
  });
  const tables: SeriesTable[] = [
    {
      name: "flows",
      key: "flow",
      columns: [...flowColumns(flows), "alpha", "goodput_bps"],
      entries: Object.entries(flows).map(([id, { alpha, ...samples }]) => [
        id,
        { ...samples, alpha: alpha ?? undefined },
      ]),
    },
    {
      name: "queues",
      key: "queue",
      columns: ["bytes", "max_bytes"],
      entries: Object.entries(queues).map(([name, { bytes, max_bytes }]) => [name, { bytes, max_bytes }]),
    },
    counts("pauses", "queue", pauses),
    counts("cnps", "host", cnps),
    counts("cnms", "queue", cnms),
    counts("marks", "queue", marks),
  ];
  return tables.filter(({ entries }) => entries.length > 0);
}

/** Columns of whatever holds the senders back: rates, a window, or nothing. */
function flowColumns(flows: Series["flows"]): string[] {
  const columns = ["rate_bps", "target_rate_bps", "cwnd_packets"] as const;
  return columns.filter((column) => Object.values(flows).some((samples) => samples[column] !== undefined));
}

function* csvFile({ key, columns, entries }: SeriesTable, time_s: readonly number[]): Iterable<string> {
  let text = csvLine(["time_s", key, ...columns]);
  let rows = 0;
  for (const [name, samples] of entries) {
    const values = columns.map((column) => samples[column] ?? []);
    for (const [i, time] of time_s.entries()) {
      text += csvLine([time, name, ...values.map((column) => column[i])]);
      if (++rows % kRowsAtOnce > 0) continue;
      yield text;
      text = "";
    }
  }
  yield text;
}

/** Table as an Arrow file: names are a dictionary, and values that were not sampled are null. */
function arrowFile({ key, columns, entries }: SeriesTable, time_s: readonly number[]): Uint8Array {
  const rows = <T>(of: (name: string, samples: SeriesTable["entries"][number][1]) => readonly T[]) =>
    entries.flatMap(([name, samples]) => of(name, samples));
  const columnOf = (column: string) =>
    rows((_, samples) => time_s.map((_time, i): number | null => samples[column]?.[i] ?? null));
  const table = tableFromColumns({
    time_s: columnFromArray(
      rows(() => time_s),
      float64(),
    ),
    [key]: columnFromArray(
      rows((name) => time_s.map(() => name)),
      dictionary(utf8(), int32()),
    ),
    ...Object.fromEntries(columns.map((column) => [column, columnFromArray(columnOf(column), float64())])),
  });
  // The result is null only when the caller passes a sink.
  return tableToIPC(table, { format: "file" }) as Uint8Array;
}
