// DCQCN parameters: what a scenario may write, and what the reaction and notification points run on.
import type { Problem } from "../base/error.js";
import { formatRate, formatSize, formatTime, parseSize } from "../base/units.js";
import {
  flagParameter,
  numberParameter,
  numeric,
  type Parameter,
  type Parsed,
  parameterFields,
  percentParameter,
  rateParameter,
  timeParameter,
  within,
} from "./parameters.js";
import { type DcqcnForm, PARAMETER_NAMES, type ParameterName, PROFILES, type ProfileName } from "./profiles.js";

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
  /** At line rate, too, and no release resets it; false: there is none there, and each limiter starts with the initial one. */
  alpha_decays_at_line_rate: boolean;
  clamp_tgt_rate: boolean;
  clamp_tgt_rate_after_time_inc: boolean;
  /** bit/s; 0 = no override. */
  rate_to_set_on_first_cnp: number;
  /** Step i of hyper increase adds i R_HAI (QCN) rather than R_HAI. */
  hyper_increase_scales: boolean;
  /** N: ns between two CNPs of one flow (notification point). */
  min_time_between_cnps: number;
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
  rpg_min_dec_fac: percentParameter("One cut leaves at least this part of the rate."),
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
  alpha_decays_at_line_rate: flagParameter(
    "alpha also decays while a flow sends at line rate, and nothing resets it; without, it starts anew with the first CNP after each time at line rate. Not an mlx5 name.",
  ),
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
  if (name === "hyper_increase_scales" || name === "alpha_decays_at_line_rate") return undefined;
  if (name === "min_time_between_cnps") return `np_${name}`;
  if (name === "clamp_tgt_rate_after_time_inc") return "rp_clamp_tgt_rate_ati";
  return name.startsWith("rpg_") ? name.replace("rpg_", "rp_") : `rp_${name}`;
}

const spellings = new Map<string, ParameterName>();
for (const name of PARAMETER_NAMES) {
  spellings.set(name, name);
  const other = otherSpelling(name);
  if (other !== undefined) spellings.set(other, name);
}

export type DcqcnOverrides = Partial<Record<ParameterName, Parsed>>;

/** The parameter that a field names, in either spelling; undefined: none of DCQCN's. */
export const parameterOf = (spelling: string): ParameterName | undefined => spellings.get(spelling);

/** Every spelling with its parameter. */
export const kSpelledParameters = [...spellings].map(([spelling, name]) => [spelling, PARAMETERS[name]] as const);

const profileSchema = parameterFields(kSpelledParameters);

/** The profile with the overrides applied, in base units. `lineRate` (bit/s) is what percentages are of. */
export function resolveCongestion(
  profile: ProfileName,
  overrides: DcqcnOverrides,
  lineRate: number,
): CongestionParameters {
  const written = Object.entries(PROFILES[profile].parameters).map(([name, [value]]) => [name, value]);
  const merged: DcqcnOverrides = { ...profileSchema.parse(Object.fromEntries(written)), ...overrides };
  const number = (name: ParameterName): number => numeric(merged[name], lineRate);
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
    alpha_decays_at_line_rate: merged.alpha_decays_at_line_rate === true,
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
  if (p.g === 0) {
    const hint = "dce_tcp_g must be less than 1024";
    problems.push({ path: path("dce_tcp_g"), message: "1024 leaves alpha as it is, whatever comes", hint });
  }
  if (p.form === "slotted" && p.rate_reduce_monitor_period === 0) {
    const message = "0 s is no time between two cuts, which this profile looks for CNPs at";
    const hint = "rate_reduce_monitor_period must be greater than 0, or use a profile in which each CNP cuts";
    problems.push({ path: path("rate_reduce_monitor_period"), message, hint });
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
