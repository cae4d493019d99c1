// Parameters of congestion control algorithms: how one is written, and what it may be.
import { type QuantityName as AnyQuantity, kQuantities } from "../base/quantity.js";
import { parseFraction } from "../base/units.js";

/** No parameter is a length. */
type QuantityName = Exclude<AnyQuantity, "length">;

/** What a file may say: a number means the parameter's own unit. */
export type ParameterInput = string | number | boolean;

/** In base units; rates may be a part of the line rate. */
export type Parsed = number | boolean | { ofLine: number };

export interface Parameter<Kind extends QuantityName | "number" | "flag" = QuantityName | "number" | "flag"> {
  kind: Kind;
  description: string;
  /** What a plain number means. */
  unit: string;
  range: string;
  /** In base units, both allowed; absent of a flag. `whole`: nothing between whole numbers. */
  bounds?: { min: number; max: number; whole: boolean };
  /** Undefined: out of range. Throws WeirError. */
  parse: (input: ParameterInput) => Parsed | undefined;
}

/** A value for each parameter, in base units. */
export type Values<Parameters extends Readonly<Record<string, Parameter>>> = {
  [Name in keyof Parameters]: Parameters[Name] extends Parameter<"flag"> ? boolean : number;
};

const within = (value: number, min: number, max: number) => (value >= min && value <= max ? value : undefined);

function quantity<Kind extends QuantityName>(
  kind: Kind,
  unit: string,
  description: string,
  min: number,
  max: number,
): Parameter<Kind> {
  const { parse, format } = kQuantities[kind];
  return {
    kind,
    description,
    unit,
    range: `${format(min)} to ${format(max)}`,
    bounds: { min, max, whole: kind !== "fraction" },
    parse: (input) =>
      typeof input === "boolean"
        ? undefined
        : within(parse(typeof input === "number" ? `${input}${unit}` : input), min, max),
  };
}

/** In ns; `unit` is what a plain number means. */
export const time = (description: string, min: number, max: number, unit: "us" | "ms" = "us") =>
  quantity("time", unit, description, min, max);

export const size = (description: string, min: number, max: number) => quantity("size", "bytes", description, min, max);

export function rate(description: string, min: number): Parameter<"rate"> {
  const { range, parse, ...rest } = quantity("rate", "Mb/s", description, min, 10e12);
  return {
    ...rest,
    range: `${range}, or % of line rate`,
    parse: (input) =>
      typeof input === "string" && input.trim().endsWith("%") ? { ofLine: parseFraction(input) } : parse(input),
  };
}

export const percent = (description: string, min = 0): Parameter<"fraction"> => ({
  ...quantity("fraction", "%", description, min, 1),
  range: `${min * 100}% to 100%`,
});

export function number(
  description: string,
  unit: string,
  min: number,
  max: number,
  integer = true,
): Parameter<"number"> {
  const parse = (input: ParameterInput) =>
    typeof input === "number" && (!integer || Number.isInteger(input)) ? within(input, min, max) : undefined;
  const bounds = { min, max, whole: integer };
  return { kind: "number", description, unit, range: `${min} to ${max}`, bounds, parse };
}

export function flag(description: string): Parameter<"flag"> {
  const parse = (input: ParameterInput) =>
    input === true || input === 1 ? true : input === false || input === 0 ? false : undefined;
  return { kind: "flag", description, unit: "", range: "true or false", parse };
}
