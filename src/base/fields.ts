// Building blocks of the scenario schema. Every field carries its description and its default (as a user would write it) in the
// schema's metadata: the JSON Schema, the documentation and the defaults that resolve.ts fills in all come from there.
import { z } from "zod";
import { type Problem, WeirError } from "./error.js";
import { merge } from "./merge.js";
import { nearest } from "./nearest.js";
import { kQuantities, type Quantity, type QuantityName } from "./quantity.js";
import { OutOfRange } from "./units.js";

// Most processes read one file or answer once: to compile what reads it takes longer than to read it.
z.config({ jitless: true });

/** An optional field that has a default; only its type tells so. */
type Defaulted<T extends z.ZodType> = z.ZodOptional<T> & { readonly defaulted: true };
type Optional<T extends z.ZodType, Default> = undefined extends Default ? z.ZodOptional<T> : Defaulted<T>;

/** A section once its defaults are filled in; a field without a default may still be undefined. */
export type Full<S extends z.ZodObject> = { [K in keyof S["shape"]]: FullField<S["shape"][K]> };
type FullField<F> =
  F extends Defaulted<infer T>
    ? z.output<T>
    : F extends z.ZodOptional<infer T extends z.ZodObject>
      ? Full<T>
      : z.output<F>;

/** `A`, with the types of `B` for the fields that `B` has. */
export type With<A, B> = Omit<A, keyof B> & B;

/** An optional field. `fallback`: its default, as a user would write it. */
export function field<T extends z.ZodType, const Default = undefined>(
  schema: T,
  description: string,
  fallback?: Default,
): Optional<T, Default> {
  const meta = fallback === undefined ? { description } : { description, default: fallback };
  return schema.optional().meta(meta) as Optional<T, Default>;
}

/** A field whose value is what `read` makes of the written one; undefined, or a WeirError, is a problem. */
export function converted<T extends z.ZodType, Value>(
  written: T,
  read: (input: z.output<T>) => Value | undefined,
  hint: (input: z.output<T>) => string,
) {
  return written.transform((input, context): Value => {
    let message = `${input} is out of range`;
    try {
      const value = read(input);
      if (value !== undefined) return value;
    } catch (error) {
      if (!(error instanceof WeirError)) throw error;
      if (!(error instanceof OutOfRange)) message = error.message;
    }
    context.addIssue({ code: "custom", message, params: { hint: hint(input) }, input });
    return z.NEVER;
  });
}

interface QuantityOptions {
  /** Bounds in the base unit, both allowed. */
  min?: number;
  max?: number;
  /** Default as a user would write it. */
  default?: string | number;
  /** Written out instead of 0, for example `unlimited`. */
  zero?: string;
  /** May stand in place of a quantity, and is taken as it is: `auto`. */
  word?: string;
}

/** Value of a field of a quantity once it is read. */
type Read<Options> = Options extends { word: infer Word extends string } ? number | Word : number;

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function quantity<const Options extends QuantityOptions>(name: QuantityName, description: string, options: Options) {
  const kind: Quantity = kQuantities[name];
  const { min = kind.min, max = kind.max, zero, word } = options;
  const or = [zero, word].map((name) => (name === undefined ? "" : `, or ${name}`)).join("");
  const range = `${kind.format(min)} to ${kind.format(max)}${or}`;
  const plain = kind.plain === "" ? "" : `; a plain number means ${kind.plain}`;
  const written = z.union([z.string(), z.number()], {
    error: (issue) => `${showValue(issue.input)} is not a ${name} such as ${kind.example}`,
  });
  const read = (input: string | number) => {
    if (word !== undefined && input === word) return word as Read<Options>;
    const value = input === zero ? 0 : kind.parse(input);
    const inRange = (value >= min && value <= max) || (value === 0 && zero !== undefined);
    return inRange ? (value as Read<Options>) : undefined;
  };
  // A user who writes `duration: 5` hardly means nanoseconds.
  const hint = (input: string | number) => `must be ${range}${typeof input === "number" ? plain : ""}`;
  const schema = converted(written, read, hint);
  return field(schema, `${description} ${capital(range)}${plain}.`, options.default) as Optional<
    typeof schema,
    Options["default"]
  >;
}

export const rate = <const O extends QuantityOptions = { max?: never }>(description: string, options?: O) =>
  quantity("rate", description, options ?? ({} as O));
export const size = <const O extends QuantityOptions = { max?: never }>(description: string, options?: O) =>
  quantity("size", description, options ?? ({} as O));
