// Building blocks of the scenario schema. Every field carries its description and its default (as a user would write it) in the
// schema's metadata: the JSON Schema, the documentation and the defaults that resolve.ts fills in all come from there.
import { z } from "zod";
import { type Problem, WeirError } from "./error.js";
import { formatRate, formatSize, formatTime, parseFraction, parseRate, parseSize, parseTime } from "./units.js";

interface QuantityOptions {
  /** Bounds in the base unit, both allowed. */
  min?: number;
  max?: number;
  /** What a user would write for it. */
  default?: string | number;
  /** Written out instead of 0, for example `unlimited`. */
  zero?: string;
}

interface Quantity {
  noun: string;
  example: string;
  parse: (input: string | number) => number;
  format: (value: number) => string;
  /** Unit of a plain number, if it needs saying. */
  plain: string;
  min: number;
  max: number;
}

const RATE: Quantity = {
  noun: "a rate",
  example: "40Gbps",
  parse: parseRate,
  format: formatRate,
  plain: "bit/s",
  min: 1_000,
  max: 10e12,
};
const SIZE: Quantity = {
  noun: "a size",
  example: "200KB",
  parse: parseSize,
  format: formatSize,
  plain: "bytes",
  min: 0,
  max: 1e12,
};
const TIME: Quantity = {
  noun: "a time",
  example: "55us",
  parse: parseTime,
  format: formatTime,
  plain: "nanoseconds",
  min: 0,
  max: 3_600e9,
};
const FRACTION: Quantity = {
  noun: "a fraction",
  example: "1%",
  parse: parseFraction,
  format: (value) => String(value),
  plain: "",
  min: 0,
  max: 1,
};

function quantitySchema(kind: Quantity, options: QuantityOptions) {
  const min = options.min ?? kind.min;
  const max = options.max ?? kind.max;
  return z
    .union([z.string(), z.number()], {
      error: (issue) => `${showValue(issue.input)} is not ${kind.noun} such as ${kind.example}`,
    })
    .transform((input, context) => {
      let value: number;
      try {
        value = input === options.zero ? 0 : kind.parse(input);
      } catch (error) {
        if (!(error instanceof WeirError)) throw error;
        const params = { hint: rangeHint(kind, options, input) };
        context.addIssue({ code: "custom", message: error.message, params, input });
        return z.NEVER;
      }
      const allowed = (value >= min && value <= max) || (value === 0 && options.zero !== undefined);
      if (!allowed) {
        const params = { hint: rangeHint(kind, options, input) };
        context.addIssue({ code: "custom", message: `${input} is out of range`, params, input });
        return z.NEVER;
      }
      return value;
    });
}

/** Who writes `duration: 5` hardly means nanoseconds. */
function rangeHint(kind: Quantity, options: QuantityOptions, input: string | number): string {
  return `must be ${rangeText(kind, options)}${typeof input === "number" ? plainText(kind) : ""}`;
}

function plainText(kind: Quantity): string {
  return kind.plain === "" ? "" : `; a plain number means ${kind.plain}`;
}

function rangeText(kind: Quantity, options: QuantityOptions): string {
  const range = `${kind.format(options.min ?? kind.min)} to ${kind.format(options.max ?? kind.max)}`;
  return options.zero === undefined ? range : `${range}, or ${options.zero}`;
}

function describe<T extends z.ZodType>(schema: T, description: string, fallback: unknown) {
  return schema.optional().meta(fallback === undefined ? { description } : { description, default: fallback });
}

function quantity(kind: Quantity, description: string, options: QuantityOptions) {
  const text = `${description} ${capital(rangeText(kind, options))}${plainText(kind)}.`;
  return describe(quantitySchema(kind, options), text, options.default);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export const rate = (description: string, options: QuantityOptions = {}) => quantity(RATE, description, options);
export const size = (description: string, options: QuantityOptions = {}) => quantity(SIZE, description, options);
export const time = (description: string, options: QuantityOptions = {}) => quantity(TIME, description, options);
export const fraction = (description: string, options: QuantityOptions = {}) =>
  quantity(FRACTION, description, options);

export const integer = (description: string, min: number, max: number, fallback?: number) =>
  describe(z.int().min(min).max(max), description, fallback);
export const flag = (description: string, fallback: boolean) => describe(z.boolean(), description, fallback);
export const choice = <const T extends readonly [string, ...string[]]>(
  description: string,
  values: T,
  fallback: T[number],
) => describe(z.enum(values), description, fallback);
export const priorities = (description: string, fallback: readonly number[]) =>
  describe(z.array(z.int().min(0).max(7)).max(8), description, fallback);

/** A strict object. Its "message" for unknown keys is the list of known ones, which `problemsOf` turns into a sentence. */
export function section<T extends z.ZodRawShape>(shape: T) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? Object.keys(shape).join(" ") : undefined),
  });
}

