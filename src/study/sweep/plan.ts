/**
 * A plan: every point of a sweep, checked, and addressed by a hash of all that its result depends on. A plan is one JSON object
 * per line: the sweep first, with the texts of the scenario and its files, then the points. It refers to nothing outside.
 */
import { readFileSync } from "node:fs";
import { basename, dirname, extname, resolve } from "node:path";
import { z } from "zod";
import { fileReason, type Problem, ScenarioError, WeirError } from "../../base/error.js";
import { kLongestText, readAtMost } from "../../base/read_file.js";
import { readScenarioFile, readScenarioText } from "../../base/yaml.js";
import { contentName, fileReferences, sha256 } from "../../scenario/file_references.js";
import { type LoadedScenario, parseScenarioText } from "../../scenario/scenario.js";
import { type Override, type SweepSpec, showOverride } from "./spec.js";

const overrides = z.record(z.string(), z.unknown());

const sweepLine = z.strictObject({
  weir_sweep: z.literal(1),
  name: z.string(),
  /** See codeVersion(). */
  code: z.string(),
  /** Number of points. */
  points: z.int().min(1),
  axes: z.array(z.string()),
  collect: z.array(z.string()),
  /** The scenario file's name without its ending, and its text. */
  scenario: z.strictObject({ name: z.string(), text: z.string() }),
  /** Files that the scenario refers to: the name as it is written there -> text. */
  files: z.record(z.string(), z.string()),
  /** Overrides that all points share: path -> value. */
  set: overrides,
  /** Series are kept beside the results. */
  series: z.boolean().optional(),
});

const pointLine = z.strictObject({
  index: z.int().min(0),
  id: z.string().regex(/^[0-9a-f]{32}$/),
  /** Overrides of this point: path -> value. */
  set: overrides,
  seed: z.int().min(0),
});

export type Sweep = z.output<typeof sweepLine>;
export type Point = z.output<typeof pointLine>;

export interface Plan {
  sweep: Sweep;
  points: Point[];
}

/** All that a result depends on; its hash is the point's id. */
export interface Identity {
  code: string;
  /** Name of the scenario. */
  name: string;
  /** The scenario's data with overrides, as in a scenario file; files are named by their content. */
  scenario: unknown;
  seed: number;
}

const kIdDigits = 32;

/**
 * The plan of a sweep, the same for the same files and code. Every combination of values is checked; `source` names the sweep
 * file in errors. Throws ScenarioError with all values that are wrong.
 */
export function planSweep(spec: SweepSpec, source: string, code: string): { plan: Plan; warnings: string[] } {
  // Says what is wrong with a file that cannot be read, or is no YAML, before any combination of values is looked at.
  readScenarioFile(spec.scenario, []);
  const sweep: Sweep = {
    weir_sweep: 1,
    name: spec.name,
    code,
    points: 1,
    axes: [...spec.axes],
    collect: [...spec.collect],
    scenario: { name: basename(spec.scenario, extname(spec.scenario)), text: readFileSync(spec.scenario, "utf8") },
    files: {},
    set: Object.fromEntries(spec.set),
    ...(spec.series && { series: true }),
  };
  const { seed, warnings } = checkCombinations(spec, source, sweep);
  const seeds = typeof spec.seeds === "number" ? Array.from({ length: spec.seeds }, (_, i) => seed + i) : spec.seeds;
  sweep.files = readFiles(spec, sweep);
  const points = spec.combinations.flatMap((combination) => {
    const set = Object.fromEntries(combination);
    const input = inputOf(sweep, set);
    return seeds.map((one) => ({ id: idOf({ ...input, seed: one }), set, seed: one }));
  });
  sweep.points = points.length;
  return { plan: { sweep, points: points.map((point, index) => ({ index, ...point })) }, warnings };
}

/** The plan as it is written: JSON lines. */
export function planText({ sweep, points }: Plan): string {
  return [sweep, ...points].map((line) => `${JSON.stringify(line)}\n`).join("");
}

/** Reads a plan. Throws WeirError if it is none, is not whole, or cannot be read (then the cause is the system's error). */
export function readPlan(file: string): Plan {
  let bytes: Buffer | undefined;
  try {
    bytes = readAtMost(file, kLongestText);
  } catch (error) {
    throw new WeirError(`plan ${file}: ${fileReason(error) ?? (error as Error).message}`, { cause: error });
  }
  if (bytes === undefined) throw new WeirError(`plan ${file}: is too large; the limit is ${kLongestText} bytes`);
  const [first = "", ...rest] = bytes
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "");
  const sweep = readLine(sweepLine, first, file, 1);
  const points = rest.map((line, i) => readLine(pointLine, line, file, i + 2));
  if (points.length !== sweep.points || points.some(({ index }, i) => index !== i)) {
    throw notPlan(file, `has ${points.length} of ${sweep.points} points, or they are not in order`);
  }
  return { sweep, points };
}

/** What the result of `point` depends on. */
export function identityOf(sweep: Sweep, { set, seed }: Pick<Point, "set" | "seed">): Identity {
  return { ...inputOf(sweep, set), seed };
}

/** The scenario that a point stands for. `directory` has the plan's files, by content. Throws as parseScenarioText does. */
export function scenarioOf({ name, scenario, seed }: Identity, directory: string): LoadedScenario {
  // JSON is YAML too.
  return parseScenarioText(JSON.stringify(scenario), name, { set: [`seed=${seed}`], directory });
}

