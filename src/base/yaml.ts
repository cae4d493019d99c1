// Reading a configuration file: YAML with positions, and `--set` overrides on top.
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Pair,
  Parser,
  parse,
  parseDocument,
  visit,
  type YAMLMap,
} from "yaml";
import { fileReason, type Problem, ScenarioError, UnreadableFile, WeirError } from "./error.js";
import { showValue } from "./fields.js";
import { readAtMost } from "./read_file.js";
import { syntaxFault } from "./yaml_syntax.js";

/** Most bytes that a file may have. */
export const kLargestFile = 1 << 20;
const kMostAliases = 100;
/** Nesting that is far more than any of our files needs; the library recurses, and at the end of the stack V8 may abort the process. */
const kDeepest = 100;
const kMostRepeatedKeys = 3;

type Key = string | number;

/** A configuration file as plain data, and the places of its fields. */
export interface ScenarioFile {
  data: unknown;
  /** The problem with its line and column, or marked as coming from `--set`. */
  locate: (problem: Problem) => Problem;
  /** Texts about what the YAML parser finds questionable. */
  warnings: string[];
}

/**
 * Reads and parses `file`, then applies each `path.to.field=value`. Throws ScenarioError, or WeirError if unreadable. @param text
 * Text of the file, where it was read already: a pipe can be read once.
 */
export function readScenarioFile(
  file: string,
  set: readonly string[],
  kind = "scenario",
  text = readConfigText(file, kind),
): ScenarioFile {
  return readScenarioText(text, file, set, kind);
}

/** @param kind What the file describes. @throws UnreadableFile if it is unreadable, of more than `most` bytes, or no text. */
export function readConfigText(file: string, kind: string, most = kLargestFile): string {
  const refused = (reason: string, cause?: unknown) =>
    new UnreadableFile(`${kind} ${file}: ${reason}`, { field: "file", cause });
  let bytes: Buffer | undefined;
  try {
    bytes = readAtMost(file, most);
  } catch (error) {
    throw refused(fileReason(error) ?? (error as Error).message, error);
  }
  if (bytes === undefined) throw refused(tooLarge(most));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw refused("is not text in UTF-8", error);
  }
}

const tooLarge = (most: number) => `is too large; the limit is ${most} bytes`;

/** Does the same for text; `source` names it in errors, with `kind`: what it describes. */
export function readScenarioText(
  text: string,
  source: string,
  set: readonly string[],
  kind = "scenario",
): ScenarioFile {
  if (text.length > kLargestFile)
    throw new WeirError(`${kind} ${source}: ${tooLarge(kLargestFile)}`, { field: "file" });
  const lines = new LineCounter();
  const deep = tooDeepAt(text, lines);
  if (deep !== undefined) {
    const { line, col } = lines.linePos(deep);
    const hint = `a ${kind} needs a few levels; the limit is ${kDeepest}`;
    throw new ScenarioError(source, [{ path: [], message: "is nested too deeply", hint, line, column: col }], kind);
  }
  let document: Document.Parsed;
  let data: unknown;
  try {
    // By default the library compares each key with all before it, and prints its warnings.
    document = parseDocument(text, { prettyErrors: false, uniqueKeys: false, logLevel: "error" });
    if (document.errors.length === 0) data = document.toJS({ maxAliasCount: kMostAliases });
  } catch (error) {
    const { message } = error as Error;
    const [, alias] = /^Unresolved alias.*: (.*)$/.exec(message) ?? [];
    const problem =
      alias === undefined
        ? { path: [], message, hint: `write the ${kind} out, without so many aliases` }
        : { path: [], message: `*${alias} stands for nothing: no &${alias} is above it` };
    throw new ScenarioError(source, [problem], kind);
  }
  // One slip tends to cause more errors further on.
  const [slip] = document.errors;
  if (slip !== undefined) throw new ScenarioError(source, [{ path: [], ...syntaxFault(slip, text, lines) }], kind);
  const repeated = repeatedKeys(document).slice(0, kMostRepeatedKeys);
  if (repeated.length > 0) {
    const problems = repeated.map((at): Problem => {
      const { line, col } = lines.linePos(at);
      return { path: [], message: "this field is there twice", line, column: col };
    });
    throw new ScenarioError(source, problems, kind);
  }
  const overridden = set.map((assignment) => applyOverride(data, assignment));
  const offsetOf = offsetsIn(document);
  const locate = (problem: Problem): Problem => {
    if (overridden.some((path) => path.every((key, i) => String(problem.path[i]) === String(key)))) {
      return { ...problem, override: true };
    }
    const { line, col } = lines.linePos(offsetOf(problem.path));
    return line === 0 ? problem : { ...problem, line, column: col };
  };
  return { data, locate, warnings: document.warnings.map((warning) => warning.message) };
}

