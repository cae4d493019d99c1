// QCN (IEEE 802.1Qau) and the parameters of its reaction points. Equations: native/congestion/qcn_reaction_point.h.
import type { Findings } from "../base/findings.js";
import { formatRate } from "../base/units.js";
import type { Algorithm, NativeSetting, Profile } from "./algorithm.js";
import { kQcn } from "./described.js";
import { ofCore } from "./of_core.js";

const kMib = "IEEE8021-CN-MIB default";
const kKabbani = "Kabbani and Yasuda";
const kShu = "Shu et al.";

const profiles = {
  "802.1qau": {
    title: "IEEE 802.1Qau (802.1Q clauses 30 to 33), for 10 Gb/s",
    parameters: {
      rpgTimeReset: ["15ms", kMib],
      rpgByteReset: ["150KB", kMib],
      rpgAiCycle: ["50%", `not in the MIB; ${kKabbani} section 2, of the 10 Gb/s baseline: reduced to half`],
      rpgThreshold: [5, kMib],
      rpgAiRate: ["5Mbps", kMib],
      rpgHaiRate: ["50Mbps", kMib],
      rpgMaxRate: [0, `${kMib}: the port's speed`],
      rpgMinRate: ["5Mbps", kMib],
      rpgGd: [7, `${kMib}: G_d = 1/128`],
      rpgMinDecFac: ["50%", kMib],
    },
  },
  netfpga: {
    title: "Kabbani and Yasuda, QCN: Implementation and Evaluation on NetFPGA, for 1 Gb/s",
    parameters: {
      rpgTimeReset: ["25ms", `${kKabbani} section 3.2: timer`],
      rpgByteReset: ["150KB", `${kKabbani} section 3.2: byte counter`],
      rpgAiCycle: ["50%", `${kKabbani} section 2: half the cycles in active increase`],
      rpgThreshold: [5, `${kKabbani} section 2: cycles of fast recovery`],
      rpgAiRate: ["0.5Mbps", `${kKabbani} table 2: AI_INC`],
      rpgHaiRate: ["5Mbps", `${kKabbani} table 2: HAI_INC`],
      rpgMaxRate: [0, "line rate"],
      rpgMinRate: ["0.5Mbps", `${kKabbani} section 3.2: least rate of the token bucket`],
      rpgGd: [7, `${kKabbani} table 2: G_d = 1/128`],
      rpgMinDecFac: ["50%", `${kKabbani} section 2: G_d |F_bmax| = 0.5`],
    },
  },
  shu: {
    title: "Shu et al., Analysing Convergence of Quantized Congestion Notification in Data Center Ethernet, for 1 Gb/s",
    parameters: {
      rpgTimeReset: ["15ms", `${kShu} section II: timer`],
      rpgByteReset: ["150KB", `${kShu} section II: byte counter`],
      rpgAiCycle: ["50%", `${kShu} section II: 75 KB and 7.5 ms`],
      rpgThreshold: [5, `${kShu} section II`],
      rpgAiRate: ["0.5Mbps", `${kShu} section II: R_AI at 1 Gb/s`],
      rpgHaiRate: ["5Mbps", `${kShu} section II: 10 R_AI`],
      rpgMaxRate: [0, "line rate"],
      rpgMinRate: ["0.5Mbps", "not printed; a tenth of the standard's, as R_AI and R_HAI are at 1 Gb/s"],
      rpgGd: [7, `${kShu} section III: G_d = 1/128`],
      rpgMinDecFac: ["50%", "the standard's; never binding with G_d = 1/128"],
    },
  },
} satisfies Record<string, Profile<keyof typeof kQcn>>;

/**
 * `qcn`: byte counter and timer (802.1Qau). `qcn-t`: one shorter timer in the place of both. `qcn-aimd`: no recovery, the rate
 * grows by R_AI each cycle of the byte counter. The latter two are of Shu et al. Native names.
 */
const kVariants = { qcn: "qcn", "qcn-t": "timer", "qcn-aimd": "aimd" } as const;
export type QcnVariant = keyof typeof kVariants;

/** Priorities, each of which may be a CNPV. */
const kCnpvs = [0, 1, 2, 3, 4, 5, 6, 7] as const;

/** Time between two fillings of a token bucket (Kabbani and Yasuda section 3.2), ns. */
const kTokenTick = 16_000;

/**
 * `qcn-t` has a timer of its own in the place of the profile's: the time in which one of two fair sources sends rpgByteReset
 * (2.4 ms at 1 Gb/s), unless rpgTimeReset is among the overrides. Hyper-active increase begins after rpgThreshold x the profile's
 * timer / t cycles (Shu et al. section VI), 31 at 1 Gb/s. All but the first rpgThreshold last t / 2, so they are over after 43.2 ms, and
 * the first step of R_HAI comes at 44.4 ms: sooner than five cycles of the profile's timer, 75 ms.
 */
