/** Holds the statements of a paper against what was measured. */
import { fixed } from "../../src/result/report/format.js";
import { median } from "../../src/result/statistics.js";
import type {
  Cause,
  Check,
  Clock,
  Experiment,
  Observation,
  QuantityCheck,
  Statement,
  TraceCheck,
  TraceValues,
} from "./experiment.js";
import { meanDifference } from "./trace.js";

/** agrees, differs: in the place of holds and falls short, where Weir is held against Weir and not against the paper. */
export const RULINGS = ["holds", "falls short", "agrees", "differs", "not judged"] as const;
export type Ruling = (typeof RULINGS)[number];

/** One quantity of a statement on one clock. */
export interface Finding {
  quantity: string;
  /** "queue, mean 33.10 KB"; of several seeds the median, and from where to where they go. */
  measured: string;
  /** "30 to 36 KB"; "" where nothing was asked of it on this clock. */
  required: string;
  within: boolean;
}

export interface Verdict {
  clock: Clock;
  ruling: Ruling;
  findings: Finding[];
  /** Reason for which it was not judged. */
  why?: string;
  /** Cause for which it falls short. */
  cause?: Cause;
}

export interface JudgedStatement extends Statement {
  /** It compares real frames with virtual time, which run the same code: that says nothing of the paper. */
  itself: boolean;
  verdicts: Verdict[];
}

const kUnexplained: Cause = {
  id: "unexplained",
  by: "us",
  what: "Why is not known.",
  proof: "nobody looked, or nothing was found",
};

/** Evidence of a clock: an observation, or why there is none; `doubt` is why its figures do not count. */
export interface ClockEvidence {
  clock: Clock;
  observation?: Observation;
  doubt?: string;
}

/** Every statement on every clock of `evidence`. */
export function judge(experiment: Experiment, evidence: readonly ClockEvidence[]): JudgedStatement[] {
  return experiment.statements.map((statement) => ({
    ...statement,
    itself: comparesItself(statement),
    verdicts: evidence.map((one) => judgeOn(one, statement, { experiment, evidence })),
  }));
}

/** Wire and virtual time are one core; only the model is written independently of it. */
export function comparesItself({ checks }: Pick<Statement, "checks">): boolean {
  return checks.some((check: Check) => {
    const clock = "trace" in check ? check.clock : check.near?.clock;
    return clock !== undefined && clock !== "model";
  });
}

function causeOf({ cause = kUnexplained }: Statement, clock: Clock): Cause {
  return "by" in cause ? cause : (cause[clock] ?? kUnexplained);
}

interface Context {
  experiment: Experiment;
  evidence: readonly ClockEvidence[];
}

function judgeOn(own: ClockEvidence, statement: Statement, context: Context): Verdict {
  const { clock, observation, doubt } = own;
  const open = (why: string, findings: Finding[] = []): Verdict => ({ clock, ruling: "not judged", findings, why });
  if (statement.checks.length === 0) return open(statement.remark ?? "nothing that Weir measures");
  if (clock === "model" && comparesItself(statement)) return open("compares real frames with virtual time");
  if (observation === undefined) return open(doubt ?? "not run");
  const checked = statement.checks.map((check) =>
    "trace" in check ? compare(check, own, observation, context) : hold(check, own, observation, context),
  );
  const findings = checked.flatMap(({ finding }) => (finding === undefined ? [] : [finding]));
  // Figures are shown even where they do not count.
  if (doubt !== undefined) return open(doubt, findings);
  const [missing] = checked.flatMap(({ missing: why }) => (why === undefined ? [] : [why]));
  if (missing !== undefined) return open(missing, findings);
  if (findings.length === 0) return open("there is nothing to judge", findings);
  const met = findings.every(({ within }) => within);
  if (comparesItself(statement)) return { clock, ruling: met ? "agrees" : "differs", findings };
  return met
    ? { clock, ruling: "holds", findings }
    : { clock, ruling: "falls short", findings, cause: causeOf(statement, clock) };
}

interface Checked {
  finding?: Finding;
  /** Reason for which the check says nothing. */
  missing?: string;
}

