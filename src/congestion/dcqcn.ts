// DCQCN (Zhu et al., SIGCOMM 2015) and its parameters. Equations: native/congestion/dcqcn_reaction_point.h.
import type { Findings } from "../base/findings.js";
import { formatRate, formatTime, parseFraction } from "../base/units.js";
import type { Algorithm, PaperSymbol, Profile } from "./algorithm.js";
import { kDcqcn, kNicParameters } from "./described.js";
import { ofCore } from "./of_core.js";
import type { ParameterInput } from "./parameter.js";

/**
 * `paper`: every CNP cuts the rate and raises alpha at once, alpha decays after a time without CNP (SIGCOMM 2015).
 * `slotted`: CNPs only set a bit; cuts and alpha updates happen on free-running timers that look at it (ConnectX-4 and newer).
 */
export type DcqcnForm = "paper" | "slotted";

/** Parameters by the names of mlx5 (`/sys/class/net/<if>/ecn/roce_rp/`), with the notification point's. */
const described = { ...kDcqcn, ...kNicParameters };

const kPaperTable = "paper figure 14";
const kMlx5Dump = "mlx5 firmware default (mlxconfig)";
const kNs3Config = "ns3-rdma config.txt";
const kNs3Code = "ns3-rdma qbb-net-device.cc";
const kHpccConfig = "HPCC config.txt";
const kHpccCode = "HPCC rdma-hw.cc";
const kOtgModel = "OTG models port/rocev2.yaml";
const kOverview = "Mellanox, Understanding DC-QCN Algorithm for RoCE";
const kOverviewDump = `not printed; ${kMlx5Dump}`;

/** The values are QCN's, which all sources but Mellanox's overview follow. */
function increaseAsQcn(source: string) {
  return {
    increase_restarts_counters: [false, source],
    stage_by_increases: [false, source],
    increase_raises_rate: [false, source],
  } as const;
}

