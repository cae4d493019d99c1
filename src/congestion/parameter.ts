// Parameters of congestion control algorithms: how one is written, and what it may be.
import { type QuantityName as AnyQuantity, kQuantities } from "../base/quantity.js";
import { parseFraction } from "../base/units.js";

/** No parameter is a length. */
type QuantityName = Exclude<AnyQuantity, "length">;
type ParameterKind = QuantityName | "number" | "flag";

/** Value in a file: a number means the parameter's own unit. */
export type ParameterInput = string | number | boolean;

/** Value in base units; rates may be a part of the line rate. */
export type Parsed = number | boolean | { ofLine: number };

/** The native core's description of a parameter (native/congestion/written.h). */
export interface Described<Kind extends ParameterKind = ParameterKind> {
  kind: Kind;
  description: string;
  /** Unit of a plain number. */
  unit: string;
  /** Bounds in base units, both allowed; absent for a flag. `whole`: nothing between whole numbers is allowed. */
  bounds?: { min: number; max: number; whole: boolean };
  /** Another name for it. */
  otherSpelling?: string;
  /** Value that the core begins with, in the parameter's own unit; only algorithms without profiles have it. */
  standard?: number;
}

export interface Parameter<Kind extends ParameterKind = ParameterKind> extends Described<Kind> {
  range: string;
  /** Returns undefined where the value is out of range. Throws WeirError. */
  parse: (input: ParameterInput) => Parsed | undefined;
}

export type DescribedParameters = Readonly<Record<string, Described>>;

/** A value for each parameter, in base units. */
export type Values<All extends DescribedParameters> = {
  -readonly [Name in keyof All]: All[Name]["kind"] extends "flag" ? boolean : number;
};

export function parametersOf<All extends DescribedParameters>(described: All) {
  const all = Object.entries(described).map(([name, one]): [string, Parameter] => [
    name,
    { ...one, range: rangeOf(one), parse: (input) => parsed(one, input) },
  ]);
  return Object.fromEntries(all) as { readonly [Name in keyof All]: Parameter<All[Name]["kind"]> };
}

function rangeOf({ kind, bounds }: Described): string {
  if (bounds === undefined || kind === "flag") return "true or false";
  const { min, max } = bounds;
  if (kind === "fraction") return `${min * 100}% to ${max * 100}%`;
  if (kind === "number") return `${min} to ${max}`;
  const { format } = kQuantities[kind];
  return `${format(min)} to ${format(max)}${kind === "rate" ? ", or % of line rate" : ""}`;
}

function parsed({ kind, unit, bounds }: Described, input: ParameterInput): Parsed | undefined {
  if (bounds === undefined || kind === "flag") {
    return input === true || input === 1 ? true : input === false || input === 0 ? false : undefined;
  }
  const { min, max, whole } = bounds;
  const within = (value: number) => (value >= min && value <= max ? value : undefined);
  if (typeof input === "boolean") return undefined;
  if (kind === "number")
    return typeof input === "number" && (!whole || Number.isInteger(input)) ? within(input) : undefined;
  if (kind === "rate" && typeof input === "string" && input.trim().endsWith("%"))
    return { ofLine: parseFraction(input) };
  return within(kQuantities[kind].parse(typeof input === "number" ? `${input}${unit}` : input));
}