function hold(
  check: QuantityCheck,
  own: ClockEvidence,
  observation: Observation,
  { experiment, evidence }: Context,
): Checked {
  const quantity = experiment.quantities[check.quantity];
  if (quantity === undefined) throw new Error(`${experiment.id}: no quantity ${check.quantity}`);
  const value = observation.values[check.quantity];
  if (value === undefined) return { missing: `${quantity.label}: not measured on ${own.clock}` };
  const each = (observation.seeds ?? []).flatMap(({ values }) => values[check.quantity] ?? []);
  const measured = `${quantity.label} ${showSeeds(value, each, quantity.unit)}`;
  const finding = (required: string, within: boolean): Checked => ({
    finding: { quantity: check.quantity, measured, required, within },
  });
  if (check.near === undefined) {
    const bounds = (observation.seeds !== undefined && check.by_chance) || check;
    const { min = Number.NEGATIVE_INFINITY, max = Number.MAX_VALUE } = bounds;
    return finding(showBounds(bounds, quantity.unit), value >= min && value <= max);
  }
  const { clock, within, margin } = check.near;
  if (clock === own.clock) {
    return { missing: `says how the other clock compares with ${clock}` };
  }
  const other = evidence.find((one) => one.clock === clock);
  const reference = other?.observation?.values[check.quantity];
  if (reference === undefined || other?.doubt !== undefined) {
    return { ...finding("", true), missing: `needs ${clock} as well: --on all` };
  }
  const most = Math.max(Math.abs(reference) * within, margin);
  // Two that never happened agree.
  const close = value === reference || Math.abs(value - reference) <= most;
  return finding(`${showValue(reference, quantity.unit)} +- ${fixed(most)} (${clock})`, close);
}

function compare(
  check: TraceCheck,
  own: ClockEvidence,
  observation: Observation,
  { experiment, evidence }: Context,
): Checked {
  const { trace: name, clock, most } = check;
  const trace = experiment.traces?.[name];
  if (trace === undefined) throw new Error(`${experiment.id}: no trace ${name}`);
  const values = observation.traces?.[name];
  if (values === undefined) return { missing: `${trace.title}: not measured on ${own.clock}` };
  if (clock === own.clock) return { missing: `says how the other clock compares with ${clock}` };
  const other = evidence.find((one) => one.clock === clock);
  const reference = other?.observation?.traces?.[name];
  if (reference === undefined || other?.doubt !== undefined) return { missing: `needs ${clock} as well: --on all` };
  const references = tracesOf(other?.observation, name);
  const each = tracesOf(observation, name)
    .flatMap((one) => references.map((another) => meanDifference(one, another, trace.x_range)))
    .filter((difference) => !Number.isNaN(difference));
  if (each.length === 0) return { missing: `${trace.title}: nothing in common with ${clock}` };
  const difference = median(each);
  const measured = `${trace.title}, mean difference from ${clock} ${showSeeds(difference, each, trace.unit)}`;
  const required = `at most ${showValue(most, trace.unit)}`;
  return { finding: { quantity: name, measured, required, within: difference <= most } };
}

/** Curves of each seed, if there are several. */
function tracesOf(observation: Observation | undefined, name: string): TraceValues[] {
  const each = (observation?.seeds ?? []).flatMap(({ traces }) => traces?.[name] ?? []);
  const own = observation?.traces?.[name];
  return each.length > 0 || own === undefined ? each : [own];
}

/** "8.25 s, with 10 seeds 2.80 to 15.00"; of one seed "8.25 s". */
export function showSeeds(value: number | undefined, seeds: readonly number[], unit: string): string {
  if (seeds.length < 2) return showValue(value, unit);
  const [least, most] = [Math.min(...seeds), Math.max(...seeds)].map((one) => showValue(one, ""));
  if (least === most) return `${showValue(value, unit)}, with each of ${seeds.length} seeds`;
  return `${showValue(value, unit)}, with ${seeds.length} seeds ${least} to ${most}`;
}

/** "33.10 KB"; "not in the run" for what did not happen. */
export function showValue(value: number | undefined, unit: string): string {
  if (value === undefined) return "-";
  if (value === Number.POSITIVE_INFINITY) return "not in the run";
  return unit === "" ? fixed(value) : `${fixed(value)} ${unit}`;
}

function showBounds({ min, max }: Pick<QuantityCheck, "min" | "max">, unit: string): string {
  const suffix = unit === "" ? "" : ` ${unit}`;
  if (min !== undefined && max !== undefined) {
    return min === max ? `${fixed(min)}${suffix}` : `${fixed(min)} to ${fixed(max)}${suffix}`;
  }
  return min === undefined ? `at most ${fixed(max)}${suffix}` : `at least ${fixed(min)}${suffix}`;
}