/** The sources disagree on "the DCQCN defaults", so every value says where it is from. */
const profiles = {
  "paper-sigcomm15": {
    title: "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
    form: "paper" as DcqcnForm,
    parameters: {
      rpg_time_reset: ["55us", kPaperTable],
      rpg_byte_reset: ["10MB", kPaperTable],
      rpg_threshold: [5, "paper section 3.1, table 2: F"],
      rpg_ai_rate: ["40Mbps", "paper table 2: R_AI"],
      rpg_hai_rate: ["200Mbps", "not printed in the paper; the authors' ns3-rdma config.txt"],
      rpg_max_rate: [0, "line rate"],
      rpg_min_rate: ["10Mbps", "not printed in the paper; low enough not to matter for up to 4000 flows on 40 Gb/s"],
      rpg_gd: [11, "paper equation (1): R_C (1 - alpha/2)"],
      rpg_min_dec_fac: ["50%", "never binding: alpha/2 is at most one half"],
      dce_tcp_g: [1020, "paper figure 14: g = 1/256"],
      dce_tcp_rtt: ["55us", "paper section 3.1: K"],
      rate_reduce_monitor_period: [0, "paper: every CNP cuts; the NP spaces them"],
      initial_alpha_value: [1024, "paper footnote 1: alpha starts at 1"],
      alpha_decays_at_line_rate: [true, "paper section 3.1: equation (2) after K without feedback, at whatever rate"],
      clamp_tgt_rate: [true, "paper equation (1): R_T = R_C"],
      clamp_tgt_rate_after_time_inc: [true, "implied by clamp_tgt_rate"],
      rate_to_set_on_first_cnp: [0, "no override in the paper"],
      hyper_increase_scales: [true, "paper section 3.1 refers to QCN, whose step i of hyper increase adds i R_HAI"],
      ...increaseAsQcn("paper section 3.1, figure 7 and equations (3) and (4), as in QCN"),
      min_time_between_cnps: ["50us", "paper section 3.1: N"],
    },
  },
  mlx5: {
    title: "ConnectX-4 and newer, firmware defaults",
    form: "slotted" as DcqcnForm,
    parameters: {
      rpg_time_reset: ["300us", kMlx5Dump],
      rpg_byte_reset: [32767, kMlx5Dump],
      rpg_threshold: [1, kMlx5Dump],
      rpg_ai_rate: ["5Mbps", kMlx5Dump],
      rpg_hai_rate: ["50Mbps", kMlx5Dump],
      rpg_max_rate: [0, kMlx5Dump],
      rpg_min_rate: ["1Mbps", kMlx5Dump],
      rpg_gd: [11, kMlx5Dump],
      rpg_min_dec_fac: ["50%", kMlx5Dump],
      dce_tcp_g: [1019, kMlx5Dump],
      dce_tcp_rtt: ["1us", kMlx5Dump],
      rate_reduce_monitor_period: ["4us", kMlx5Dump],
      initial_alpha_value: [1023, kMlx5Dump],
      alpha_decays_at_line_rate: [
        false,
        "NVIDIA's DCQCN parameters: the initial value is that at the first CNP for a flow",
      ],
      clamp_tgt_rate: [false, kMlx5Dump],
      clamp_tgt_rate_after_time_inc: [true, kMlx5Dump],
      rate_to_set_on_first_cnp: [0, kMlx5Dump],
      hyper_increase_scales: [false, "HPCC's model of ConnectX-4; the firmware is not published"],
      ...increaseAsQcn("as QCN and HPCC's model of ConnectX-4; the firmware is not published"),
      min_time_between_cnps: ["2us", "mlxconfig shows 0 or 2 by firmware version"],
    },
  },
  "mellanox-overview": {
    title: `${kOverview} Congestion Control, its rules with the firmware's values`,
    form: "slotted" as DcqcnForm,
    parameters: {
      rpg_time_reset: ["300us", kOverviewDump],
      rpg_byte_reset: [32767, kOverviewDump],
      rpg_threshold: [1, kOverviewDump],
      rpg_ai_rate: ["5Mbps", kOverviewDump],
      rpg_hai_rate: ["50Mbps", kOverviewDump],
      rpg_max_rate: [0, kOverviewDump],
      rpg_min_rate: ["1Mbps", kOverviewDump],
      rpg_gd: [11, `${kOverview}: old_rate (1 - alpha/2)`],
      rpg_min_dec_fac: ["50%", "never binding: alpha/2 is at most one half"],
      dce_tcp_g: [1019, kOverviewDump],
      dce_tcp_rtt: ["1us", kOverviewDump],
      rate_reduce_monitor_period: ["4us", kOverviewDump],
      initial_alpha_value: [1023, kOverviewDump],
      alpha_decays_at_line_rate: [false, "not said; as mlx5"],
      clamp_tgt_rate: [true, `${kOverview}: upon rate decrease the rate before it is stored in target_rate`],
      clamp_tgt_rate_after_time_inc: [true, "implied by clamp_tgt_rate"],
      rate_to_set_on_first_cnp: [0, kOverviewDump],
      hyper_increase_scales: [false, `${kOverview}: a constant value`],
      increase_restarts_counters: [true, `${kOverview}: time or bytes since previous rate increase`],
      stage_by_increases: [true, `${kOverview}: the number of rate increase events in the phase`],
      increase_raises_rate: [true, `${kOverview}: the rate is increased by a constant value`],
      min_time_between_cnps: ["2us", "not said; as mlx5"],
    },
  },
  "ns3-rdma": {
    title: "github.com/bobzhuyb/ns3-rdma, the paper authors' simulator as shipped",
    form: "paper" as DcqcnForm,
    parameters: {
      rpg_time_reset: ["60us", kNs3Config],
      rpg_byte_reset: ["300MB", kNs3Config],
      rpg_threshold: [5, kNs3Config],
      rpg_ai_rate: ["40Mbps", kNs3Config],
      rpg_hai_rate: ["200Mbps", kNs3Config],
      rpg_max_rate: [0, "line rate"],
      rpg_min_rate: ["100Mbps", kNs3Config],
      rpg_gd: [11, kNs3Code],
      rpg_min_dec_fac: ["50%", "never binding: alpha/2 is at most one half"],
      dce_tcp_g: [1020, `${kNs3Config}: g = 1/256`],
      dce_tcp_rtt: ["55us", kNs3Config],
      rate_reduce_monitor_period: [0, `${kNs3Code}: every CNP cuts`],
      initial_alpha_value: [512, `${kNs3Code}: alpha starts at 0.5`],
      alpha_decays_at_line_rate: [false, `${kNs3Code}: its timer starts with the first CNP`],
      clamp_tgt_rate: [true, kNs3Config],
      clamp_tgt_rate_after_time_inc: [false, kNs3Config],
      rate_to_set_on_first_cnp: [0, kNs3Code],
      hyper_increase_scales: [true, kNs3Code],
      ...increaseAsQcn(kNs3Code),
      min_time_between_cnps: ["50us", kNs3Config],
    },
  },
  "hpcc-ns3": {
    title: "github.com/alibaba-edu/High-Precision-Congestion-Control, its DCQCN as shipped",
    form: "slotted" as DcqcnForm,
    parameters: {
      rpg_time_reset: ["900us", kHpccConfig],
      rpg_byte_reset: [0, `${kHpccCode}: no byte counter`],
      rpg_threshold: [1, kHpccConfig],
      rpg_ai_rate: ["50Mbps", kHpccConfig],
      rpg_hai_rate: ["100Mbps", kHpccConfig],
      rpg_max_rate: [0, "line rate"],
      rpg_min_rate: ["100Mbps", kHpccConfig],
      rpg_gd: [11, kHpccCode],
      rpg_min_dec_fac: ["50%", "never binding: alpha/2 is at most one half"],
      dce_tcp_g: [1020, `${kHpccConfig}: g = 1/256`],
      dce_tcp_rtt: ["1us", kHpccConfig],
      rate_reduce_monitor_period: ["4us", kHpccConfig],
      initial_alpha_value: [1024, kHpccCode],
      alpha_decays_at_line_rate: [false, `${kHpccCode}: its timer starts with the first CNP`],
      clamp_tgt_rate: [false, kHpccConfig],
      clamp_tgt_rate_after_time_inc: [true, `${kHpccCode}: the first cut after an increase clamps`],
      rate_to_set_on_first_cnp: [0, kHpccCode],
      hyper_increase_scales: [false, kHpccCode],
      ...increaseAsQcn(kHpccCode),
      min_time_between_cnps: [0, `${kHpccCode}: every ACK of a marked packet carries the CNP flag`],
    },
  },
  otg: {
    title: "Open Traffic Generator model of a RoCEv2 port (test equipment)",
    form: "slotted" as DcqcnForm,
    parameters: {
      rpg_time_reset: ["250us", kOtgModel],
      rpg_byte_reset: [32767, kOtgModel],
      rpg_threshold: [25, kOtgModel],
      rpg_ai_rate: ["0.001%", kOtgModel],
      rpg_hai_rate: ["0.001%", kOtgModel],
      rpg_max_rate: [0, "line rate"],
      rpg_min_rate: ["0.002%", kOtgModel],
      rpg_gd: [11, kOtgModel],
      rpg_min_dec_fac: ["90%", `${kOtgModel}: maximum decrement 10%`],
      dce_tcp_g: [1019, kOtgModel],
      dce_tcp_rtt: ["21us", kOtgModel],
      rate_reduce_monitor_period: ["21us", kOtgModel],
      initial_alpha_value: [1023, kOtgModel],
      alpha_decays_at_line_rate: [false, "not in the model; as mlx5"],
      clamp_tgt_rate: [false, kOtgModel],
      clamp_tgt_rate_after_time_inc: [true, "not in the model; mlx5 default"],
      rate_to_set_on_first_cnp: ["0.002%", kOtgModel],
      hyper_increase_scales: [false, "not in the model; as mlx5"],
      ...increaseAsQcn("not in the model; as mlx5"),
      min_time_between_cnps: ["55us", `${kOtgModel}: cnp_delay_timer`],
    },
  },
} satisfies Record<string, Profile<keyof typeof described>>;

