/** The space that tuning searches: parameters of the scenario's congestion control, each within a range. */
import { WeirError } from "../../base/error.js";
import { kQuantities } from "../../base/quantity.js";
import { Random } from "../../base/random.js";
import type { PaperSymbol } from "../../congestion/algorithm.js";
import { type AlgorithmName, algorithmOf, type Congestion } from "../../congestion/algorithms.js";
import type { Parameter, ParameterInput } from "../../congestion/parameter.js";
import { kSpellings, spellingsOf } from "../../congestion/spellings.js";

/** One parameter. Values are in base units, of a number in its own. */
export interface Dimension {
  name: string;
  /** Field of the scenario, as the scenario spells it. */
  field: string;
  low: number;
  high: number;
  /** Drawn evenly over its logarithm, not over its value. */
  log: boolean;
  /** The scenario's own value. */
  standard: ParameterInput;
  /** Writes a value as a scenario has it: in few digits, and as text where it has a unit. */
  write: (value: number) => ParameterInput;
}

/** A value for each dimension, as a scenario has it. */
export type Candidate = readonly ParameterInput[];

/**
 * A range reaches from the scenario's value divided by this to the value times this; a linear one this part of the allowed range either
 * way.
 */
const kFactor = 8;
const kPart = 1 / 8;
const kDigits = 3;
/** Units that are logarithms already, or parts of a whole. */
const kLinear = ["1/1024", "log2"];

/**
 * Parses "rpg_ai_rate=5Mbps..400Mbps,dce_tcp_g"; undefined: the parameters that the algorithm names. `written`: `congestion.parameters` as
 * the scenario has it. @throws WeirError when one is no parameter, or has no such range.
 */
export function parseSpace(
  text: string | undefined,
  congestion: Congestion,
  written: Readonly<Record<string, ParameterInput>>,
): Dimension[] {
  const { algorithm } = congestion;
  const { tuned = [], title, feedback } = algorithmOf(algorithm);
  if (tuned.length === 0 || feedback === "none") {
    const hint = "use a scenario with another congestion.algorithm";
    throw new WeirError(`congestion.algorithm: ${title} has no parameters to tune`, { hint });
  }
  const parts = text?.split(",").map((part) => part.trim()) ?? tuned;
  const dimensions = parts.map((part) => parseDimension(part, congestion, written));
  const names = dimensions.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new WeirError(`${twice} is named twice`, { hint: "name each once" });
  return dimensions;
}

function parseDimension(
  text: string,
  congestion: Congestion,
  written: Readonly<Record<string, ParameterInput>>,
): Dimension {
  const [, spelling = "", from, to] = /^([^=]*?)(?:=(.+?)\.\.(.+))?$/.exec(text) ?? [];
  const { algorithm } = congestion;
  const [name, parameter] = find(algorithm, spelling);
  const { bounds } = parameter;
  if (bounds === undefined)
    throw new WeirError(`${name} is true or false`, { hint: "name parameters that are numbers" });
  const standard = standardOf(name, parameter, congestion, written);
  const [key, symbol] = writtenAs(name, written);
  const write = (value: number) => symbol?.write(value) ?? writeValue(parameter, value);
  const log = !kLinear.includes(parameter.unit);
  const value = typeof standard === "number" ? standard : (parsedNumber(parameter, standard) ?? 0);
  const reach = (bounds.max - bounds.min) * kPart;
  const usual = log ? [value / kFactor, value * kFactor] : [value - reach, value + reach];
  const given = [from, to].map((end) => (end === undefined ? undefined : endOf(name, parameter, end)));
  const low = given[0] ?? Math.max(bounds.min, usual[0] as number);
  const high = given[1] ?? Math.min(bounds.max, usual[1] as number);
  if (low >= high || (log && low <= 0)) {
    const hint = `give a range: ${name}=LOW..HIGH, within ${parameter.range}${log ? ", and above 0" : ""}`;
    const what = from === undefined ? `has no usual range about ${String(standard)}` : `${from}..${to} is no range`;
    throw new WeirError(`${name}: ${what}`, { hint });
  }
  const field = `congestion.parameters.${key}`;
  return { name, field, low, high, log, standard: typeof standard === "number" ? write(standard) : standard, write };
}

