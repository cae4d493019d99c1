// DCQCN parameters: what a scenario may write, and what the reaction and notification points run on.
import { z } from "zod";
import { type Problem, WeirError } from "./error.js";
import { choice, section, showValue } from "./fields.js";
import {
  type DcqcnForm,
  PARAMETER_NAMES,
  type ParameterInput,
  type ParameterName,
  PROFILE_NAMES,
  PROFILES,
  type ProfileName,
} from "./profiles.js";
import { formatRate, formatSize, formatTime, parseFraction, parseRate, parseSize, parseTime } from "./units.js";

/** DCQCN parameters in base units, as the scenario means them (before any time scale). */
export interface CongestionParameters {
  form: DcqcnForm;
  /** T: ns between increases by time. */
  rpg_time_reset: number;
  /** B: bytes between increases by bytes; 0 = no byte counter. */
  rpg_byte_reset: number;
  /** F: increases of one kind before fast recovery ends. */
  rpg_threshold: number;
  /** R_AI, bit/s. */
  rpg_ai_rate: number;
  /** R_HAI, bit/s. */
  rpg_hai_rate: number;
  /** bit/s; 0 = port speed. */
  rpg_max_rate: number;
  /** bit/s. */
  rpg_min_rate: number;
  /** One cut leaves at least this fraction of the rate. */
  rpg_min_dec_fac: number;
  /** Gain of alpha: g = 1 - dce_tcp_g / 1024. */
  g: number;
  /** R_C <- R_C (1 - rate_decrease_factor alpha): 1024 / 2^rpg_gd, which is 0.5 for 11. */
  rate_decrease_factor: number;
  /** K: ns between decays of alpha. */
  dce_tcp_rtt: number;
  /** ns between two cuts; 0 = every CNP cuts. */
  rate_reduce_monitor_period: number;
  /** alpha at the start, 0..1. */
  initial_alpha_value: number;
  clamp_tgt_rate: boolean;
  clamp_tgt_rate_after_time_inc: boolean;
  /** bit/s; 0 = no override. */
  rate_to_set_on_first_cnp: number;
  /** Step i of hyper increase adds i R_HAI (QCN) rather than R_HAI. */
  hyper_increase_scales: boolean;
  /** N: ns between two CNPs of one flow (notification point). */
  min_time_between_cnps: number;
}

type Parsed = number | boolean | { ofLine: number };

interface Parameter {
  description: string;
  /** What a plain number means. */
  unit: string;
  range: string;
  parse: (input: ParameterInput) => Parsed | undefined;
}

const within = (value: number, min: number, max: number) => (value >= min && value <= max ? value : undefined);

function timeParameter(description: string, min: number, max: number): Parameter {
  const parse = (input: ParameterInput) =>
    typeof input === "boolean"
      ? undefined
      : within(typeof input === "number" ? parseTime(input * 1e3) : parseTime(input), min, max);
  return { description, unit: "us", range: `${formatTime(min)} to ${formatTime(max)}`, parse };
}

function rateParameter(description: string, min: number): Parameter {
  const max = 10e12;
  const parse = (input: ParameterInput) => {
    if (typeof input === "boolean") return undefined;
    if (typeof input === "string" && input.trim().endsWith("%")) return { ofLine: parseFraction(input) };
    return within(typeof input === "number" ? parseRate(input * 1e6) : parseRate(input), min, max);
  };
  return { description, unit: "Mb/s", range: `${formatRate(min)} to ${formatRate(max)}, or % of line rate`, parse };
}

function numberParameter(description: string, unit: string, min: number, max: number, integer = true): Parameter {
  const parse = (input: ParameterInput) =>
    typeof input === "number" && (!integer || Number.isInteger(input)) ? within(input, min, max) : undefined;
  return { description, unit, range: `${min} to ${max}`, parse };
}

function flagParameter(description: string): Parameter {
  const parse = (input: ParameterInput) =>
    input === true || input === 1 ? true : input === false || input === 0 ? false : undefined;
  return { description, unit: "", range: "true or false", parse };
}

