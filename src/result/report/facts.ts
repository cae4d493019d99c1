/** Facts for "What was run" of a report: everything that defines a run, under names without underscores and with units. */
import { kQuantities } from "../../base/quantity.js";
import { formatRate, formatSize, formatTime } from "../../base/units.js";
import type { Algorithm } from "../../congestion/algorithm.js";
import { algorithmOf } from "../../congestion/algorithms.js";
import { fidelitySchema } from "../fidelity_result.js";
import { describeMade } from "../made_schema.js";
import { type Result, resultSchema } from "../result.js";
import type { SavedRun } from "../saved_run.js";
import { fixed, percent } from "./format.js";

/** Name and value, and the meaning of the value where it is not plain. */
export type Fact = readonly [name: string, value: string, meaning?: string];

/** Fields that a later version adds to the result are included, too. */
export function runFacts({ result, source }: SavedRun): Fact[] {
  const { scenario, made, clock, scale, seed, duration_s, until_s, warmup_s, profile, path_mtu, payload_share } =
    result;
  const { frames, transport, model, environment, fidelity } = result;
  const { set = [] } = source ?? {};
  const { loop_gap_max_at_s, cpu_wait_ms, timer_lateness_us, stragglers } = fidelity;
  const { capture_dropped, capture_errors, tuning, varies } = fidelity;
  const { weir: _, commit: __, at, host: ___, ...ofMade } = made ?? {};
  return [
    ...flatten({ scenario }),
    ...(made === undefined ? [] : flatten({ made_by: describeMade(made), made_at: at, made: ofMade })),
    ...flatten({ clock, scale, seed, duration_s, until_s, "warm-up_s": warmup_s, profile }),
    ...flatten({ path_MTU: path_mtu && `${[path_mtu].flat().join(", ")} bytes` }),
    ...flatten({ payload_share: payload_share && percent(payload_share) }),
    ...framesFact(frames),
    ...flatten({ transport, model, environment, ...beyond(result, resultSchema.shape) }),
    ...flatten(
      {
        ...{ loop_gap_max_at_s, cpu_wait_ms, timer_lateness_us, stragglers },
        ...{ capture_dropped, capture_errors, tuning, varies },
        ...beyond(fidelity, fidelitySchema.shape),
      },
      ["fidelity"],
    ),
    ...flatten({ set: set.length > 0 ? set : undefined }),
  ];
}

/** Parameters of the run's congestion control. */
export function parameterFacts({ result, source }: SavedRun): { title: string; facts: Fact[] } {
  const algorithm = algorithmOf(result.congestion_control ?? "dcqcn");
  const facts = Object.entries(source?.scenario.congestion?.parameters ?? {}).map(([name, value]) =>
    parameterFact(algorithm, name, value),
  );
  return { title: `Parameters of ${algorithm.title}`, facts };
}

/** Units of counts, and of exponents and parts, whose values are plain numbers here. */
const kUnitless: ReadonlySet<string> = new Set(["", "count", "log2", "1/1024"]);

function parameterFact({ parameters, symbols = {} }: Algorithm, name: string, value: unknown): Fact {
  const { kind, unit, description = "" } = parameters[name] ?? symbols[name]?.parameter ?? {};
  if (typeof value === "boolean") return [name, value ? "on" : "off", description];
  if (typeof value !== "number") return [name, String(value), description];
  // The description explains values in 1/1024, but here the value is a plain number.
  if (unit === "1/1024") return [name, String(value)];
  if (kind !== undefined && kind !== "number" && kind !== "flag")
    return [name, kQuantities[kind].format(value), description];
  return [name, unit === undefined || kUnitless.has(unit) ? String(value) : `${value} ${unit}`, description];
}

/** Sums up all frames in one line. */
function framesFact(frames: Result["frames"]): Fact[] {
  if (frames === undefined) return [];
  const parts = Object.entries(frames).map(([name, value]) => `${Number(value).toLocaleString("en")} ${words(name)}`);
  return [["frames", parts.join(", ")]];
}

function beyond(fields: object, known: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !(name in known)));
}

type Unit = readonly [format: (value: number, digits?: number) => string, per: number];

/** Units by which names of results end, with the size of each in base units. */
const kSuffixes: Readonly<Record<string, Unit>> = {
  s: [formatTime, 1e9],
  ms: [formatTime, 1e6],
  us: [formatTime, 1e3],
  ns: [formatTime, 1],
  bps: [formatRate, 1],
  bytes: [formatSize, 1],
};
/** Digits of measured values. */
const kDigits = 5;

/** Turns { model: { delay_us: 4 } } into [["model: delay", "4 us"]]. */
function flatten(fields: object, above: readonly string[] = []): Fact[] {
  return Object.entries(fields).flatMap(([name, value]): Fact[] => {
    const path = [...above, name];
    if (value === undefined) return [];
    if (Array.isArray(value)) return value.length === 0 ? [] : [[title(path), value.join("; ")]];
    if (typeof value === "object" && value !== null) return flatten(value, path);
    return [[title(path), withUnit(path, value)]];
  });
}

/** Takes the last name that ends in a unit: `timer_lateness_us.p99` is a time, too. */
function unitOf(path: readonly string[]): Unit | undefined {
  const suffix = (name: string) => /_([a-z]+)$/.exec(name)?.[1] ?? "";
  const name = path.findLast((one) => Object.hasOwn(kSuffixes, suffix(one)));
  return name === undefined ? undefined : kSuffixes[suffix(name)];
}

function withUnit(path: readonly string[], value: unknown): string {
  const unit = unitOf(path);
  if (typeof value !== "number") return String(value);
  if (unit === undefined) return Number.isInteger(value) ? String(value) : fixed(value);
  const [format, per] = unit;
  return format(Math.round(value * per), kDigits);
}

const title = (path: readonly string[]) =>
  path.map((name) => words(name.replace(new RegExp(`_(${Object.keys(kSuffixes).join("|")})$`), ""))).join(": ");

const words = (name: string) => name.replaceAll("_", " ");
