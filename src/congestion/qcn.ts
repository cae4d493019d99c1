// QCN parameters: what a scenario may write, and what the reaction points run on. Equations: native/congestion/qcn_reaction_point.h.
import type { Problem } from "../base/error.js";
import { formatRate, formatSize, parseSize } from "../base/units.js";
import {
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
import {
  QCN_PARAMETER_NAMES,
  QCN_PROFILES,
  type QcnParameterName,
  type QcnProfileName,
  type QcnVariant,
} from "./qcn_profiles.js";

/** Of a reaction point, in base units, as the scenario means them (before any time scale). */
export interface QcnParameters {
  /** ns between increases by time; half of it after fast recovery. */
  rpgTimeReset: number;
  /** Bytes between increases by bytes; half of them after fast recovery. */
  rpgByteReset: number;
  /** Cycles of byte counter and timer before fast recovery ends. */
  rpgThreshold: number;
  /** Cycles of the timer before hyper-active increase, full and half ones; rpgThreshold but in `qcn-t`. */
  hyperThreshold: number;
  /** R_AI, bit/s. */
  rpgAiRate: number;
  /** R_HAI, bit/s. */
  rpgHaiRate: number;
  /** bit/s; 0 = port speed. */
  rpgMaxRate: number;
  /** bit/s. */
  rpgMinRate: number;
  /** G_d: CR <- CR (1 - G_d |F_b|). */
  gd: number;
  /** One cut leaves at least this fraction of the rate. */
  rpgMinDecFac: number;
}

/** Meaning, unit and range of each parameter. */
export const QCN_PARAMETERS: Record<QcnParameterName, Parameter> = {
  rpgTimeReset: timeParameter(
    "Timer: time between rate increases in fast recovery while no CNM comes; afterwards half of it.",
    1_000,
    100e9,
    "ms",
  ),
  rpgByteReset: {
    description:
      "Byte counter: bytes sent between rate increases in fast recovery while no CNM comes; afterwards half of them.",
    unit: "bytes",
    range: `1 KB to ${formatSize(1e12)}`,
    parse: (input) => (typeof input === "boolean" ? undefined : within(parseSize(input), 1_000, 1e12)),
  },
  rpgThreshold: numberParameter("Cycles of the byte counter or the timer before fast recovery ends.", "count", 1, 31),
  rpgAiRate: rateParameter("R_AI: step of the target rate in active increase.", 0),
  rpgHaiRate: rateParameter("R_HAI: step i of the target rate in hyper-active increase is i times this.", 0),
  rpgMaxRate: rateParameter("Highest rate of the limiter; 0 means port speed.", 0),
  rpgMinRate: rateParameter("Lowest rate of the limiter.", 1_000),
  rpgGd: numberParameter("Cut: CR <- CR (1 - |F_b| / 2^rpgGd), with |F_b| from 1 to 63.", "log2", 1, 15),
  rpgMinDecFac: percentParameter("One cut leaves at least this part of the rate."),
};

export type QcnOverrides = Partial<Record<QcnParameterName, Parsed>>;

const profileSchema = parameterFields(QCN_PARAMETER_NAMES.map((name) => [name, QCN_PARAMETERS[name]] as const));

/**
 * The profile with the overrides applied. `lineRate` (bit/s) is what percentages are of.
 *
 * `qcn-t` has a timer of its own in the place of the profile's: the time in which one of two fair sources sends rpgByteReset
 * (2.4 ms at 1 Gb/s), unless rpgTimeReset is among the overrides. Hyper-active increase begins after rpgThreshold x the profile's
 * timer / t cycles (Shu et al. section VI), 31 at 1 Gb/s. All but the first rpgThreshold last t / 2, so they are over after 43.2 ms, and
 * the first step of R_HAI comes at 44.4 ms: sooner than five cycles of the profile's timer, 75 ms.
 */
export function resolveQcn(
  profile: QcnProfileName,
  variant: QcnVariant,
  overrides: QcnOverrides,
  lineRate: number,
): QcnParameters {
  const written = Object.entries(QCN_PROFILES[profile].parameters).map(([name, [value]]) => [name, value]);
  const standard: QcnOverrides = profileSchema.parse(Object.fromEntries(written));
  const merged = { ...standard, ...overrides };
  const number = (name: QcnParameterName) => numeric(merged[name], lineRate);
  const threshold = number("rpgThreshold");
  const timer = variant === "qcn-t";
  const fairTime = Math.round((16e9 * number("rpgByteReset")) / lineRate);
  const rpgTimeReset = timer && overrides.rpgTimeReset === undefined ? fairTime : number("rpgTimeReset");
  const recovery = numeric(standard.rpgTimeReset, lineRate) * threshold;
  return {
    rpgTimeReset,
    rpgByteReset: number("rpgByteReset"),
    rpgThreshold: threshold,
    hyperThreshold: timer ? Math.max(threshold, Math.round(recovery / rpgTimeReset)) : threshold,
    rpgAiRate: number("rpgAiRate"),
    rpgHaiRate: number("rpgHaiRate"),
    rpgMaxRate: number("rpgMaxRate"),
    rpgMinRate: number("rpgMinRate"),
    gd: 2 ** -number("rpgGd"),
    rpgMinDecFac: number("rpgMinDecFac"),
  };
}

/** Combinations that cannot work (problems) or are unlikely to be meant (warnings). `lineRate` in bit/s. */
export function checkQcn(p: QcnParameters, lineRate: number): { problems: Problem[]; warnings: string[] } {
  const problems: Problem[] = [];
  const warnings: string[] = [];
  const path = (name: QcnParameterName) => ["congestion", "parameters", name];
  if (p.rpgMinRate > lineRate) {
    const message = `${formatRate(p.rpgMinRate)} is greater than the line rate ${formatRate(lineRate)}`;
    problems.push({ path: path("rpgMinRate"), message, hint: "rpgMinRate must be at most the line rate" });
  }
  if (p.rpgMaxRate !== 0 && p.rpgMaxRate < p.rpgMinRate) {
    const message = `${formatRate(p.rpgMaxRate)} is less than rpgMinRate ${formatRate(p.rpgMinRate)}`;
    problems.push({ path: path("rpgMaxRate"), message, hint: "rpgMaxRate must be 0 or at least rpgMinRate" });
  }
  if (p.rpgHaiRate < p.rpgAiRate) {
    warnings.push(
      `congestion: rpgHaiRate ${formatRate(p.rpgHaiRate)} is less than rpgAiRate ${formatRate(p.rpgAiRate)}: ` +
        "hyper-active increase is slower than active increase",
    );
  }
  return { problems, warnings };
}