/** Meaning, unit and range of each parameter. */
export const PARAMETERS: Record<ParameterName, Parameter> = {
  rpg_time_reset: timeParameter("T: time between rate increases while no CNP comes.", 1_000, 10e9),
  rpg_byte_reset: {
    description: "B: bytes sent between rate increases while no CNP comes; 0 switches the byte counter off.",
    unit: "bytes",
    range: `0 B to ${formatSize(1e12)}`,
    parse: (input) => (typeof input === "boolean" ? undefined : within(parseSize(input), 0, 1e12)),
  },
  rpg_threshold: numberParameter("F: rate increases of one kind before fast recovery ends.", "count", 1, 31),
  rpg_ai_rate: rateParameter("R_AI: step of the target rate in additive increase.", 0),
  rpg_hai_rate: rateParameter("R_HAI: step of the target rate in hyper increase.", 0),
  rpg_max_rate: rateParameter("Highest rate of the limiter; 0 means port speed.", 0),
  rpg_min_rate: rateParameter("Lowest rate of the limiter.", 1_000),
  rpg_gd: numberParameter(
    "Cut: R_C <- R_C (1 - alpha 1024 / 2^rpg_gd); 11 is the paper's 1 - alpha / 2.",
    "log2",
    10,
    15,
  ),
  rpg_min_dec_fac: {
    description: "One cut leaves at least this part of the rate.",
    unit: "%",
    range: "0% to 100%",
    parse: (input) =>
      typeof input === "boolean" ? undefined : parseFraction(typeof input === "number" ? input / 100 : input),
  },
  dce_tcp_g: numberParameter(
    "Filter of alpha: alpha <- (dce_tcp_g / 1024) alpha, plus 1 - dce_tcp_g / 1024 with CNP. The paper's g is 1 - dce_tcp_g / 1024: 1020 is g = 1/256.",
    "1/1024",
    0,
    1024,
    false,
  ),
  dce_tcp_rtt: timeParameter("K: time after which alpha decays while no CNP comes.", 1_000, 10e9),
  rate_reduce_monitor_period: timeParameter("Time between two cuts at least; 0 means that every CNP cuts.", 0, 10e9),
  initial_alpha_value: numberParameter("alpha at the start; 1024 is 1.", "1/1024", 0, 1024, false),
  clamp_tgt_rate: flagParameter("Every cut also sets the target rate to the rate before it."),
  clamp_tgt_rate_after_time_inc: flagParameter("The same, if the last increase was by time."),
  rate_to_set_on_first_cnp: rateParameter("Rate set at the first CNP; 0 means no override.", 0),
  hyper_increase_scales: flagParameter(
    "Step i of hyper increase adds i R_HAI (QCN), not always R_HAI. Not an mlx5 name.",
  ),
  min_time_between_cnps: timeParameter("N: least time between two CNPs of one flow (notification point).", 0, 10e9),
};

/** mlx5's other spelling, from debugfs `cc_params/`: `rp_time_reset` for `rpg_time_reset`. */
export function otherSpelling(name: ParameterName): string | undefined {
  if (name === "hyper_increase_scales") return undefined;
  if (name === "min_time_between_cnps") return `np_${name}`;
  if (name === "clamp_tgt_rate_after_time_inc") return "rp_clamp_tgt_rate_ati";
  return name.startsWith("rpg_") ? name.replace("rpg_", "rp_") : `rp_${name}`;
}

