/** Sweep files: the scenario, the values that vary, and the fields of the results that make the table. */
import { basename, dirname, extname, resolve } from "node:path";
import { z } from "zod";
import { type Problem, ScenarioError } from "../../base/error.js";
import { fraction, problemsOf, section } from "../../base/fields.js";
import { parseOverride, readScenarioFile } from "../../base/yaml.js";
import { type ClockName, kClockNames } from "../../clocks/clock.js";
import { kAutoBound, kBounds } from "../../clocks/fast_forward_bound.js";
import { rejection } from "../../scenario/file_kind.js";

const kMostPoints = 100_000;
const kMostSeeds = 10_000;

const field = z.string().regex(/^[^\s.=]+(\.[^\s.=]+)*$/, {
  error: (issue) => `${String(issue.input)}: write a field as a path, such as switch.ecn.kmin`,
});
const overrides = z.record(field, z.unknown());
const axes = z.record(field, z.array(z.unknown()).min(1));
const seed = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

export const sweepSchema = section({
  scenario: z.string().min(1).meta({ description: "Scenario file, relative to this one." }),
  set: overrides.optional().meta({
    description: "Fields of the scenario that are other than in its file, the same at all points: path -> value.",
  }),
  vary: axes.optional().meta({
    description: "Axes: path -> list of values. All combinations are points; the last axis changes fastest.",
  }),
  zip: z.array(axes).optional().meta({
    description: "Axes that go together: each entry is path -> list of values, all lists of one length.",
    default: [],
  }),
  points: z.array(overrides).min(1).optional().meta({
    description: "Combinations written out, each path -> value. With `vary` or `zip`: combined with these too.",
  }),
  seeds: z
    .union([z.array(seed).min(1), z.int().min(1).max(kMostSeeds)])
    .optional()
    .meta({
      description: "Seeds that each combination runs with: a list, or how many, from the scenario's own on.",
      default: 1,
    }),
  on: z
    .array(z.enum(kClockNames))
    .min(1)
    .optional()
    .meta({
      description: "Clocks that each combination runs on: sim, wire, model.",
      default: ["sim"],
    }),
  fast_forward: fraction(
    "Points in virtual time skip what repeats itself, as `weir sim run --fast-forward` does: by how much that may be off.",
    { min: kBounds.least, max: kBounds.most, zero: "off", word: "auto", default: "off" },
  ),
  collect: z
    .array(field)
    .optional()
    .meta({
      description: "Fields of the result that become columns of the table, such as `totals.goodput_bps`.",
      default: ["totals.goodput_bps"],
    }),
});

type SpecInput = z.output<typeof sweepSchema>;

/** One override: a field of the scenario and the value as written. */
export type Override = readonly [path: string, value: unknown];

/** Writes "switch.ecn.kmax=50KB"; a value that is not text is JSON. */
export function showOverride([path, value]: Override): string {
  return `${path}=${showValue(value)}`;
}

/** Parses `--set` as overrides. @throws WeirError when one is no assignment. */
export function overridesOf(set: readonly string[]): Override[] {
  return set.map((assignment) => {
    const { keys, value } = parseOverride(assignment);
    return [keys.join("."), value];
  });
}

/** Writes a value for a table: text as it is, anything else as JSON. */
export function showValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export interface SweepSpec {
  /** Name of the sweep, from its file's name. */
  name: string;
  /** Path of the scenario file. */
  scenario: string;
  set: readonly Override[];
  /** The fields that vary, in order: columns of the table. */
  axes: readonly string[];
  /** Every combination of the axes' values. */
  combinations: readonly (readonly Override[])[];
  /** Names of the combinations, where each has one. */
  labels?: readonly string[];
  seeds: readonly number[] | number;
  on: readonly ClockName[];
  collect: readonly string[];
  /** Series are kept beside the results. */
  series?: boolean;
  /** Part by which what points in virtual time skip may be off; absent: they skip nothing. */
  fast_forward?: number | undefined;
}

/**
 * Reads a sweep file. Throws ScenarioError with everything that is wrong in it, or WeirError if it cannot be read.
 * @param text Text of the file, where it was read already: a pipe can be read once.
 */