/** A gain of 0 would leave alpha as it is. */
const symbols = {
  g: {
    of: "dce_tcp_g",
    parameter: {
      kind: "fraction",
      description: "The paper's g in the place of dce_tcp_g, which is 1024 (1 - g).",
      unit: "",
      range: "more than 0, at most 1, such as 1/256",
      bounds: { min: 0, max: 1, whole: false },
      parse(input: ParameterInput) {
        const g = typeof input === "boolean" ? 0 : parseFraction(input);
        return g > 0 ? 1024 * (1 - g) : undefined;
      },
    },
    write: (value: number) => 1 - value / 1024,
  },
} satisfies Record<string, PaperSymbol>;

const core = ofCore("dcqcn", described, ({ rpg_gd, dce_tcp_g, initial_alpha_value, ...same }, { profile }) => ({
  form: profiles[profile as keyof typeof profiles].form,
  ...same,
  /** Gain of alpha. */
  g: 1 - dce_tcp_g / 1024,
  /** R_C <- R_C (1 - rate_decrease_factor alpha): 0.5 for 11. */
  rate_decrease_factor: 1024 / 2 ** rpg_gd,
  /** A part, 0 to 1. */
  initial_alpha_value: initial_alpha_value / 1024,
}));

export type DcqcnParameterName = keyof typeof described;
/** Parameters of reaction and notification points, in base units; a rate of 0 means line rate, port speed or none. */
export type DcqcnParameters = ReturnType<typeof core.resolve>;

