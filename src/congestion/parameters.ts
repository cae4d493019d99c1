// Parameters of congestion control algorithms: how one is written, what it may be, and what is said when it is not.
import { z } from "zod";
import { WeirError } from "../base/error.js";
import { section, showValue } from "../base/fields.js";
import { formatRate, formatTime, parseFraction, parseRate, parseTime } from "../base/units.js";

/** What a file may say: a number means the parameter's own unit. */
export type ParameterInput = string | number | boolean;

/** In base units; rates may be a part of the line rate. */
export type Parsed = number | boolean | { ofLine: number };

export interface Parameter {
  description: string;
  /** What a plain number means. */
  unit: string;
  range: string;
  parse: (input: ParameterInput) => Parsed | undefined;
}

export const within = (value: number, min: number, max: number) => (value >= min && value <= max ? value : undefined);

/** Times in ns; `unit` is what a plain number means. */
export function timeParameter(description: string, min: number, max: number, unit: "us" | "ms" = "us"): Parameter {
  const factor = unit === "us" ? 1e3 : 1e6;
  const parse = (input: ParameterInput) =>
    typeof input === "boolean"
      ? undefined
      : within(typeof input === "number" ? parseTime(input * factor) : parseTime(input), min, max);
  return { description, unit, range: `${formatTime(min)} to ${formatTime(max)}`, parse };
}

export function rateParameter(description: string, min: number): Parameter {
  const max = 10e12;
  const parse = (input: ParameterInput) => {
    if (typeof input === "boolean") return undefined;
    if (typeof input === "string" && input.trim().endsWith("%")) return { ofLine: parseFraction(input) };
    return within(typeof input === "number" ? parseRate(input * 1e6) : parseRate(input), min, max);
  };
  return { description, unit: "Mb/s", range: `${formatRate(min)} to ${formatRate(max)}, or % of line rate`, parse };
}

export function percentParameter(description: string): Parameter {
  const parse = (input: ParameterInput) =>
    typeof input === "boolean" ? undefined : parseFraction(typeof input === "number" ? input / 100 : input);
  return { description, unit: "%", range: "0% to 100%", parse };
}

export function numberParameter(
  description: string,
  unit: string,
  min: number,
  max: number,
  integer = true,
): Parameter {
  const parse = (input: ParameterInput) =>
    typeof input === "number" && (!integer || Number.isInteger(input)) ? within(input, min, max) : undefined;
  return { description, unit, range: `${min} to ${max}`, parse };
}

export function flagParameter(description: string): Parameter {
  const parse = (input: ParameterInput) =>
    input === true || input === 1 ? true : input === false || input === 0 ? false : undefined;
  return { description, unit: "", range: "true or false", parse };
}

function parameterSchema(name: string, { description, unit, range, parse }: Parameter) {
  const number = ["us", "ms", "Mb/s", "bytes", "%"].includes(unit) ? `; a plain number is in ${unit}` : "";
  return z
    .union([z.string(), z.number(), z.boolean()], {
      error: (issue) => `${showValue(issue.input)} is not a value for ${name}`,
    })
    .transform((input, context): Parsed => {
      let message = `${input} is out of range`;
      try {
        const value = parse(input);
        if (value !== undefined) return value;
      } catch (error) {
        if (!(error instanceof WeirError)) throw error;
        message = error.message;
      }
      context.addIssue({ code: "custom", message, params: { hint: `must be ${range}${number}` }, input });
      return z.NEVER;
    })
    .optional()
    .meta({ description: `${description} ${range.charAt(0).toUpperCase()}${range.slice(1)}${number}.` });
}

/** A section with one field for each spelling of each parameter. */
export function parameterFields(spellings: Iterable<readonly [spelling: string, parameter: Parameter]>) {
  return section(
    Object.fromEntries([...spellings].map(([spelling, parameter]) => [spelling, parameterSchema(spelling, parameter)])),
  );
}

/** A parsed value as a number; parts of the line rate (bit/s) are whole bit/s. */
export function numeric(value: Parsed | undefined, lineRate: number): number {
  return typeof value === "object" ? Math.round(value.ofLine * lineRate) : Number(value);
}
