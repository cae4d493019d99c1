// Named sets of QCN parameters, each value with its source. They are those of a reaction point group; what a switch runs on
// (cpQSp, cpWeight, cpSampleBase) is under `switch.qcn`.
import type { ParameterInput } from "./parameters.js";

/** Names are those of IEEE8021-CN-MIB (802.1Q clause 17.7.13), without the prefix `ieee8021Cn`. */
export const QCN_PARAMETER_NAMES = [
  "rpgTimeReset",
  "rpgByteReset",
  "rpgThreshold",
  "rpgAiRate",
  "rpgHaiRate",
  "rpgMaxRate",
  "rpgMinRate",
  "rpgGd",
  "rpgMinDecFac",
] as const;
export type QcnParameterName = (typeof QCN_PARAMETER_NAMES)[number];

export const QCN_PROFILE_NAMES = ["802.1qau", "netfpga", "shu"] as const;
export type QcnProfileName = (typeof QCN_PROFILE_NAMES)[number];

export const QCN_VARIANTS = ["qcn", "qcn-t", "qcn-aimd"] as const;
/**
 * `qcn`: byte counter and timer (802.1Qau). `qcn-t`: one shorter timer in the place of both. `qcn-aimd`: no recovery, the rate
 * grows by R_AI each cycle of the byte counter. The latter two are of Shu et al.
 */
export type QcnVariant = (typeof QCN_VARIANTS)[number];

export interface QcnProfile {
  title: string;
  /** Value (a number means the MIB's unit: ms, bytes, Mb/s, log2, %) and where it is from. */
  parameters: Record<QcnParameterName, readonly [value: ParameterInput, source: string]>;
}

const MIB = "IEEE8021-CN-MIB default";
const KABBANI = "Kabbani and Yasuda";
const SHU = "Shu et al.";

export const QCN_PROFILES: Record<QcnProfileName, QcnProfile> = {
  "802.1qau": {
    title: "IEEE 802.1Qau (802.1Q clauses 30 to 33), for 10 Gb/s",
    parameters: {
      rpgTimeReset: ["15ms", MIB],
      rpgByteReset: ["150KB", MIB],
      rpgThreshold: [5, MIB],
      rpgAiRate: ["5Mbps", MIB],
      rpgHaiRate: ["50Mbps", MIB],
      rpgMaxRate: [0, `${MIB}: the port's speed`],
      rpgMinRate: ["5Mbps", MIB],
      rpgGd: [7, `${MIB}: G_d = 1/128`],
      rpgMinDecFac: ["50%", MIB],
    },
  },
  netfpga: {
    title: "Kabbani and Yasuda, QCN: Implementation and Evaluation on NetFPGA, for 1 Gb/s",
    parameters: {
      rpgTimeReset: ["25ms", `${KABBANI} section 3.2: timer`],
      rpgByteReset: ["150KB", `${KABBANI} section 3.2: byte counter`],
      rpgThreshold: [5, `${KABBANI} section 2: cycles of fast recovery`],
      rpgAiRate: ["0.5Mbps", `${KABBANI} table 2: AI_INC`],
      rpgHaiRate: ["5Mbps", `${KABBANI} table 2: HAI_INC`],
      rpgMaxRate: [0, "line rate"],
      rpgMinRate: ["0.5Mbps", `${KABBANI} section 3.2: least rate of the token bucket`],
      rpgGd: [7, `${KABBANI} table 2: G_d = 1/128`],
      rpgMinDecFac: ["50%", `${KABBANI} section 2: G_d |F_bmax| = 0.5`],
    },
  },
  shu: {
    title: "Shu et al., Analysing Convergence of Quantized Congestion Notification in Data Center Ethernet, for 1 Gb/s",
    parameters: {
      rpgTimeReset: ["15ms", `${SHU} section II: timer`],
      rpgByteReset: ["150KB", `${SHU} section II: byte counter`],
      rpgThreshold: [5, `${SHU} section II`],
      rpgAiRate: ["0.5Mbps", `${SHU} section II: R_AI at 1 Gb/s`],
      rpgHaiRate: ["5Mbps", `${SHU} section II: 10 R_AI`],
      rpgMaxRate: [0, "line rate"],
      rpgMinRate: ["0.5Mbps", "not printed; a tenth of the standard's, as R_AI and R_HAI are at 1 Gb/s"],
      rpgGd: [7, `${SHU} section III: G_d = 1/128`],
      rpgMinDecFac: ["50%", "the standard's; never binding with G_d = 1/128"],
    },
  },
};
