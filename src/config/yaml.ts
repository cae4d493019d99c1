// Reading a configuration file: YAML with positions, and `--set` overrides on top.
import { readFileSync } from "node:fs";
import { type Document, isMap, isNode, isPair, isSeq, LineCounter, parse, parseDocument } from "yaml";
import { type Problem, ScenarioError, WeirError } from "./error.js";

const LARGEST = 1 << 20;
const MOST_ALIASES = 100;
const MOST_SYNTAX_ERRORS = 3;

type Key = string | number;

/** A configuration file as plain data, and where its fields are. */
export interface ScenarioFile {
  data: unknown;
  /** The problem with its line and column, or marked as coming from `--set`. */
  locate: (problem: Problem) => Problem;
  /** What the YAML parser finds questionable. */
  warnings: string[];
}

/** Reads and parses `file`, then applies each `path.to.field=value`. Throws ScenarioError, or WeirError if unreadable. */
export function readScenarioFile(file: string, set: readonly string[], kind = "scenario"): ScenarioFile {
  return readScenarioText(readConfigText(file, kind), file, set, kind);
}

/** @throws WeirError if it is unreadable; `kind`: what it describes. */
export function readConfigText(file: string, kind: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unreadable";
    const reasons: Record<string, string> = {
      ENOENT: "no such file",
      EACCES: "permission denied",
      EISDIR: "is a directory",
    };
    throw new WeirError(`${kind} ${file}: ${reasons[code] ?? code}`, { field: "file", cause: error });
  }
}

/** The same for text; `source` names it in errors, with `kind`: what it describes. */
export function readScenarioText(
  text: string,
  source: string,
  set: readonly string[],
  kind = "scenario",
): ScenarioFile {
  if (text.length > LARGEST) {
    throw new WeirError(`${kind} ${source}: ${text.length} characters are too many; the limit is ${LARGEST}`, {
      field: "file",
    });
  }
  const lines = new LineCounter();
  let document: Document.Parsed;
  let data: unknown;
  try {
    document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
    if (document.errors.length === 0) data = document.toJS({ maxAliasCount: MOST_ALIASES });
  } catch (error) {
    // Nesting deep enough to exhaust the stack, or more aliases than allowed.
    const message = error instanceof RangeError ? "is nested too deeply" : (error as Error).message;
    const hint = `write the ${kind} out, without deep nesting or many aliases`;
    throw new ScenarioError(source, [{ path: [], message, hint }], kind);
  }
  if (document.errors.length > 0) {
    // One slip tends to cause more errors further on.
    const problems = document.errors.slice(0, MOST_SYNTAX_ERRORS).map((error): Problem => {
      const { line, col } = lines.linePos(error.pos[0]);
      const message = error.message.startsWith("Maximum call stack") ? "is nested too deeply" : error.message;
      return { path: [], message, line, column: col };
    });
    throw new ScenarioError(source, problems, kind);
  }
  const overridden = set.map((assignment) => applyOverride(data, assignment));
  const locate = (problem: Problem): Problem => {
    if (overridden.some((path) => path.every((key, i) => String(problem.path[i]) === String(key)))) {
      return { ...problem, override: true };
    }
    const { line, col } = lines.linePos(offsetOf(document, problem.path));
    return line === 0 ? problem : { ...problem, line, column: col };
  };
  return { data, locate, warnings: document.warnings.map((warning) => warning.message) };
}

/** Where the deepest existing part of `path` starts. */
function offsetOf(document: Document.Parsed, path: readonly Key[]): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const key of path) {
    if (isMap(node)) {
      const pair = node.items.find(
        (item) => isPair(item) && String(isNode(item.key) ? item.key.toJSON() : item.key) === String(key),
      );
      if (pair === undefined) break;
      if (isNode(pair.key) && pair.key.range) offset = pair.key.range[0];
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(key)];
      if (isNode(node) && node.range) offset = node.range[0];
    } else {
      break;
    }
  }
  return offset;
}

/** Sets one field of `data`, creating sections on the way; whether the field exists is the schema's business. */
function applyOverride(data: unknown, assignment: string): Key[] {
  const usage = { field: "--set", hint: "write --set path.to.field=value, for example --set switch.ecn.kmin=20KB" };
  const equals = assignment.indexOf("=");
  if (equals <= 0) throw new WeirError(`--set ${assignment}: no value`, usage);
  const keys = assignment.slice(0, equals).split(".");
  if (keys.some((key) => key === "" || key === "__proto__"))
    throw new WeirError(`--set ${assignment}: not a field`, usage);
  let value: unknown;
  try {
    value = parse(assignment.slice(equals + 1), { maxAliasCount: 0 });
  } catch (error) {
    throw new WeirError(`--set ${assignment}: ${(error as Error).message.split("\n")[0]}`, usage);
  }
  let at: unknown = data;
  keys.forEach((key, depth) => {
    const name = keys.slice(0, depth).join(".") || "the scenario";
    if (typeof at !== "object" || at === null) throw new WeirError(`--set ${assignment}: ${name} has no fields`, usage);
    if (Array.isArray(at) && !(/^\d+$/.test(key) && Number(key) <= at.length)) {
      throw new WeirError(
        `--set ${assignment}: ${name} is a list of ${at.length}; ${key} is not an index of it`,
        usage,
      );
    }
    const section = at as Record<string, unknown>;
    if (depth === keys.length - 1) {
      section[key] = value;
    } else {
      if (!Object.hasOwn(section, key) || section[key] === null) section[key] = {};
      at = section[key];
    }
  });
  return keys;
}
