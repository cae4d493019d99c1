// The `congestion` section of scenarios and daemon files: DCQCN or QCN, each with profiles and parameters of its own.

import { z } from "zod";
import type { Findings } from "./check-device.js";
import {
  type CongestionParameters,
  checkCongestion,
  type DcqcnOverrides,
  kSpelledParameters,
  otherSpelling,
  parameterOf,
  resolveCongestion,
} from "./congestion.js";
import { choice, section } from "./fields.js";
import { type Parsed, parameterFields } from "./parameters.js";
import { PROFILE_NAMES, type ProfileName } from "./profiles.js";
import { checkQcn, QCN_PARAMETERS, type QcnOverrides, type QcnParameters, resolveQcn } from "./qcn.js";
import {
  QCN_PARAMETER_NAMES,
  QCN_PROFILE_NAMES,
  QCN_VARIANTS,
  type QcnParameterName,
  type QcnProfileName,
  type QcnVariant,
} from "./qcn-profiles.js";

export interface DcqcnCongestion {
  algorithm: "dcqcn";
  profile: ProfileName;
  parameters: CongestionParameters;
}

/** With what DCQCN would have run on. */
export type NoCongestion = Omit<DcqcnCongestion, "algorithm"> & { algorithm: "none" };

export interface QcnCongestion {
  algorithm: "qcn";
  profile: QcnProfileName;
  variant: QcnVariant;
  parameters: QcnParameters;
}

export type Congestion = DcqcnCongestion | NoCongestion | QcnCongestion;

const DEFAULT_PROFILE: ProfileName = "paper-sigcomm15";
const DEFAULT_QCN_PROFILE: QcnProfileName = "802.1qau";

const isQcnParameter = (name: string): name is QcnParameterName => name in QCN_PARAMETERS;
const isQcnProfile = (name: string): name is QcnProfileName => (QCN_PROFILE_NAMES as readonly string[]).includes(name);

const qcnParameters = QCN_PARAMETER_NAMES.map((name) => [name, QCN_PARAMETERS[name]] as const);

/** Parameters of either algorithm by their names; of two spellings the first stands for both. */
const parametersSchema = parameterFields([...kSpelledParameters, ...qcnParameters]).transform((written, context) => {
  const result: Record<string, Parsed> = {};
  for (const [spelling, value] of Object.entries(written)) {
    if (value === undefined) continue;
    const name = parameterOf(spelling);
    if (name !== undefined && name in result) {
      const hint = `${name} and ${otherSpelling(name)} are the same parameter`;
      context.addIssue({ code: "custom", message: "is given twice", path: [spelling], params: { hint }, input: value });
    }
    result[name ?? spelling] = value;
  }
  return result;
});

export const congestionSchema = section({
  algorithm: choice(
    "Congestion control of the hosts; `qcn` also needs `switch.qcn`, `none` leaves PFC alone.",
    ["dcqcn", "qcn", "none"],
    "dcqcn",
  ),
  profile: z
    .enum([...PROFILE_NAMES, ...QCN_PROFILE_NAMES])
    .optional()
    .meta({
      description: `Named set of parameters; the sources disagree, see parameters.md. Default: \`${DEFAULT_PROFILE}\`; of QCN \`${DEFAULT_QCN_PROFILE}\`.`,
    }),
  variant: z.enum(QCN_VARIANTS).optional().meta({
    description:
      "Of QCN: the standard's; one timer in the place of byte counter and timer; or additive increase. Default: `qcn`.",
  }),
  parameters: parametersSchema.optional().meta({
    description:
      "Overrides of the profile: of DCQCN by their mlx5 names (both `rpg_time_reset` and `rp_time_reset`), of QCN by their MIB names (`rpgTimeReset`).",
  }),
});

type CongestionInput = z.output<typeof congestionSchema>;

/** `input` has its defaults; percentages are of `lineRate`, bit/s. What belongs to another algorithm is a problem. */
export function resolveCongestionSection(input: CongestionInput, lineRate: number, found: Findings): Congestion {
  const { algorithm = "dcqcn", profile, variant, parameters = {} } = input;
  const dcqcn: DcqcnOverrides = {};
  const qcn: QcnOverrides = {};
  for (const [name, value] of Object.entries(parameters)) {
    if (isQcnParameter(name)) qcn[name] = value;
    else Object.assign(dcqcn, { [name]: value });
  }
  if (algorithm !== "none") refuseOthers(input, algorithm, Object.keys(algorithm === "qcn" ? dcqcn : qcn), found);
  if (algorithm === "qcn") {
    const own = profile !== undefined && isQcnProfile(profile) ? profile : DEFAULT_QCN_PROFILE;
    const chosen = variant ?? "qcn";
    return { algorithm, profile: own, variant: chosen, parameters: resolveQcn(own, chosen, qcn, lineRate) };
  }
  const own = profile === undefined || isQcnProfile(profile) ? DEFAULT_PROFILE : profile;
  return { algorithm, profile: own, parameters: resolveCongestion(own, dcqcn, lineRate) };
}

function refuseOthers(
  { profile, variant }: CongestionInput,
  algorithm: "dcqcn" | "qcn",
  foreign: readonly string[],
  found: Findings,
): void {
  const [other, names] =
    algorithm === "qcn" ? (["DCQCN", QCN_PROFILE_NAMES] as const) : (["QCN", PROFILE_NAMES] as const);
  const change = `algorithm: ${other.toLowerCase()}`;
  if (profile !== undefined && isQcnProfile(profile) !== (algorithm === "qcn")) {
    found.problem(
      ["congestion", "profile"],
      `${profile} is a profile of ${other}`,
      `use ${names.join(", ")}, or ${change}`,
    );
  }
  for (const name of foreign) {
    const path = ["congestion", "parameters", name];
    found.problem(path, `is a parameter of ${other}`, `use those of ${algorithm.toUpperCase()}, or ${change}`);
  }
  if (variant !== undefined && algorithm !== "qcn") {
    found.problem(["congestion", "variant"], `${variant} is a variant of QCN`, `leave it out, or use ${change}`);
  }
}

/** `lineRate` of the slowest host, bit/s. */
export function checkCongestionSection(congestion: Congestion, lineRate: number, found: Findings): void {
  if (congestion.algorithm === "none") return;
  const { problems, warnings } =
    congestion.algorithm === "qcn"
      ? checkQcn(congestion.parameters, lineRate)
      : checkCongestion(congestion.parameters, lineRate);
  for (const { path, message, hint } of problems) found.problem(path, message, hint);
  for (const warning of warnings) found.warn(warning);
}

/** What results and tables call it: `none`, the profile, and the variant where it is not the standard's. */
export function profileText(congestion: Congestion): string {
  if (congestion.algorithm === "none") return "none";
  if (congestion.algorithm === "dcqcn" || congestion.variant === "qcn") return congestion.profile;
  return `${congestion.profile} ${congestion.variant}`;
}
