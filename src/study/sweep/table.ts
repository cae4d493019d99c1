/** The table of a sweep: a row for each point, or for each combination of values with statistics over the seeds. */
import { max, mean, min, sampleStandardDeviation } from "simple-statistics";
import { nothingIn } from "../../result/nothing.js";
import type { Result } from "../../result/result.js";
import type { Plan, Point } from "../plan.js";
import type { ResultStore } from "../store.js";
import { showValue } from "./spec.js";

/** Undefined: the result has no such field. */
export type Cell = number | string | undefined;

export interface Table {
  columns: string[];
  rows: Cell[][];
}

/** Outcome of a merge: the rows that there are, in the order of the plan, and the points that have none. */
export interface Merged {
  rows: { point: Point; fields: Cell[] }[];
  /** Points of rows that are not valid, each with the reasons. */
  invalid: { point: Point; reasons: string[] }[];
  missing: Point[];
  failed: { point: Point; error: string }[];
}

/**
 * Returns the fields of a result at `paths`, list members by number. A value that is no number, text, or true or false counts as absent,
 * and so do figures of nothing, which are 0 in the result.
 */
export function collectFields(result: Result, paths: readonly string[]): Cell[] {
  return paths.map((path) => {
    if (nothingIn(result, path.split(".")) !== undefined) return undefined;
    const value = path.split(".").reduce<unknown>((at, key) => {
      return typeof at === "object" && at !== null && Object.hasOwn(at, key)
        ? (at as Record<string, unknown>)[key]
        : undefined;
    }, result);
    if (typeof value === "boolean") return String(value);
    return typeof value === "number" || typeof value === "string" ? value : undefined;
  });
}

/** Reads the results of all points of `plan`. */
export function merge({ points }: Plan, store: ResultStore, collect: readonly string[]): Merged {
  const merged: Merged = { rows: [], invalid: [], missing: [], failed: [] };
  for (const point of points) {
    if (store.hasResult(point)) {
      const result = store.result(point);
      merged.rows.push({ point, fields: collectFields(result, collect) });
      if (!result.fidelity.valid) merged.invalid.push({ point, reasons: result.fidelity.reasons });
      continue;
    }
    const error = store.failure(point);
    if (error === undefined) merged.missing.push(point);
    else merged.failed.push({ point, error });
  }
  return merged;
}

/** The columns by which points are told apart but for their seed: the axes, and the clock where it is not virtual time alone. */
export interface Axes {
  axes: readonly string[];
  clocks: boolean;
}

export function axesOf({ study, points }: Plan): Axes {
  return { axes: study.axes, clocks: points.some(({ clock }) => clock !== "sim") };
}

/** Columns of a table with a row for each point. */
export function pointColumns(by: Axes, collect: readonly string[]): string[] {
  return ["index", ...axisColumns(by), "seed", ...collect];
}

export function pointRow(by: Axes, point: Point, fields: readonly Cell[]): Cell[] {
  return [point.index, ...valuesOf(by, point), point.seed, ...fields];
}

/** A row for each combination of values and each clock: mean, least, most and sample standard deviation over its seeds. */
export function groupTable(by: Axes, { rows }: Merged, collect: readonly string[]): Table {
  const groups = new Map<string, { values: Cell[]; members: Cell[][] }>();
  for (const { point, fields } of rows) {
    const values = valuesOf(by, point);
    const key = JSON.stringify(values);
    const group = groups.get(key) ?? { values, members: [] };
    group.members.push(fields);
    groups.set(key, group);
  }
  return {
    columns: [...axisColumns(by), "seeds", ...collect.flatMap((path) => kStatistics.map((name) => `${path}.${name}`))],
    rows: [...groups.values()].map(({ values, members }) => [
      ...values,
      members.length,
      ...collect.flatMap((_, i) => statistics(members.map((fields) => fields[i]))),
    ]),
  };
}

const kStatistics = ["mean", "min", "max", "stddev"] as const;

/** Statistics of the numbers among `cells`; a single one has no deviation. */
function statistics(cells: readonly Cell[]): Cell[] {
  const numbers = cells.filter((cell) => typeof cell === "number");
  if (numbers.length === 0) return kStatistics.map(() => undefined);
  const deviation = numbers.length > 1 ? sampleStandardDeviation(numbers) : undefined;
  return [mean(numbers), min(numbers), max(numbers), deviation];
}

const axisColumns = ({ axes, clocks }: Axes) => [...axes, ...(clocks ? ["clock"] : [])];

function valuesOf({ axes, clocks }: Axes, { set, clock }: Point): Cell[] {
  const values = axes.map((path) => {
    if (!Object.hasOwn(set, path)) return undefined;
    const value = set[path];
    return typeof value === "number" ? value : showValue(value);
  });
  return [...values, ...(clocks ? [clock] : [])];
}