/** Offset at which nesting exceeds what is allowed; undefined if it does not. Fills `lines` on the way. */
function tooDeepAt(text: string, lines: LineCounter): number | undefined {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    // The parser is a generator: it works while it is asked for more.
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > kDeepest) return parser.offset;
  }
  return undefined;
}

/** Offsets of keys that their mapping has before. */
function repeatedKeys(document: Document.Parsed): number[] {
  const repeated: number[] = [];
  visit(document, {
    Map: (_, { items }) => {
      const known = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (known.has(key.value)) repeated.push(key.range?.[0] ?? 0);
        known.add(key.value);
      }
    },
  });
  return repeated.sort((a, b) => a - b);
}

/**
 * Returns a function for the offset of the deepest existing part of a path. Every mapping is searched once, however many paths
 * are asked for.
 */
function offsetsIn(document: Document.Parsed): (path: readonly Key[]) => number {
  const indices = new Map<YAMLMap, ReadonlyMap<string, Pair>>();
  const pairsOf = (map: YAMLMap) => {
    const known = indices.get(map);
    if (known !== undefined) return known;
    const pairs = new Map(map.items.map((pair) => [String(isNode(pair.key) ? pair.key.toJSON() : pair.key), pair]));
    indices.set(map, pairs);
    return pairs;
  };
  return (path) => {
    let node: unknown = document.contents;
    let offset = 0;
    for (const key of path) {
      if (isMap(node)) {
        const pair = pairsOf(node).get(String(key));
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
  };
}

const kSetUsage = { field: "--set", hint: "write --set path.to.field=value, for example --set switch.ecn.kmin=20KB" };

/** Splits "switch.ecn.kmin=20KB" into the names on the way to the field, and the value. @throws WeirError when it is no assignment. */
export function parseOverride(assignment: string): { keys: string[]; value: unknown } {
  const usage = kSetUsage;
  const equals = assignment.indexOf("=");
  if (equals <= 0) throw new WeirError(`--set ${assignment}: no ${equals < 0 ? "value" : "field"}`, usage);
  const keys = assignment.slice(0, equals).split(".");
  if (keys.some((key) => key === "" || key === "__proto__"))
    throw new WeirError(`--set ${assignment}: not a field`, usage);
  if (tooDeepAt(assignment.slice(equals + 1), new LineCounter()) !== undefined)
    throw new WeirError(`--set ${showValue(assignment)}: is nested too deeply`, usage);
  try {
    return {
      keys,
      value: parse(assignment.slice(equals + 1), { maxAliasCount: 0, prettyErrors: false, logLevel: "error" }),
    };
  } catch (error) {
    throw new WeirError(`--set ${assignment}: ${(error as Error).message}`, usage);
  }
}

/** Sets one field of `data`, creating sections on the way; the schema decides whether the field exists. */
function applyOverride(data: unknown, assignment: string): Key[] {
  const usage = kSetUsage;
  const { keys, value } = parseOverride(assignment);
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
      const inner = Object.hasOwn(section, key) ? section[key] : null;
      at = section[key] = inner === null ? {} : unshared(inner);
    }
  });
  return keys;
}

/** An alias of YAML is the very object that its anchor is: what is changed in one must not change in the other. */
function unshared(value: unknown): unknown {
  if (Array.isArray(value)) return [...value];
  return typeof value === "object" ? { ...value } : value;
}