const core = ofCore("qcn", kQcn, ({ rpgGd, rpgThreshold, ...same }, { variant, lineRate, standard, overridden }) => {
  const timer = variant === "qcn-t";
  const fairTime = Math.round((16e9 * same.rpgByteReset) / lineRate);
  const rpgTimeReset = timer && !overridden.has("rpgTimeReset") ? fairTime : same.rpgTimeReset;
  const recovery = standard.rpgTimeReset * rpgThreshold;
  return {
    ...same,
    rpgTimeReset,
    rpgThreshold,
    /** Cycles of the timer before hyper-active increase, full and half ones. */
    hyperThreshold: timer ? Math.max(rpgThreshold, Math.round(recovery / rpgTimeReset)) : rpgThreshold,
    /** G_d in CR <- CR (1 - G_d |F_b|). */
    gd: 2 ** -rpgGd,
  };
});

/** Parameters that reaction points run on, in base units. */
export type QcnParameters = ReturnType<typeof core.resolve>;

/**
 * Combinations that cannot work (problems) or are unlikely to be meant (warnings). `lineRate` in bit/s; `at`: where the parameters
 * are written.
 */
export function checkRpg(p: QcnParameters, lineRate: number, at: readonly string[], found: Findings): void {
  const problem = (name: keyof typeof kQcn, message: string, hint: string) =>
    found.problem([...at, name], message, hint);
  if (p.rpgMinRate > lineRate) {
    const message = `${formatRate(p.rpgMinRate)} is greater than the line rate ${formatRate(lineRate)}`;
    problem("rpgMinRate", message, "rpgMinRate must be at most the line rate");
  }
  if (p.rpgMaxRate !== 0 && p.rpgMaxRate < p.rpgMinRate) {
    const message = `${formatRate(p.rpgMaxRate)} is less than rpgMinRate ${formatRate(p.rpgMinRate)}`;
    problem("rpgMaxRate", message, "rpgMaxRate must be 0 or at least rpgMinRate");
  }
  if (p.rpgHaiRate < p.rpgAiRate) {
    found.warn(
      `${at.join(".")}: rpgHaiRate ${formatRate(p.rpgHaiRate)} is less than rpgAiRate ${formatRate(p.rpgAiRate)}: ` +
        "hyper-active increase is slower than active increase",
    );
  }
}

const check = (p: QcnParameters, lineRate: number, found: Findings) =>
  checkRpg(p, lineRate, ["congestion", "parameters"], found);

const doc = `With \`algorithm: qcn\` the parameters are those of a reaction point group, by their names in IEEE8021-CN-MIB without the prefix
\`ieee8021Cn\`; a plain number means the MIB's unit. The default profile is \`802.1qau\`. Those of congestion points (\`cpQSp\`,
\`cpWeight\`, \`cpSampleBase\`, \`cpMinHeaderOctets\`) are of the switch: [\`switch.qcn\`](scenario.md#switchqcn). What they do is in
[qcn.md](../guides/qcn.md). Priorities of a NIC may have their own: [\`host.qcn.reaction_point_groups\`](scenario.md#hostqcn).

\`congestion.variant\` changes the algorithm, with the parameters of any profile:

| \`variant\` | rates increase |
|---|---|
| \`qcn\` | by byte counter and timer, as 802.1Qau has it |
| \`qcn-t\` | by a timer alone (Shu et al. section VI). \`rpgTimeReset\` is then the time in which one of two fair sources sends \`rpgByteReset\` at the slowest host's line rate (2.4 ms at 1 Gb/s), unless it is set; hyper-active increase begins after as many cycles of that timer as fit in \`rpgThreshold\` times the profile's \`rpgTimeReset\`: 31, which take 43 ms, as all but the first \`rpgThreshold\` last \`rpgAiCycle\`, half as long |
| \`qcn-aimd\` | by \`rpgAiRate\` each \`rpgByteReset\` bytes, without fast recovery (Shu et al. section V) |`;

export const qcn = {
  title: "QCN",
  needs: "also needs `switch.qcn`",
  names: "their MIB names (`rpgTimeReset`)",
  feedback: "CNM",
  // No alpha: its messages say how bad congestion is.
  state: { rates: true, window: false, alpha: false },
  ...core,
  tuned: ["rpgAiRate", "rpgTimeReset", "rpgByteReset", "rpgGd"],
  profiles,
  variants: {
    description: "the standard's; one timer in the place of byte counter and timer; or additive increase",
    names: Object.keys(kVariants) as QcnVariant[],
  },
  doc,
  check,
  feedbackInterval: (_: QcnParameters, sampling: number) => sampling,
  native(resolved: QcnParameters, setting: NativeSetting, variant: QcnVariant) {
    const { seed, component, qcn } = setting;
    const group = (p: object) => ({ variant: kVariants[variant], ...core.native(p as QcnParameters).qcn });
    return {
      qcn: group(resolved),
      ...(qcn.groups.size > 0 && { rpgs: kCnpvs.map((priority) => group(qcn.groups.get(priority) ?? resolved)) }),
      cn_priorities: qcn.priorities,
      flows: qcn.flows === "queue-pair" ? ("qp" as const) : qcn.flows,
      reaction_points: qcn.reaction_points,
      cn_tag: qcn.cn_tag,
      ...(qcn.notification === "ip" && { cnms_by_ip: true }),
      limiter: qcn.limiter,
      token_bucket: { tick: kTokenTick },
      seed,
      component,
      cnp_interval: 0,
    };
  },
} as const satisfies Algorithm;