/** The spelling by which a parameter is given, its name where it is not. */
function writtenAs(
  name: string,
  written: Readonly<Record<string, ParameterInput>>,
): [key: string, symbol: PaperSymbol | undefined] {
  const key = spellingsOf(name).find((spelling) => written[spelling] !== undefined) ?? name;
  return [key, kSpellings.get(key)?.symbol];
}

function find(algorithm: AlgorithmName, spelling: string): [string, Parameter] {
  const found = kSpellings.get(spelling);
  if (found?.algorithm === algorithm && found.symbol === undefined) return [found.name, found.parameter];
  const { parameters, title } = algorithmOf(algorithm);
  const names = Object.entries(parameters).flatMap(([name, { bounds }]) => (bounds === undefined ? [] : [name]));
  throw new WeirError(`"${spelling}" is no parameter of ${title}`, { hint: `parameters: ${names.join(", ")}` });
}

/** Returns a quantity in base units, as the run has it; a number as the file or the profile has it. */
function standardOf(
  name: string,
  { kind }: Parameter,
  { algorithm, profile, parameters }: Congestion,
  written: Readonly<Record<string, ParameterInput>>,
): ParameterInput {
  const { profiles, defaults } = algorithmOf(algorithm);
  const sourced = (profiles?.[profile ?? ""]?.parameters ?? defaults)?.[name]?.[0] ?? 0;
  const [key, symbol] = writtenAs(name, written);
  const found = written[key] ?? sourced;
  const raw = symbol === undefined ? found : (parsedNumber(symbol.parameter, found) ?? 0);
  const resolved = (parameters as Readonly<Record<string, unknown>>)[name];
  return kind !== "number" && typeof resolved === "number" ? resolved : raw;
}

function parsedNumber({ parse }: Parameter, input: ParameterInput): number | undefined {
  const value = parse(input);
  return typeof value === "number" ? value : undefined;
}

function endOf(name: string, parameter: Parameter, text: string): number {
  const input = parameter.kind === "number" ? Number(text) : text;
  const value = Number.isNaN(input) ? undefined : parsedNumber(parameter, input);
  if (value !== undefined) return value;
  throw new WeirError(`${name}: ${text} is no end of a range`, { hint: `it must be ${parameter.range}, without %` });
}

function writeValue({ kind, bounds }: Parameter, value: number): ParameterInput {
  const rounded = Number(value.toPrecision(kDigits));
  const whole = bounds?.whole ? Math.round(rounded) : rounded;
  if (kind === "number") return bounds?.whole ? Math.round(value) : rounded;
  if (kind === "fraction") return `${Number((value * 100).toPrecision(kDigits))}%`;
  return kind === "flag" ? value : kQuantities[kind].format(whole).replace(" ", "");
}

/**
 * The scenario's own values, then `count` - 1 drawn from the ranges, the same for the same seed, and each valid.
 * @throws WeirError where the ranges hold hardly anything that is.
 */
export function candidates(
  space: readonly Dimension[],
  count: number,
  seed: number,
  valid: (candidate: Candidate) => boolean,
): Candidate[] {
  const random = new Random(seed, "tune");
  const found: Candidate[] = [space.map(({ standard }) => standard)];
  const mostTries = 100 * count;
  for (let tries = 0; found.length < count; tries++) {
    if (tries === mostTries) {
      const hint = "give other ranges: --parameters NAME=LOW..HIGH,...";
      throw new WeirError(`of ${tries} draws from the ranges ${found.length - 1} were valid`, { hint });
    }
    const candidate = space.map(({ low, high, log, write }) => {
      const part = random.fraction();
      return write(log ? low * (high / low) ** part : low + (high - low) * part);
    });
    if (valid(candidate)) found.push(candidate);
  }
  return found;
}
