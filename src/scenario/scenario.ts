// Scenario files: read, validate, fill in defaults.
import { basename, dirname, extname } from "node:path";
import { type Problem, ScenarioError, WeirError } from "../base/error.js";
import { problemsOf } from "../base/fields.js";
import { Findings } from "../base/findings.js";
import { readScenarioFile } from "../base/yaml.js";
import { checkScenario } from "./check.js";
import { rejection } from "./file_kind.js";
import { withHostNames } from "./host_names.js";
import { mended } from "./mended.js";
import { resolveScenario } from "./resolve.js";
import { scenarioSchema } from "./schema.js";
import type { Scenario } from "./types.js";

export { ScenarioError, WeirError } from "../base/error.js";
export type { DcqcnParameters } from "../congestion/dcqcn.js";
export type * from "./types.js";

/** A valid scenario, and doubts about it, one sentence each. */
export interface LoadedScenario {
  scenario: Scenario;
  warnings: string[];
}

export interface LoadOptions {
  /** Overrides, each `path.to.field=value`: `switch.ecn.kmin=20KB`, `traffic.0.stop=10ms`. */
  set?: readonly string[];
  /** Text of the file, where it was read already: a pipe can be read once. */
  text?: string;
  /** Folder to which paths are relative in a scenario that is no file. Default: the working directory. */
  directory?: string;
  /** Name of a scenario that is no file and has none; default: its source. */
  name?: string;
}

/**
 * Reads a YAML (or JSON) scenario file. Throws ScenarioError with everything that is wrong in it, or WeirError if the file
 * cannot be read or an override is malformed.
 */
export function loadScenario(file: string, options: LoadOptions = {}): LoadedScenario {
  const { set = [], text, name = basename(file, extname(file)), directory = dirname(file) } = options;
  const read = readScenarioFile(file, set, "scenario", text);
  const { scenario, warnings } = validate(read.data, file, { fallbackName: name, directory }, read.locate);
  return { scenario, warnings: [...read.warnings, ...warnings] };
}

/** Loads a scenario from YAML text. `source` names it in errors, and the scenario if it has no name. */
export function parseScenarioText(text: string, source = "scenario", options: LoadOptions = {}): LoadedScenario {
  return loadScenario(source, { name: source, directory: ".", ...options, text });
}

/** Loads a scenario from an object of the shape of a scenario file. */
export function parseScenario(input: unknown, source = "scenario"): LoadedScenario {
  return validate(input, source, { fallbackName: source, directory: "." }, (problem) => problem);
}

/** Problems of names and relations, where single values are wrong as well: the user gets all of them in one round. */
function problemsBesides(written: unknown, context: { fallbackName: string; directory: string }): Problem[] {
  const rest = mended(written);
  if (rest === undefined) return [];
  const found = new Findings();
  try {
    const { scenario, graph } = resolveScenario(rest.input, { ...context, found });
    checkScenario(scenario, rest.input, graph, found);
  } catch (error) {
    // The rest may refer to fields that were taken out.
    if (!(error instanceof WeirError)) throw error;
  }
  return found.problemsOfNames.map((problem) => ({ ...problem, path: rest.writtenAt(problem.path) }));
}

function validate(
  input: unknown,
  source: string,
  context: { fallbackName: string; directory: string },
  locate: (problem: Problem) => Problem,
): LoadedScenario {
  const parsed = scenarioSchema.safeParse(input);
  if (!parsed.success) {
    const problems = [...problemsOf(parsed.error, input), ...problemsBesides(input, context)];
    throw rejection("scenario", source, input, problems.map(locate));
  }
  const found = new Findings();
  const named = withHostNames(parsed.data);
  const { scenario, graph } = resolveScenario(named, { ...context, found });
  const { problems, warnings } = checkScenario(scenario, named, graph, found);
  if (problems.length > 0) throw new ScenarioError(source, problems.map(locate));
  return { scenario, warnings };
}
