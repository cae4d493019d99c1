/** The folder that a run leaves: result.json, series.json, scenario.json and report.html. */
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ZodType } from "zod";
import { fileReason, WeirError } from "../base/error.js";
import { makeFolder } from "../base/folder.js";
import { kLongestText, readAtMost } from "../base/read_file.js";
import { writeWhole } from "../base/write_file.js";
import type { QueueThresholds } from "../report/charts.js";
import { renderReport } from "../report/html.js";
import { type Result, resultSchema, type Series, seriesSchema } from "./result.js";
import { type RunSource, type SavedRun, type SavedSource, savedSourceSchema } from "./saved_run.js";

const kHint = "give the result.json of a run";

/** Writes all files of a finished run into `directory` (created when missing) and returns the report's path. */
export function writeRun(directory: string, result: Result, series: Series, source: RunSource): string {
  makeFolder(directory);
  const report = join(directory, "report.html");
  writeWhole(join(directory, "result.json"), `${JSON.stringify(result, undefined, 2)}\n`);
  writeWhole(join(directory, "series.json"), `${JSON.stringify(series)}\n`);
  // Without indentation: it lists every message of every flow.
  writeWhole(join(directory, "scenario.json"), `${JSON.stringify(source)}\n`);
  writeWhole(report, page(result, series, source, new Date()));
  return report;
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

/**
 * The page for a saved result; without series it has tables only. Scenario text and thresholds come from scenario.json
 * where there is one.
 * @throws WeirError when the result cannot be read.
 */
export function renderSavedRun(resultFile: string): string {
  const { result, series, source } = readRun(resultFile);
  return page(result, series, source, statSync(resultFile).mtime);
}

/** Kmin and Kmax of every queue that marks, Q_eq of every congestion point, by queue name. */
export function queueThresholds(
  scenario: Pick<SavedSource["scenario"], "switches">,
  queues: readonly string[],
): Record<string, QueueThresholds> {
  const found: Record<string, QueueThresholds> = {};
  for (const name of queues) {
    const [device, , priority] = name.split(":");
    const own = scenario.switches.find((one) => one.name === device);
    const on = (section: { enabled: boolean; priorities: readonly number[] } | undefined) =>
      section?.enabled === true && section.priorities.includes(Number(priority));
    const thresholds = {
      ...(on(own?.ecn) && { kmin: own?.ecn?.kmin, kmax: own?.ecn?.kmax }),
      ...(on(own?.qcn) && { qeq: own?.qcn?.cpQSp }),
    };
    if (Object.keys(thresholds).length > 0) found[name] = thresholds;
  }
  return found;
}

function page(result: Result, series: Series, source: SavedSource | undefined, date: Date): string {
  return renderReport(result, series, {
    date,
    scenarioText: source?.text,
    set: source?.set,
    parameters: source?.scenario.congestion?.parameters,
    thresholds: source && queueThresholds(source.scenario, Object.keys(series.queues)),
  });
}

function readJson(file: string, optional = false): unknown {
  try {
    const bytes = readAtMost(file, kLongestText);
    if (bytes !== undefined) return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    if (optional && (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new WeirError(`${file}: ${fileReason(error) ?? "is not JSON"}`, { hint: kHint, cause: error });
  }
  throw new WeirError(`${file}: is too large; the limit is ${kLongestText} bytes`, { hint: kHint });
}