function parameterSchema(name: ParameterName) {
  const { description, unit, range, parse } = PARAMETERS[name];
  const number = ["us", "Mb/s", "bytes", "%"].includes(unit) ? `; a plain number is in ${unit}` : "";
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

const spellings = new Map<string, ParameterName>();
for (const name of PARAMETER_NAMES) {
  spellings.set(name, name);
  const other = otherSpelling(name);
  if (other !== undefined) spellings.set(other, name);
}

type ParsedParameters = Partial<Record<ParameterName, Parsed>>;

export const parametersSchema = section(
  Object.fromEntries([...spellings].map(([spelling, name]) => [spelling, parameterSchema(name)])),
).transform((written, context): ParsedParameters => {
  const result: ParsedParameters = {};
  for (const [spelling, value] of Object.entries(written)) {
    const name = spellings.get(spelling);
    if (name === undefined || value === undefined) continue;
    if (name in result) {
      const hint = `${name} and ${otherSpelling(name)} are the same parameter`;
      context.addIssue({ code: "custom", message: "is given twice", path: [spelling], params: { hint }, input: value });
    }
    result[name] = value;
  }
  return result;
});

export const congestionSchema = section({
  algorithm: choice("Congestion control of the hosts; `none` leaves PFC alone.", ["dcqcn", "none"], "dcqcn"),
  profile: choice(
    "Named set of parameters; the sources disagree, see parameters.md.",
    PROFILE_NAMES,
    "paper-sigcomm15",
  ),
  parameters: parametersSchema.optional().meta({
    description: "Overrides of the profile, by their mlx5 names (both `rpg_time_reset` and `rp_time_reset`).",
  }),
});

/**
 * The profile with the overrides applied, in base units. `lineRate` (bit/s) is what percentages are of.
 * `overrides` are the output of `parametersSchema`.
 */
export function resolveCongestion(
  profile: ProfileName,
  overrides: ParsedParameters,
  lineRate: number,
): CongestionParameters {
  const written = Object.entries(PROFILES[profile].parameters).map(([name, [value]]) => [name, value]);
  const merged = { ...parametersSchema.parse(Object.fromEntries(written)), ...overrides };
  const number = (name: ParameterName): number => {
    const value = merged[name];
    if (typeof value === "object") return Math.round(value.ofLine * lineRate);
    return Number(value);
  };
  return {
    form: PROFILES[profile].form,
    rpg_time_reset: number("rpg_time_reset"),
    rpg_byte_reset: number("rpg_byte_reset"),
    rpg_threshold: number("rpg_threshold"),
    rpg_ai_rate: number("rpg_ai_rate"),
    rpg_hai_rate: number("rpg_hai_rate"),
    rpg_max_rate: number("rpg_max_rate"),
    rpg_min_rate: number("rpg_min_rate"),
    rpg_min_dec_fac: number("rpg_min_dec_fac"),
    g: 1 - number("dce_tcp_g") / 1024,
    rate_decrease_factor: 1024 / 2 ** number("rpg_gd"),
    dce_tcp_rtt: number("dce_tcp_rtt"),
    rate_reduce_monitor_period: number("rate_reduce_monitor_period"),
    initial_alpha_value: number("initial_alpha_value") / 1024,
    clamp_tgt_rate: merged.clamp_tgt_rate === true,
    clamp_tgt_rate_after_time_inc: merged.clamp_tgt_rate_after_time_inc === true,
    rate_to_set_on_first_cnp: number("rate_to_set_on_first_cnp"),
    hyper_increase_scales: merged.hyper_increase_scales === true,
    min_time_between_cnps: number("min_time_between_cnps"),
  };
}

/** Combinations that cannot work (problems) or are unlikely to be meant (warnings). `lineRate` in bit/s. */
export function checkCongestion(
  p: CongestionParameters,
  lineRate: number,
): { problems: Problem[]; warnings: string[] } {
  const problems: Problem[] = [];
  const warnings: string[] = [];
  const path = (name: ParameterName) => ["congestion", "parameters", name];
  if (p.rpg_min_rate > lineRate) {
    const message = `${formatRate(p.rpg_min_rate)} is greater than the line rate ${formatRate(lineRate)}`;
    problems.push({ path: path("rpg_min_rate"), message, hint: "rpg_min_rate must be at most the line rate" });
  }
  if (p.rpg_max_rate !== 0 && p.rpg_max_rate < p.rpg_min_rate) {
    const message = `${formatRate(p.rpg_max_rate)} is less than rpg_min_rate ${formatRate(p.rpg_min_rate)}`;
    problems.push({ path: path("rpg_max_rate"), message, hint: "rpg_max_rate must be 0 or at least rpg_min_rate" });
  }
  if (p.form === "paper") {
    const interval = formatTime(p.min_time_between_cnps);
    for (const name of ["rpg_time_reset", "dce_tcp_rtt"] as const) {
      if (p[name] > p.min_time_between_cnps) continue;
      warnings.push(
        `congestion: ${name} ${formatTime(p[name])} is not greater than min_time_between_cnps ${interval}: ` +
          "the rate recovers between two CNPs of one congestion",
      );
    }
  }
  return { problems, warnings };
}