export const time = <const O extends QuantityOptions = { max?: never }>(description: string, options?: O) =>
  quantity("time", description, options ?? ({} as O));
export const length = <const O extends QuantityOptions = { max?: never }>(description: string, options?: O) =>
  quantity("length", description, options ?? ({} as O));
export const fraction = <const O extends QuantityOptions = { max?: never }>(description: string, options?: O) =>
  quantity("fraction", description, options ?? ({} as O));

export const integer = <const Default extends number | undefined = undefined>(
  description: string,
  min: number,
  max: number,
  fallback?: Default,
) => field(z.int().min(min).max(max), description, fallback);
export const flag = (description: string, fallback: boolean) => field(z.boolean(), description, fallback);
export const choice = <const T extends readonly [string, ...string[]]>(
  description: string,
  values: T,
  fallback: T[number],
) => field(z.enum(values), description, fallback);
export const priorities = (description: string, fallback: readonly number[]) =>
  field(z.array(z.int().min(0).max(7)).max(8), description, fallback);

/** In a section where not all fields belong to one thing, hints name only those that fit the value of a field beside the section. */
interface Belonging {
  field: string;
  names: Readonly<Record<string, readonly string[]>>;
  /** Value of that field where it is not written, or has no entry in `names`. */
  fallback: string;
}

/** The "message" for unknown keys, which `problemsOf` turns into a sentence. */
interface KnownKeys {
  known: readonly string[];
  belonging?: Belonging | undefined;
}

const told = (keys: KnownKeys) => JSON.stringify(keys);

/** A strict object. */
export function section<T extends z.ZodRawShape>(shape: T, belonging?: Belonging) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? told({ known: Object.keys(shape), belonging }) : undefined),
  });
}

/** A mapping of some of `keys`; unknown ones are told as those of a section. */
export function mapping<const K extends string, T extends z.ZodType>(keys: readonly K[], value: T) {
  return z.partialRecord(z.enum(keys), value, {
    // Zod's types know of no such issue here, but it is what keys beyond an enumeration are.
    error: ({ code }: { code: string }) => (code === "unrecognized_keys" ? told({ known: keys }) : undefined),
  });
}

/** The defaults written in a schema's metadata, as a user would write them; nested sections included. */
function defaultsOf(schema: z.ZodObject): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(schema.shape)) {
    const fallback = (member as z.ZodType).meta()?.default;
    const inner = member instanceof z.ZodOptional ? member.unwrap() : member;
    if (fallback !== undefined) result[name] = fallback;
    else if (inner instanceof z.ZodObject) result[name] = defaultsOf(inner);
  }
  return result;
}

const defaults = new WeakMap<z.ZodObject, object>();

/** The defaults of a section, and layers of it over them; later ones win. */
export function filled<S extends z.ZodObject>(schema: S, ...layers: (object | null | undefined)[]): Full<S> {
  let own = defaults.get(schema);
  if (own === undefined) {
    own = schema.partial().parse(defaultsOf(schema));
    defaults.set(schema, own);
  }
  return merge<object>(own, ...layers) as Full<S>;
}

/** A value as it may appear in a message: short, on one line. */
export function showValue(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a mapping";
  const text = String(value).replace(/[^\x20-\x7e\u00a0-\uffff]/g, "?");
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
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
  const value = valueAt(root, path);
  const one = (message: string, hint?: string): Problem[] => [
    hint === undefined ? { path, message } : { path, message, hint },
  ];
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownField([...path, key], key, knownOf(issue.message, path, root)));
    case "invalid_union": {
      if (value === undefined) return one("is missing");
      const options = "options" in issue ? issue.options?.filter((option) => typeof option === "string") : undefined;
      if (options !== undefined) {
        const meant = nearest(showValue(value), options);
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
      const meant = nearest(showValue(value), values);
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

const valueAt = (root: unknown, path: Path) =>
  path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], root);

function knownOf(message: string, path: Path, root: unknown): readonly string[] {
  const { known, belonging } = JSON.parse(message) as KnownKeys;
  if (belonging === undefined) return known;
  const { field, names, fallback } = belonging;
  return names[String(valueAt(root, [...path.slice(0, -1), field]))] ?? names[fallback] ?? known;
}

/** Unit that the bounds of a value's length count. */
function unitOf(value: unknown): string {
  if (Array.isArray(value)) return " long";
  return typeof value === "string" ? " characters" : "";
}

function unknownField(path: Path, key: string, known: readonly string[]): Problem {
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
