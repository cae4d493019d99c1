/** The plan of a sweep: every combination of values, checked, on every clock that is asked for and with every seed. */
import { readFileSync } from "node:fs";
import { basename, dirname, extname, resolve } from "node:path";
import { type Problem, ScenarioError, WeirError } from "../../base/error.js";
import { readScenarioFile, readScenarioText } from "../../base/yaml.js";
import { kClocks } from "../../clocks/clocks.js";
import { fileReferences, readReferenced } from "../../scenario/file_references.js";
import { parseScenarioText } from "../../scenario/scenario.js";
import { assignments, idOf, inputOf, type Plan, type PlannedScenario, type Study } from "../plan.js";
import { type Override, type SweepSpec, showOverride } from "./spec.js";

/**
 * Plans a sweep, the same for the same files and code. Every combination of values is checked; `source` names the sweep
 * file in errors. Points come by combination, then by clock, then by seed. Throws ScenarioError with all values that are wrong.
 */
export function planSweep(spec: SweepSpec, source: string, code: string): { plan: Plan; warnings: string[] } {
  // A file that cannot be read, or is no YAML, is an error before any combination of values is looked at.
  readScenarioFile(spec.scenario, []);
  const scenario: PlannedScenario = {
    name: basename(spec.scenario, extname(spec.scenario)),
    text: readFileSync(spec.scenario, "utf8"),
    files: {},
    set: Object.fromEntries(spec.set),
  };
  const { seed, warnings } = checkCombinations(spec, source, scenario);
  const seeds = typeof spec.seeds === "number" ? Array.from({ length: spec.seeds }, (_, i) => seed + i) : spec.seeds;
  scenario.files = readFiles(spec, scenario);
  const { fast_forward } = spec;
  const points = spec.combinations.flatMap((combination) => {
    const set = Object.fromEntries(combination);
    return spec.on.flatMap((clock) => {
      const input = inputOf({ code, fast_forward }, clock, scenario, set);
      return seeds.map((one) => ({ id: idOf({ ...input, seed: one }), clock, set, seed: one }));
    });
  });
  const study: Study = {
    weir_sweep: 2,
    name: spec.name,
    code,
    points: points.length,
    axes: [...spec.axes],
    collect: [...spec.collect],
    scenarios: [scenario],
    ...(spec.series && { series: true }),
    ...(fast_forward !== undefined && { fast_forward }),
  };
  return { plan: { study, points: points.map((point, index) => ({ index, ...point })) }, warnings };
}

/** All files that the scenario refers to, whatever the combination; the check has read them before. */
function readFiles(spec: SweepSpec, { name, text, set: shared }: PlannedScenario): PlannedScenario["files"] {
  const files: PlannedScenario["files"] = {};
  for (const combination of spec.combinations) {
    const set = assignments(shared, Object.fromEntries(combination));
    for (const { file } of fileReferences(readScenarioText(text, name, set).data)) {
      files[file] ??= readReferenced(resolve(dirname(spec.scenario), file));
    }
  }
  return files;
}

/** One problem that some of the combinations have. */
interface Finding {
  problem: Problem;
  /** The values that it is about; empty: it may be any of a combination's. */
  blamed: readonly Override[];
  /** Positions of the combinations that have it. */
  at: number[];
}

/** The content of a library would not be in the identity of a point. */
const kNoLibraries: Problem = {
  path: ["congestion", "algorithm"],
  message: "library is of this machine: a plan has all that its workers need as text",
  hint: "run such scenarios one by one, with weir sim run",
};

/** Returns the scenario's own seed, and the warnings of all combinations. */
function checkCombinations(
  spec: SweepSpec,
  source: string,
  { name, text, set: shared }: PlannedScenario,
): { seed: number; warnings: string[] } {
  const findings = new Map<string, Finding>();
  const warnings = new Map<string, number[]>();
  const seed = typeof spec.seeds === "number" ? [] : [`seed=${spec.seeds[0]}`];
  let own = 0;
  spec.combinations.forEach((combination, i) => {
    try {
      const set = [...assignments(shared, Object.fromEntries(combination)), ...seed];
      const loaded = parseScenarioText(text, name, { set, directory: dirname(spec.scenario) });
      own = loaded.scenario.seed;
      if (loaded.scenario.congestion.algorithm === "library") throw new ScenarioError(name, [kNoLibraries]);
      for (const clock of spec.on) kClocks[clock].check(loaded.scenario);
      for (const warning of loaded.warnings) warnings.set(warning, [...(warnings.get(warning) ?? []), i]);
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      for (const problem of problemsOf(error)) {
        const blamed = spec.labels ? [] : combination.filter(([path]) => overlap(path, problem.path.join(".")));
        const key = JSON.stringify([problem.path, problem.message, blamed]);
        const finding = findings.get(key) ?? { problem, blamed, at: [] };
        finding.at.push(i);
        findings.set(key, finding);
      }
    }
  });
  if (findings.size === 0) {
    return { seed: own, warnings: [...warnings].map(([warning, at]) => `${placeOf(spec, at)}${warning}`) };
  }
  const problems = [...findings.values()].map((finding) => describe(finding, spec));
  throw new ScenarioError(source, problems, spec.labels ? "scenario" : "sweep");
}

function problemsOf(error: WeirError): readonly Problem[] {
  if (error instanceof ScenarioError) return error.problems;
  return [{ path: [], message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) }];
}

/** Tells whether one is the other, or a part of it. */
function overlap(one: string, other: string): boolean {
  return other !== "" && (`${one}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${one}.`));
}

/** Names of the combinations where they have any, and it is not all of them: "with dcqcn, timely: ". */
function placeOf({ labels, combinations }: SweepSpec, at: readonly number[]): string {
  if (labels === undefined || at.length === combinations.length) return "";
  return `with ${at.map((i) => labels[i]).join(", ")}: `;
}

function describe({ problem, blamed, at }: Finding, spec: SweepSpec): Problem {
  const field = problem.path.join(".");
  const what = field === "" ? problem.message : `${field}: ${problem.message}`;
  const { hint, line, column } = problem;
  const advice = hint === undefined ? {} : { hint };
  // A combination with a name of its own is no line of a sweep file: places are those in the scenario.
  if (spec.labels) {
    const place = line === undefined || column === undefined ? {} : { line, column };
    return { path: [], message: `${placeOf(spec, at)}${what}`, ...place, ...advice };
  }
  const { combinations } = spec;
  // A problem of all combinations is one of the scenario or of `set`.
  const first = combinations[at[0] ?? 0] ?? [];
  const values = blamed.length > 0 ? blamed : at.length === combinations.length ? [] : first;
  const more =
    blamed.length === 0 && at.length > 1 && at.length < combinations.length ? `, and ${at.length - 1} more` : "";
  const where = values.length === 0 ? "" : `at ${values.map(showOverride).join(", ")}${more}: `;
  return { path: [], message: `${where}${what}`, ...advice };
}
