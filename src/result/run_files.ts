/** Files of a run in its folder: result.json, series.json and scenario.json. */
import { dirname, join } from "node:path";
import type { ZodType } from "zod";
import { fileReason, WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import { kLongestText, readAtMost } from "../base/read_file.js";
import { writeWhole } from "../base/write_file.js";
import { type Result, resultSchema, type Series, seriesSchema } from "./result.js";
import { type RunSource, type SavedRun, savedSourceSchema } from "./saved_run.js";

const kHint = "give the result.json of a run";

/** Writes the files into `directory`, which is created when missing. */
export function saveRun(directory: string, result: Result, series: Series, source: RunSource): void {
  makeFolder(directory);
  writeWhole(join(directory, "result.json"), `${JSON.stringify(result, undefined, 2)}\n`);
  writeWhole(join(directory, "series.json"), `${JSON.stringify(series)}\n`);
  // The file has no indentation: it lists every message of every flow.
  writeWhole(join(directory, "scenario.json"), `${JSON.stringify(source)}\n`);
}

/**
 * Reads a saved result. Series come from the result itself or from series.json beside it; without them they are empty.
 * @throws WeirError when a file cannot be read or is something else.
 */
export function readRun(resultFile: string): SavedRun {
  const beside = (name: string) => join(dirname(resultFile), name);
  const result = checked(resultSchema, "a result", resultFile, readJson(resultFile));
  const sampled = result.series === undefined ? readJson(beside("series.json"), true) : undefined;
  const none: Series = { interval_s: 1, time_s: [], flows: {}, queues: {} };
  const series = sampled === undefined ? none : checked(seriesSchema, "series", beside("series.json"), sampled);
  const asked = readJson(beside("scenario.json"), true);
  const source =
    asked === undefined
      ? undefined
      : checked(savedSourceSchema, "the scenario of a run", beside("scenario.json"), asked);
  return { result, series: result.series ?? series, source };
}

function checked<T>(schema: ZodType<T>, what: string, file: string, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const why = [issue?.path.join("."), issue?.message].filter((text) => text !== "").join(": ");
  throw new WeirError(`${file}: not ${what} of weir: ${why}`, { hint: kHint });
}

/** Reads a JSON document. @throws WeirError where it is none; `optional`: undefined where there is no file. */
export function readJson(file: string, optional = false): unknown {
  try {
    const bytes = readAtMost(file, kLongestText);
    if (bytes !== undefined) return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    if (optional && (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new WeirError(`${file}: ${fileReason(error) ?? "is not JSON"}`, { hint: kHint, cause: error });
  }
  throw new WeirError(`${file}: is too large; the limit is ${kLongestText} bytes`, { hint: kHint });
}
