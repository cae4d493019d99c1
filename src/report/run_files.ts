/** The folder that a run leaves: result.json, series.json, scenario.json and report.html. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { WeirError } from "../config/error.js";
import type { Scenario } from "../config/types.js";
import type { QueueThresholds } from "./charts.js";
import { renderReport } from "./html.js";
import { type Result, resultSchema, type Series } from "./result.js";

/** What was asked for: the file as written, the overrides, and what they came to. Saved as scenario.json. */
export interface RunSource {
  text: string;
  set: readonly string[];
  scenario: Scenario;
}

/** Writes all files of a finished run into `directory` (created when missing) and returns the report's path. */
export function writeRun(directory: string, result: Result, series: Series, source: RunSource): string {
  mkdirSync(directory, { recursive: true });
  const report = join(directory, "report.html");
  writeFileSync(join(directory, "result.json"), `${JSON.stringify(result, undefined, 2)}\n`);
  writeFileSync(join(directory, "series.json"), `${JSON.stringify(series)}\n`);
  writeFileSync(join(directory, "scenario.json"), `${JSON.stringify(source, undefined, 2)}\n`);
  writeFileSync(report, page(result, series, source, new Date()));
  return report;
}

/**
 * The page for a saved result. Series come from the result itself or from series.json beside it; without them the page
 * has tables only. Scenario text and thresholds come from scenario.json where there is one.
 * @throws WeirError when the result cannot be read.
 */
export function renderSavedRun(resultFile: string): string {
  const parsed = resultSchema.safeParse(readJson(resultFile));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const why = `${issue?.path.join(".")}: ${issue?.message}`;
    throw new WeirError(`${resultFile}: not a result of weir: ${why}`, { hint: "give the result.json of a run" });
  }
  const result = parsed.data;
  const beside = (name: string) => readJson(join(dirname(resultFile), name), true);
  const none: Series = { interval_s: 1, time_s: [], flows: {}, queues: {} };
  const series = result.series ?? (beside("series.json") as Series | undefined) ?? none;
  return page(result, series, beside("scenario.json") as RunSource | undefined, statSync(resultFile).mtime);
}

/** Kmin and Kmax of every queue that marks, by queue name. */
export function queueThresholds(scenario: Scenario, queues: readonly string[]): Record<string, QueueThresholds> {
  const found: Record<string, QueueThresholds> = {};
  for (const name of queues) {
    const [device, , priority] = name.split(":");
    const ecn = scenario.switches.find((one) => one.name === device)?.ecn;
    if (ecn?.enabled && ecn.priorities.includes(Number(priority))) found[name] = { kmin: ecn.kmin, kmax: ecn.kmax };
  }
  return found;
}

function page(result: Result, series: Series, source: RunSource | undefined, date: Date): string {
  return renderReport(result, series, {
    date,
    scenarioText: source?.text,
    set: source?.set,
    parameters: source?.scenario.congestion.parameters,
    thresholds: source && queueThresholds(source.scenario, Object.keys(series.queues)),
  });
}

function readJson(file: string, optional = false): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    if (optional && (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new WeirError(`${file}: ${(error as Error).message}`, { cause: error });
  }
}
