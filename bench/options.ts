/** Values on the command lines of benchmarks. */
import { InvalidArgumentError } from "commander";

/** A number from `least` to `most`. */
export function numberIn(least: number, most: number, whole = false): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (value >= least && value <= most && (!whole || Number.isInteger(value))) return value;
    throw new InvalidArgumentError(`It is a ${whole ? "whole " : ""}number from ${least} to ${most}.`);
  };
}

export function pattern(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch (error) {
    throw new InvalidArgumentError(`It is a regular expression: ${(error as Error).message}.`);
  }
}