/** Combinations that cannot work (problems) or are unlikely to be meant (warnings). `lineRate` in bit/s. */
function check(p: DcqcnParameters, lineRate: number, found: Findings): void {
  const problem = (name: DcqcnParameterName, message: string, hint: string) =>
    found.problem(["congestion", "parameters", name], message, hint);
  if (p.rpg_min_rate > lineRate) {
    const message = `${formatRate(p.rpg_min_rate)} is greater than the line rate ${formatRate(lineRate)}`;
    problem("rpg_min_rate", message, "rpg_min_rate must be at most the line rate");
  }
  if (p.rpg_max_rate !== 0 && p.rpg_max_rate < p.rpg_min_rate) {
    const message = `${formatRate(p.rpg_max_rate)} is less than rpg_min_rate ${formatRate(p.rpg_min_rate)}`;
    problem("rpg_max_rate", message, "rpg_max_rate must be 0 or at least rpg_min_rate");
  }
  if (p.g === 0) {
    const hint = "dce_tcp_g must be less than 1024";
    problem("dce_tcp_g", "1024 leaves alpha as it is, whatever comes", hint);
  }
  if (p.increase_raises_rate && p.hyper_increase_scales) {
    const message = "a constant value that the rate is increased by does not scale";
    problem("increase_raises_rate", message, "increase_raises_rate needs hyper_increase_scales: false");
  }
  if (p.form === "slotted" && p.rate_reduce_monitor_period === 0) {
    const message = "0 s is no time between two cuts, which this profile looks for CNPs at";
    const hint = "rate_reduce_monitor_period must be greater than 0, or use a profile in which each CNP cuts";
    problem("rate_reduce_monitor_period", message, hint);
  }
  if (p.form === "paper") {
    const interval = formatTime(p.min_time_between_cnps);
    for (const name of ["rpg_time_reset", "dce_tcp_rtt"] as const) {
      if (p[name] > p.min_time_between_cnps) continue;
      found.warn(
        `congestion: ${name} ${formatTime(p[name])} is not greater than min_time_between_cnps ${interval}: ` +
          "the rate recovers between two CNPs of one congestion",
      );
    }
  }
}

const doc = `Parameters of DCQCN carry the names that mlx5 gives them; both spellings, of
\`/sys/class/net/<if>/ecn/roce_rp/\` and of debugfs \`cc_params/\`, are understood. The sources disagree about "the
DCQCN defaults", so there are profiles, and every result names the profile it was made with. The default profile is
\`paper-sigcomm15\`. A value in \`congestion.parameters\` overrides the profile's.

A plain number means the unit of mlx5, given below, so that values can be copied from a NIC. Percentages of a rate are of
the slowest host's line rate.

A profile also fixes the form of the algorithm. In the *paper* form every CNP cuts the rate and raises alpha at once, and
alpha decays when no CNP has come for \`dce_tcp_rtt\`. In the *slotted* form, that of ConnectX-4 and newer, a CNP only sets
a flag; free-running timers look at it every \`rate_reduce_monitor_period\` to cut, and every \`dce_tcp_rtt\` to update alpha.

Sources also differ in what alpha does while a flow sends at line rate. With \`alpha_decays_at_line_rate: true\` it decays there as
anywhere, and stays what it is when the rate limiter begins or ends: a flow that was alone for a while is hardly cut by its first
CNPs. With \`false\` alpha starts at \`initial_alpha_value\` with the first CNP after each time at line rate, which halves the rate.

Sources differ in how a rate increases, too. By QCN, which the paper refers to, timer and byte counter run by themselves, each counts its own
expirations, and the target rate rises with the current rate half the way behind it. Mellanox's overview of the same NICs has three other rules:
\`increase_restarts_counters\`, \`stage_by_increases\` and \`increase_raises_rate\`. Each may be taken by itself, in either form; the profile
\`mellanox-overview\` has all of them.

Two conversions: the paper's g is 1 - \`dce_tcp_g\` / 1024, so 1020 is g = 1/256 and mlx5's 1019 is about 1/205, and \`g: 1/256\` may be written as well; and
\`rpg_gd\` 11 is the paper's factor 1 - alpha/2.`;

export const dcqcn = {
  title: "DCQCN",
  names: "their mlx5 names (both `rpg_time_reset` and `rp_time_reset`)",
  feedback: "CNP",
  state: { rates: true, window: false, alpha: true },
  ...core,
  tuned: ["rpg_ai_rate", "rpg_time_reset", "rpg_byte_reset", "dce_tcp_g"],
  symbols,
  profiles,
  doc,
  check,
  feedbackInterval: (p: DcqcnParameters) => p.min_time_between_cnps,
  native(p: DcqcnParameters) {
    const { min_time_between_cnps: cnp_interval, ...dcqcn } = core.native(p).dcqcn;
    return { dcqcn, cnp_interval };
  },
} as const satisfies Algorithm;

/** Parameters are those that DCQCN would have run on. */
export const none = {
  ...dcqcn,
  needs: "leaves PFC alone",
  feedback: "none",
  state: { rates: false, window: false, alpha: false },
  check: () => undefined,
  native: (p: DcqcnParameters) => ({ cnp_interval: dcqcn.native(p).cnp_interval }),
} as const;
