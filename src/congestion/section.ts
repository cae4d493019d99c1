// The `congestion` section of scenarios and daemon files: DCQCN, QCN or DCTCP, each with parameters of its own, the first two with
// profiles.

import { z } from "zod";
import { choice, section } from "../base/fields.js";
import type { Findings } from "../scenario/check_device.js";
import {
  type CongestionParameters,
  checkCongestion,
  type DcqcnOverrides,
  kSpelledParameters,
  otherSpelling,
  parameterOf,
  resolveCongestion,
} from "./congestion.js";
import {
  DCTCP_PARAMETER_NAMES,
  DCTCP_PARAMETERS,
  type DctcpOverrides,
  type DctcpParameterName,
  type DctcpParameters,
  resolveDctcp,
} from "./dctcp.js";
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
} from "./qcn_profiles.js";

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

export interface DctcpCongestion {
  algorithm: "dctcp";
  parameters: DctcpParameters;
}

export type Congestion = DcqcnCongestion | NoCongestion | QcnCongestion | DctcpCongestion;

const DEFAULT_PROFILE: ProfileName = "paper-sigcomm15";
const DEFAULT_QCN_PROFILE: QcnProfileName = "802.1qau";

const isQcnParameter = (name: string): name is QcnParameterName => name in QCN_PARAMETERS;
const isDctcpParameter = (name: string): name is DctcpParameterName => name in DCTCP_PARAMETERS;
const isQcnProfile = (name: string): name is QcnProfileName => (QCN_PROFILE_NAMES as readonly string[]).includes(name);

const qcnParameters = QCN_PARAMETER_NAMES.map((name) => [name, QCN_PARAMETERS[name]] as const);
const dctcpParameters = DCTCP_PARAMETER_NAMES.map((name) => [name, DCTCP_PARAMETERS[name]] as const);

/** Parameters of all algorithms by their names; of two spellings the first stands for both. */
const parametersSchema = parameterFields([...kSpelledParameters, ...qcnParameters, ...dctcpParameters]).transform(
  (written, context) => {
    const result: Record<string, Parsed> = {};
    for (const [spelling, value] of Object.entries(written)) {
      if (value === undefined) continue;
      const name = parameterOf(spelling);
      if (name !== undefined && name in result) {
        const hint = `${name} and ${otherSpelling(name)} are the same parameter`;
        context.addIssue({
          code: "custom",
          message: "is given twice",
          path: [spelling],
          params: { hint },
          input: value,
        });
      }
      result[name ?? spelling] = value;
    }
    return result;
  },
);

export const congestionSchema = section({
  algorithm: choice(
    "Congestion control of the hosts; `qcn` also needs `switch.qcn`, `dctcp` needs `transport.type: rc`, `none` leaves PFC alone.",
    ["dcqcn", "qcn", "dctcp", "none"],
    "dcqcn",
  ),
  profile: z
    .enum([...PROFILE_NAMES, ...QCN_PROFILE_NAMES])
    .optional()
    .meta({
      description: `Named set of parameters; the sources disagree, see parameters.md. Default: \`${DEFAULT_PROFILE}\`; of QCN \`${DEFAULT_QCN_PROFILE}\`; DCTCP has none.`,
    }),
  variant: z.enum(QCN_VARIANTS).optional().meta({
    description:
      "Of QCN: the standard's; one timer in the place of byte counter and timer; or additive increase. Default: `qcn`.",
  }),
  parameters: parametersSchema.optional().meta({
    description:
      "Overrides of the profile: of DCQCN by their mlx5 names (both `rpg_time_reset` and `rp_time_reset`), of QCN by their MIB names (`rpgTimeReset`), of DCTCP by those of Linux (`dctcp_shift_g`).",
  }),
});

type CongestionInput = z.output<typeof congestionSchema>;

/** `input` has its defaults; percentages are of `lineRate`, bit/s. What belongs to another algorithm is a problem. */
export function resolveCongestionSection(input: CongestionInput, lineRate: number, found: Findings): Congestion {
  const { algorithm = "dcqcn", profile, variant, parameters = {} } = input;
  const dcqcn: DcqcnOverrides = {};
  const qcn: QcnOverrides = {};
  const dctcp: DctcpOverrides = {};
  for (const [name, value] of Object.entries(parameters)) {
    if (isQcnParameter(name)) qcn[name] = value;
    else if (isDctcpParameter(name)) dctcp[name] = value;
    else Object.assign(dcqcn, { [name]: value });
  }
  if (algorithm !== "none") refuseOthers(input, algorithm, { dcqcn, qcn, dctcp }, found);
  if (algorithm === "dctcp") return { algorithm, parameters: resolveDctcp(dctcp) };
  if (algorithm === "qcn") {
    const own = profile !== undefined && isQcnProfile(profile) ? profile : DEFAULT_QCN_PROFILE;
    const chosen = variant ?? "qcn";
    return { algorithm, profile: own, variant: chosen, parameters: resolveQcn(own, chosen, qcn, lineRate) };
  }
  const own = profile === undefined || isQcnProfile(profile) ? DEFAULT_PROFILE : profile;
  return { algorithm, profile: own, parameters: resolveCongestion(own, dcqcn, lineRate) };
}

type Algorithm = Exclude<Congestion["algorithm"], "none">;
const ALGORITHMS: readonly Algorithm[] = ["dcqcn", "qcn", "dctcp"];

function refuseOthers(
  { profile, variant }: CongestionInput,
  algorithm: Algorithm,
  overrides: Readonly<Record<Algorithm, object>>,
  found: Findings,
): void {
  const own = algorithm.toUpperCase();
  const profiled = profile !== undefined && isQcnProfile(profile) ? "qcn" : "dcqcn";
  if (profile !== undefined && profiled !== algorithm) {
    const names = algorithm === "qcn" ? QCN_PROFILE_NAMES : PROFILE_NAMES;
    const use = algorithm === "dctcp" ? "leave it out: DCTCP has no profiles" : `use ${names.join(", ")}`;
    const message = `${profile} is a profile of ${profiled.toUpperCase()}`;
    found.problem(["congestion", "profile"], message, `${use}, or algorithm: ${profiled}`);
  }
  for (const other of ALGORITHMS.filter((one) => one !== algorithm)) {
    for (const name of Object.keys(overrides[other])) {
      const message = `is a parameter of ${other.toUpperCase()}`;
      found.problem(["congestion", "parameters", name], message, `use those of ${own}, or algorithm: ${other}`);
    }
  }
  if (variant !== undefined && algorithm !== "qcn") {
    const message = `${variant} is a variant of QCN`;
    found.problem(["congestion", "variant"], message, "leave it out, or use algorithm: qcn");
  }
}

/** `lineRate` of the slowest host, bit/s. */
export function checkCongestionSection(congestion: Congestion, lineRate: number, found: Findings): void {
  if (congestion.algorithm === "none" || congestion.algorithm === "dctcp") return;
  const { problems, warnings } =
    congestion.algorithm === "qcn"
      ? checkQcn(congestion.parameters, lineRate)
      : checkCongestion(congestion.parameters, lineRate);
  for (const { path, message, hint } of problems) found.problem(path, message, hint);
  for (const warning of warnings) found.warn(warning);
}

/** What results and tables call it: `none`, `dctcp`, the profile, and the variant where it is not the standard's. */
export function profileText(congestion: Congestion): string {
  if (congestion.algorithm === "none" || congestion.algorithm === "dctcp") return congestion.algorithm;
  if (congestion.algorithm === "dcqcn" || congestion.variant === "qcn") return congestion.profile;
  return `${congestion.profile} ${congestion.variant}`;
}