export function loadSweep(file: string, text?: string): SweepSpec {
  const { data, locate } = readScenarioFile(file, [], "sweep", text);
  const parsed = sweepSchema.safeParse(data);
  if (!parsed.success) throw rejection("sweep", file, data, problemsOf(parsed.error, data).map(locate));
  const problems = check(parsed.data);
  if (problems.length > 0) throw new ScenarioError(file, problems.map(locate), "sweep");
  const spec = parsed.data;
  const combinations = combine(dimensions(spec));
  return {
    name: basename(file, extname(file)),
    scenario: resolve(dirname(file), spec.scenario),
    set: Object.entries(spec.set ?? {}),
    axes: [...new Set(combinations.flatMap((combination) => combination.map(([path]) => path)))],
    combinations,
    seeds: spec.seeds ?? 1,
    on: spec.on ?? ["sim"],
    collect: spec.collect ?? ["totals.goodput_bps"],
    fast_forward: boundOf(spec.fast_forward),
  };
}

const boundOf = (written: SpecInput["fast_forward"]) => (written === "auto" ? kAutoBound : written || undefined);

/** Each dimension is a list of alternatives; they go from the slowest to the fastest. */
function dimensions(spec: SpecInput): Override[][][] {
  const zipped = (spec.zip ?? []).map((together) => {
    const lists = Object.entries(together);
    return (lists[0]?.[1] ?? []).map((_, i) => lists.map(([path, values]): Override => [path, values[i]]));
  });
  return [
    ...(spec.points === undefined ? [] : [spec.points.map((point): Override[] => Object.entries(point))]),
    ...zipped,
    ...Object.entries(spec.vary ?? {}).map(([path, values]) => values.map((value): Override[] => [[path, value]])),
  ];
}

function combine(lists: readonly Override[][][]): Override[][] {
  return lists.reduce<Override[][]>(
    (before, list) => before.flatMap((combination) => list.map((more) => [...combination, ...more])),
    [[]],
  );
}

function check(spec: SpecInput): Problem[] {
  const problems: Problem[] = [];
  (spec.zip ?? []).forEach((together, i) => {
    const lengths = Object.values(together).map((values) => values.length);
    if (new Set(lengths).size <= 1) return;
    const hint = "axes that go together need lists of one length";
    problems.push({ path: ["zip", i], message: `lists of ${lengths.join(", ")} values`, hint });
  });
  const seen = new Map<string, string>();
  for (const [at, paths] of fieldsBySection(spec)) {
    for (const path of paths) {
      const place = [...at.split("."), path];
      const hint = at === "set" ? "leave it out here" : "a field varies in one place only";
      const other = seen.get(path);
      if (path === "seed") problems.push({ path: place, message: "is not a field to vary here", hint: "use `seeds`" });
      else if (other !== undefined) problems.push({ path: place, message: `is in ${other} too`, hint });
      seen.set(path, at);
    }
  }
  const seeds = Array.isArray(spec.seeds) ? spec.seeds.length : (spec.seeds ?? 1);
  if (Array.isArray(spec.seeds) && new Set(spec.seeds).size < seeds) {
    problems.push({ path: ["seeds"], message: "has a seed twice" });
  }
  const clocks = spec.on ?? ["sim"];
  if (new Set(clocks).size < clocks.length) problems.push({ path: ["on"], message: "has a clock twice" });
  const points = dimensions(spec).reduce((product, list) => product * list.length, seeds * clocks.length);
  if (points > kMostPoints) {
    const hint = `must be at most ${kMostPoints}; split the sweep into several files`;
    problems.push({ path: [], message: `${points} points are too many`, hint });
  }
  return problems;
}

/** Fields that each part of the file sets; several points may set the same. */
function fieldsBySection(spec: SpecInput): [string, Iterable<string>][] {
  return [
    ["points", new Set((spec.points ?? []).flatMap((point) => Object.keys(point)))],
    ...(spec.zip ?? []).map((together, i): [string, string[]] => [`zip.${i}`, Object.keys(together)]),
    ["vary", Object.keys(spec.vary ?? {})],
    ["set", Object.keys(spec.set ?? {})],
  ];
}