/** The defaults written in a schema's metadata, as a user would write them; nested sections included. */
export function defaultsOf(schema: z.ZodObject): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(schema.shape)) {
    const fallback = (member as z.ZodType).meta()?.default;
    const inner = member instanceof z.ZodOptional ? member.unwrap() : member;
    if (fallback !== undefined) result[name] = fallback;
    else if (inner instanceof z.ZodObject) result[name] = defaultsOf(inner);
  }
  return result;
}

/** After defaults are merged in. */
export type Filled<T> = { [K in keyof T]-?: Exclude<T[K], undefined> };

/** A value as it may appear in a message: short, on one line. */
export function showValue(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a mapping";
  const text = String(value).replace(/[^\x20-\x7e\u00a0-\uffff]/g, "?");
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

/** The candidate nearest to `name` in edit distance, if it is near enough to be a slip of the pen. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1;
  if (name.length > 60) return undefined;
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, i) => i)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    rows.push([i]);
    for (let j = 1; j <= b.length; j++) {
      const substituted = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
          ? at(i - 2, j - 2) + 1
          : Number.POSITIVE_INFINITY;
      rows[i]?.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, substituted, swapped));
    }
  }
  return at(a.length, b.length);
}

type Path = (string | number)[];

/** zod's issues as problems a user can act on. `input` is what was parsed: it shows the values. */
export function problemsOf(error: z.ZodError, input: unknown): Problem[] {
  const problems = error.issues.flatMap((issue) => explain(issue as z.core.$ZodIssue, [], input));
  // Beyond 2^53 a number is no integer to zod, and beyond the range as well.
  return [...new Map(problems.map((problem) => [JSON.stringify(problem), problem])).values()];
}

function explain(issue: z.core.$ZodIssue, prefix: Path, root: unknown): Problem[] {
  const path = [...prefix, ...issue.path] as Path;
  const value = path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], root);
  const one = (message: string, hint?: string): Problem[] => [
    hint === undefined ? { path, message } : { path, message, hint },
  ];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownField([...path, key], key, issue.message.split(" ")));
    case "invalid_union": {
      if (value === undefined) return one("is missing");
      const options = "options" in issue ? issue.options?.filter((option) => typeof option === "string") : undefined;
      if (options !== undefined) {
        const meant = nearest(String(value), options);
        return one(`${showValue(value)} is not one of ${options.join(", ")}`, meant && `did you mean ${meant}?`);
      }
      const ofType = (i: z.core.$ZodIssue) => i.path.length === 0 && i.code === "invalid_type";
      const ofValue = (i: z.core.$ZodIssue) => i.path.length === 0 && i.code === "invalid_value";
      const own = issue.message !== "Invalid input";
      // The branch that got furthest: its complaints are about something inside, or else not about the type.
      const right = issue.errors.filter((issues) => !issues.some((i) => ofType(i) || (own && ofValue(i))));
      const branch = right.find((issues) => issues.some((i) => i.path.length > 0)) ?? right[0];
      if (branch !== undefined && branch.length > 0) return branch.flatMap((inner) => explain(inner, path, root));
      return one(own ? issue.message : `${showValue(value)} is not expected here`);
    }
    case "invalid_type":
      return one(value === undefined ? "is missing" : `expected ${typeName(issue.expected)}, not ${showValue(value)}`);
    case "invalid_value": {
      const values = issue.values.map(String);
      const meant = nearest(String(value), values);
      return one(`${showValue(value)} is not one of ${values.join(", ")}`, meant && `did you mean ${meant}?`);
    }
    case "too_small":
      return one(
        `${showValue(value)} is too ${typeof value === "number" ? "small" : "short"}`,
        `must be at least ${issue.minimum}${unitOf(value)}`,
      );
    case "too_big":
      return one(
        `${showValue(value)} is too ${typeof value === "number" ? "large" : "long"}`,
        `must be at most ${issue.maximum}${unitOf(value)}`,
      );
    case "invalid_key":
      return one(issue.issues[0]?.message ?? "is not allowed as a name");
    case "custom": {
      const hint: unknown = issue.params?.hint;
      return one(issue.message, typeof hint === "string" ? hint : undefined);
    }
    default:
      return one(issue.message);
  }
}

/** What the bounds of a value's length count. */
function unitOf(value: unknown): string {
  if (Array.isArray(value)) return " long";
  return typeof value === "string" ? " characters" : "";
}

function unknownField(path: Path, key: string, known: string[]): Problem {
  const meant = nearest(key, known);
  return {
    path,
    message: "unknown field",
    hint: meant ? `did you mean ${meant}?` : `known fields: ${known.join(", ")}`,
  };
}

function typeName(expected: string): string {
  const names: Record<string, string> = {
    object: "a mapping",
    record: "a mapping",
    array: "a list",
    string: "text",
    number: "a number",
    int: "a whole number",
    boolean: "true or false",
  };
  return names[expected] ?? expected;
}