/** The plan's files by names that tell their content -> text. */
export function filesByContent({ files }: Sweep): Map<string, string> {
  return new Map(Object.entries(files).map(([file, text]) => [contentName(file, text), text]));
}

/** What all seeds of a combination have in common. */
function inputOf(sweep: Sweep, set: Point["set"]): Omit<Identity, "seed"> {
  const { name, text } = sweep.scenario;
  const { data } = readScenarioText(text, name, assignments(sweep, set));
  for (const reference of fileReferences(data)) {
    const content = sweep.files[reference.file];
    if (content === undefined) throw new WeirError(`the plan does not have the file ${reference.file}`);
    reference.rename(contentName(reference.file, content));
  }
  // A seed in the file is overridden anyway.
  const { seed: _, ...scenario } = data as Record<string, unknown>;
  return { code: sweep.code, name, scenario };
}

/** All files that the scenario refers to, whatever the combination; the check has read them before. */
function readFiles(spec: SweepSpec, sweep: Sweep): Sweep["files"] {
  const { name, text } = sweep.scenario;
  const files: Sweep["files"] = {};
  for (const combination of spec.combinations) {
    const set = assignments(sweep, Object.fromEntries(combination));
    for (const { file } of fileReferences(readScenarioText(text, name, set).data)) {
      files[file] ??= readFileSync(resolve(dirname(spec.scenario), file), "utf8");
    }
  }
  return files;
}

/** As `--set` takes them. */
function assignments(sweep: Sweep, set: Point["set"]): string[] {
  return Object.entries({ ...sweep.set, ...set }).map(([path, value]) => `${path}=${JSON.stringify(value)}`);
}

const idOf = (identity: Identity) => sha256(JSON.stringify(identity)).slice(0, kIdDigits);

/** One thing that is wrong at some of the combinations. */
interface Finding {
  problem: Problem;
  /** The values that it is about; empty: it may be any of a combination's. */
  blamed: readonly Override[];
  /** The first combination that has it, and how many have. */
  first: readonly Override[];
  count: number;
}

/** Whose content would not be in the identity of a point. */
const kNoLibraries: Problem = {
  path: ["congestion", "algorithm"],
  message: "library is of this machine: a plan has all that its workers need as text",
  hint: "run such scenarios one by one, with weir sim run",
};

/** The scenario's own seed, and the warnings of all combinations. */
function checkCombinations(spec: SweepSpec, source: string, sweep: Sweep): { seed: number; warnings: string[] } {
  const findings = new Map<string, Finding>();
  const warnings = new Set<string>();
  const seed = typeof spec.seeds === "number" ? [] : [`seed=${spec.seeds[0]}`];
  let own = 0;
  for (const combination of spec.combinations) {
    try {
      const { name, text } = sweep.scenario;
      const set = [...assignments(sweep, Object.fromEntries(combination)), ...seed];
      const loaded = parseScenarioText(text, name, { set, directory: dirname(spec.scenario) });
      own = loaded.scenario.seed;
      if (loaded.scenario.congestion.algorithm === "library") throw new ScenarioError(name, [kNoLibraries]);
      for (const warning of loaded.warnings) warnings.add(warning);
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      for (const problem of problemsOf(error)) {
        const blamed = combination.filter(([path]) => overlap(path, problem.path.join(".")));
        const key = JSON.stringify([problem.path, problem.message, blamed]);
        const finding = findings.get(key) ?? { problem, blamed, first: combination, count: 0 };
        finding.count++;
        findings.set(key, finding);
      }
    }
  }
  if (findings.size === 0) return { seed: own, warnings: [...warnings] };
  const problems = [...findings.values()].map((finding) => describe(finding, spec.combinations.length));
  throw new ScenarioError(source, problems, "sweep");
}

function problemsOf(error: WeirError): readonly Problem[] {
  if (error instanceof ScenarioError) return error.problems;
  return [{ path: [], message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) }];
}

/** Whether one is the other, or a part of it. */
function overlap(one: string, other: string): boolean {
  return other !== "" && (`${one}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${one}.`));
}

function describe({ problem, blamed, first, count }: Finding, combinations: number): Problem {
  const field = problem.path.join(".");
  const what = field === "" ? problem.message : `${field}: ${problem.message}`;
  const { hint } = problem;
  // What is wrong everywhere is wrong in the scenario or in `set`.
  const values = blamed.length > 0 ? blamed : count === combinations ? [] : first;
  const more = blamed.length === 0 && count > 1 && count < combinations ? `, and ${count - 1} more` : "";
  const where = values.length === 0 ? "" : `at ${values.map(showOverride).join(", ")}${more}: `;
  return { path: [], message: `${where}${what}`, ...(hint === undefined ? {} : { hint }) };
}

function readLine<T>(schema: z.ZodType<T>, line: string, file: string, number: number): T {
  let data: unknown;
  try {
    data = JSON.parse(line);
  } catch {
    throw notPlan(file, `line ${number} is not JSON`);
  }
  const parsed = schema.safeParse(data);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw notPlan(file, `line ${number}: ${issue?.path.join(".")} ${issue?.message}`);
}

function notPlan(file: string, why: string): WeirError {
  return new WeirError(`plan ${file}: ${why}`, { hint: "make one: weir sweep plan sweep.yaml > points.jsonl" });
}
