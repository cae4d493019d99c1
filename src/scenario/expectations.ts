/** Expectations of a scenario's author on its result: "totals.jain > 0.95", "switches.sw.queues.r.3.p99 < 200KB". */
import { WeirError } from "../base/error.js";
import { parseFraction, parseRate, parseSize, parseTime } from "../base/units.js";

const kOperators = ["<=", ">=", "==", "!=", "<", ">"] as const;

export interface Expectation {
  /** The expectation as it was written. */
  text: string;
  /** Fields of the result from the outside in; `*`: each. */
  path: string[];
  operator: (typeof kOperators)[number];
  /** Bound in the unit of the field; fields of time have seconds. */
  value: number | boolean;
}

const kShape = /^\s*([^\s<>=!]+)\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*$/;
const kHint = "write FIELD OPERATOR VALUE, such as totals.jain > 0.95, flows.*.lost == 0, totals.goodput_bps >= 36Gbps";

/** @throws WeirError when the text is no expectation, or its value does not suit the field. */
export function parseExpectation(text: string): Expectation {
  const [, field, operator, value] = kShape.exec(text) ?? [];
  if (field === undefined || operator === undefined || value === undefined) {
    throw new WeirError(`"${text}" expects nothing`, { hint: kHint });
  }
  const path = parseField(field);
  return { text: text.trim(), path, operator: operator as Expectation["operator"], value: valueFor(value, path) };
}

/** Parses "flows.*.lost": fields of the result from the outside in. @throws WeirError when the text is no field. */
export function parseField(field: string): string[] {
  const path = field.split(".");
  if (path.includes("")) throw new WeirError(`"${field}" is no field`, { hint: kHint });
  return path;
}

/**
 * Parses a value by the field's name, where it has a unit: fields in bit/s end in _bps, those in seconds in _s, those in microseconds in
 * _us.
 */
function valueFor(text: string, path: readonly string[]): number | boolean {
  if (text === "true" || text === "false") return text === "true";
  const plain = Number(text);
  if (!Number.isNaN(plain)) return plain;
  const name = path.at(-1) ?? "";
  if (name.endsWith("_bps")) return parseRate(text);
  if (name.endsWith("_us")) return parseTime(text) / 1e3;
  if (name.endsWith("_s")) return parseTime(text) / 1e9;
  return text.endsWith("%") ? parseFraction(text) : parseSize(text);
}
