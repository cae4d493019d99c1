/**
 * A plan: the points of a study, each a scenario on a clock with a seed, addressed by a hash of all that its result depends on. A plan is
 * one JSON object per line: the study first, with the texts of its scenarios and their files, then the points. It refers to nothing
 * outside.
 */
import { z } from "zod";
import { fileReason, WeirError } from "../base/error.js";
import { kLongestText, readAtMost } from "../base/read_file.js";
import { readScenarioText } from "../base/yaml.js";
import { type ClockName, kClockNames } from "../clocks/clock.js";
import { kBounds } from "../clocks/fast_forward_bound.js";
import { contentName, fileReferences, sha256 } from "../scenario/file_references.js";
import { type LoadedScenario, parseScenarioText } from "../scenario/scenario.js";

const overrides = z.record(z.string(), z.unknown());

const scenarioText = z.strictObject({
  /** The scenario file's name without its ending, and its text. */
  name: z.string(),
  text: z.string(),
  /** Files that the scenario refers to: the name as it is written there -> text. */
  files: z.record(z.string(), z.string()),
  /** Overrides that all its points share: path -> value. */
  set: overrides,
});

const studyLine = z.strictObject({
  weir_sweep: z.literal(2),
  name: z.string(),
  /** Version of the code: see codeVersion(). */
  code: z.string(),
  /** Number of points. */
  points: z.int().min(1),
  axes: z.array(z.string()),
  collect: z.array(z.string()),
  scenarios: z.array(scenarioText).min(1),
  /** Series are kept beside the results. */
  series: z.boolean().optional(),
  /** Part by which what points in virtual time skip may be off; absent: they skip nothing. */
  fast_forward: z.number().min(kBounds.least).max(kBounds.most).optional(),
});

/** A path with `..` would lead out of the folder of the results. */
const folder = z.string().regex(/^(?!.*(^|\/)\.\.?(\/|$))[\w.-]+(\/[\w.-]+)*$/, {
  error: "is no folder within that of the results",
});

const pointLine = z.strictObject({
  index: z.int().min(0),
  id: z.string().regex(/^[0-9a-f]{32}$/),
  /** Position among the plan's scenarios; absent: the first. */
  scenario: z.int().min(1).optional(),
  clock: z.enum(kClockNames),
  /** Overrides of this point: path -> value. */
  set: overrides,
  seed: z.int().min(0),
  /** Folder of its files, within that of the results; absent: they are named by its id. */
  folder: folder.optional(),
});

export type PlannedScenario = z.output<typeof scenarioText>;
export type Study = z.output<typeof studyLine>;
export type Point = z.output<typeof pointLine>;

export interface Plan {
  study: Study;
  points: Point[];
}

/** All that a result depends on; its hash is the point's id. */
export interface Identity {
  code: string;
  clock: ClockName;
  /** Name of the scenario. */
  name: string;
  /** The scenario's data with overrides, as in a scenario file; files are named by their content. */
  scenario: unknown;
  seed: number;
  /** Bound of what is skipped; absent: nothing is. */
  fast_forward?: number;
}

const kIdDigits = 32;

export const idOf = (identity: Identity) => sha256(JSON.stringify(identity)).slice(0, kIdDigits);

/** The plan as it is written: JSON lines. */
export function planText({ study, points }: Plan): string {
  return [study, ...points].map((line) => `${JSON.stringify(line)}\n`).join("");
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
  const study = readLine(studyLine, first, file, 1);
  const points = rest.map((line, i) => readLine(pointLine, line, file, i + 2));
  if (points.length !== study.points || points.some(({ index }, i) => index !== i)) {
    throw notPlan(file, `has ${points.length} of ${study.points} points, or they are not in order`);
  }
  const stray = points.find(({ scenario = 0 }) => scenario >= study.scenarios.length);
  if (stray !== undefined) throw notPlan(file, `point ${stray.index} is of a scenario that the plan does not have`);
  return { study, points };
}

/** The scenario that a point is of, before the point's own overrides. */
export function scenarioTextOf({ scenarios }: Study, { scenario = 0 }: Pick<Point, "scenario">): PlannedScenario {
  return scenarios[scenario] as PlannedScenario;
}

/** Returns what the result of `point` depends on. */
export function identityOf(study: Study, point: Omit<Point, "id" | "index">): Identity {
  const { clock, set, seed } = point;
  return { ...inputOf(study, clock, scenarioTextOf(study, point), set), seed };
}

/** The scenario that a point stands for. `directory` has the plan's files, by content. Throws as parseScenarioText does. */
export function scenarioOf({ name, scenario, seed }: Identity, directory: string): LoadedScenario {
  // JSON is YAML too.
  return parseScenarioText(JSON.stringify(scenario), name, { set: [`seed=${seed}`], directory });
}

/** The plan's files by names that tell their content -> text. */
export function filesByContent({ scenarios }: Study): Map<string, string> {
  const files = scenarios.flatMap((one) => Object.entries(one.files));
  return new Map(files.map(([file, text]) => [contentName(file, text), text]));
}

/** Input of a point that all seeds of a combination have in common. */
export function inputOf(
  { code, fast_forward }: Pick<Study, "code" | "fast_forward">,
  clock: ClockName,
  { name, text, files, set: shared }: PlannedScenario,
  set: Point["set"],
): Omit<Identity, "seed"> {
  const { data } = readScenarioText(text, name, assignments(shared, set));
  for (const reference of fileReferences(data)) {
    const content = Object.hasOwn(files, reference.file) ? files[reference.file] : undefined;
    if (content === undefined) throw new WeirError(`the plan does not have the file ${reference.file}`);
    reference.rename(contentName(reference.file, content));
  }
  // A seed in the file is overridden anyway.
  const { seed: _, ...scenario } = data as Record<string, unknown>;
  return { code, clock, name, scenario, ...(clock === "sim" && fast_forward !== undefined && { fast_forward }) };
}

/** Overrides as `--set` takes them. */
export function assignments(shared: Point["set"], set: Point["set"] = {}): string[] {
  return Object.entries({ ...shared, ...set }).map(([path, value]) => `${path}=${JSON.stringify(value)}`);
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
