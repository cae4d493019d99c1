/** The objective of tuning: one field of the result, as small or as large as it gets. */
import { WeirError } from "../../base/error.js";
import { valuesAt } from "../../result/expectations.js";
import { nothingIn } from "../../result/nothing.js";
import type { Result } from "../../result/result.js";
import { parseField } from "../../scenario/expectations.js";

export interface Objective {
  /** Text such as "min fct.slowdown.p99". */
  text: string;
  /** Path of the field, as in `expect`; of several values (`*`) the worst counts. */
  path: readonly string[];
  /** Sign of the order: 1: less is better; -1: more is. */
  sign: 1 | -1;
}

/** Parses "fct.slowdown.p99", "min switches.*.queues.*.*.p99", "max totals.goodput_bps". @throws WeirError when `text` is no objective. */
export function parseObjective(text: string): Objective {
  const [, word = "min", field] = /^\s*(?:(min|max)\s+)?(\S+)\s*$/.exec(text) ?? [];
  if (field === undefined) {
    const hint = 'write FIELD, "min FIELD" or "max FIELD", such as fct.slowdown.p99';
    throw new WeirError(`"${text}" is no objective`, { hint });
  }
  return { text: `${word} ${field}`, path: parseField(field), sign: word === "max" ? -1 : 1 };
}

function isQueue({ switches }: Pick<Result, "switches">, [first, name = "", third]: readonly string[]): boolean {
  return first === "switches" && third === "queues" && (name === "*" || Object.hasOwn(switches, name));
}

/** Tells whether the objective is of completion times where nothing was complete, or the like: the figures are 0, and mean nothing. */
export function isEmpty(result: object, { path }: Objective): boolean {
  return [...valuesAt(result, path)].some(({ place }) => nothingIn(result, place.split(".")) !== undefined);
}

/** Returns the worst of the field's values. @throws WeirError when there is none, or one is no number. */
export function objectiveOf(result: Result, { path, sign }: Objective): number {
  const field = path.join(".");
  const values = [...valuesAt(result, path)].map(({ value }) => value);
  // A queue that held nothing is not in the result.
  const found = isQueue(result, path) && values.every((value) => value === undefined) ? [0] : values;
  const numbers = found.filter((value) => typeof value === "number");
  if (found.length === 0 || numbers.length < found.length) {
    const hint = "docs/reference/results.md has all fields; fct is there where flows have an end (bytes, sizes)";
    throw new WeirError(`the result has no number at ${field}`, { hint });
  }
  return sign * Math.max(...numbers.map((value) => sign * value));
}
