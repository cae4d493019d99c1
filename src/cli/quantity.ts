/** Values of options with a unit; every error names the option. */
import { WeirError } from "../base/error.js";
import { formatRate, formatSize, formatTime, parseRate, parseSize, parseTime } from "../base/units.js";
import { UsageError } from "./context.js";

export interface Range {
  least: number;
  most: number;
}

/** The value of an option. @throws UsageError that names the option */
export function parsed<T>(option: string, text: string, parse: (text: string) => T, hint?: string): T {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof WeirError)) throw error;
    throw new UsageError(`${option} ${error.message}`, { cause: error, hint: hint ?? error.hint });
  }
}

/** A parser of values in a range, which the error names. */
export function quantity(
  option: string,
  parse: (text: string) => number,
  format: (value: number) => string,
  { least, most }: Range,
): (text: string) => number {
  const hint = `must be ${format(least)} to ${format(most)}`;
  return (text) => {
    const value = parsed(option, text, parse, hint);
    if (value >= least && value <= most) return value;
    throw new UsageError(`${option} ${text}: out of range`, { hint });
  };
}

export const sizeOption = (option: string, range: Range) => quantity(option, parseSize, formatSize, range);
export const timeOption = (option: string, range: Range) => quantity(option, parseTime, formatTime, range);
export const rateOption = (option: string, range: Range) => quantity(option, parseRate, formatRate, range);
