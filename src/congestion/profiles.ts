// Named sets of DCQCN parameters. The sources disagree on "the DCQCN defaults", so every value says where it is from.
import type { ParameterInput } from "./parameters.js";

/** Names are those of mlx5 (`/sys/class/net/<if>/ecn/roce_rp/`), which also accepts `rp_` for `rpg_` here. */
export const PARAMETER_NAMES = [
  "rpg_time_reset",
  "rpg_byte_reset",
  "rpg_threshold",
  "rpg_ai_rate",
  "rpg_hai_rate",
  "rpg_max_rate",
  "rpg_min_rate",
  "rpg_gd",
  "rpg_min_dec_fac",
  "dce_tcp_g",
  "dce_tcp_rtt",
  "rate_reduce_monitor_period",
  "initial_alpha_value",
  "alpha_decays_at_line_rate",
  "clamp_tgt_rate",
  "clamp_tgt_rate_after_time_inc",
  "rate_to_set_on_first_cnp",
  "hyper_increase_scales",
  "min_time_between_cnps",
] as const;
export type ParameterName = (typeof PARAMETER_NAMES)[number];

/**
 * `paper`: every CNP cuts the rate and raises alpha at once, alpha decays after a time without CNP (SIGCOMM 2015).
 * `slotted`: CNPs only set a bit; cuts and alpha updates happen on free-running timers that look at it (ConnectX-4 and newer).
 */
export type DcqcnForm = "paper" | "slotted";

export const PROFILE_NAMES = ["paper-sigcomm15", "mlx5", "ns3-rdma", "hpcc-ns3", "otg"] as const;
export type ProfileName = (typeof PROFILE_NAMES)[number];

export interface Profile {
  title: string;
  form: DcqcnForm;
  /** Value (a number means mlx5's unit: us, bytes, Mb/s, %, 1/1024) and where it is from. */
  parameters: Record<ParameterName, readonly [value: ParameterInput, source: string]>;
}

const PAPER_TABLE = "paper figure 14";
const MLX5_DUMP = "mlx5 firmware default (mlxconfig)";
const NS3_CONFIG = "ns3-rdma config.txt";
const NS3_CODE = "ns3-rdma qbb-net-device.cc";
const HPCC_CONFIG = "HPCC config.txt";
const HPCC_CODE = "HPCC rdma-hw.cc";
const OTG_MODEL = "OTG models port/rocev2.yaml";

export const PROFILES: Record<ProfileName, Profile> = {
  "paper-sigcomm15": {
    title: "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015",
    form: "paper",
    parameters: {
      rpg_time_reset: ["55us", PAPER_TABLE],
      rpg_byte_reset: ["10MB", PAPER_TABLE],
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
      min_time_between_cnps: ["50us", "paper section 3.1: N"],
    },
  },
  mlx5: {
    title: "ConnectX-4 and newer, firmware defaults",
    form: "slotted",
    parameters: {
      rpg_time_reset: ["300us", MLX5_DUMP],
      rpg_byte_reset: [32767, MLX5_DUMP],
      rpg_threshold: [1, MLX5_DUMP],
      rpg_ai_rate: ["5Mbps", MLX5_DUMP],
      rpg_hai_rate: ["50Mbps", MLX5_DUMP],
      rpg_max_rate: [0, MLX5_DUMP],
      rpg_min_rate: ["1Mbps", MLX5_DUMP],
      rpg_gd: [11, MLX5_DUMP],
      rpg_min_dec_fac: ["50%", MLX5_DUMP],
      dce_tcp_g: [1019, MLX5_DUMP],
      dce_tcp_rtt: ["1us", MLX5_DUMP],
      rate_reduce_monitor_period: ["4us", MLX5_DUMP],
      initial_alpha_value: [1023, MLX5_DUMP],
      alpha_decays_at_line_rate: [
        false,
        "NVIDIA's DCQCN parameters: the initial value is that at the first CNP for a flow",
      ],
      clamp_tgt_rate: [false, MLX5_DUMP],
      clamp_tgt_rate_after_time_inc: [true, MLX5_DUMP],
      rate_to_set_on_first_cnp: [0, MLX5_DUMP],
      hyper_increase_scales: [false, "HPCC's model of ConnectX-4; the firmware is not published"],
      min_time_between_cnps: ["2us", "mlxconfig shows 0 or 2 by firmware version"],
    },
  },
  "ns3-rdma": {
    title: "github.com/bobzhuyb/ns3-rdma, the paper authors' simulator as shipped",
    form: "paper",
    parameters: {
      rpg_time_reset: ["60us", NS3_CONFIG],
      rpg_byte_reset: ["300MB", NS3_CONFIG],
      rpg_threshold: [5, NS3_CONFIG],
      rpg_ai_rate: ["40Mbps", NS3_CONFIG],
      rpg_hai_rate: ["200Mbps", NS3_CONFIG],
      rpg_max_rate: [0, "line rate"],
      rpg_min_rate: ["100Mbps", NS3_CONFIG],
      rpg_gd: [11, NS3_CODE],
      rpg_min_dec_fac: ["50%", "never binding: alpha/2 is at most one half"],
      dce_tcp_g: [1020, `${NS3_CONFIG}: g = 1/256`],
      dce_tcp_rtt: ["55us", NS3_CONFIG],
      rate_reduce_monitor_period: [0, `${NS3_CODE}: every CNP cuts`],
      initial_alpha_value: [512, `${NS3_CODE}: alpha starts at 0.5`],
      alpha_decays_at_line_rate: [false, `${NS3_CODE}: its timer starts with the first CNP`],
      clamp_tgt_rate: [true, NS3_CONFIG],
      clamp_tgt_rate_after_time_inc: [false, NS3_CONFIG],
      rate_to_set_on_first_cnp: [0, NS3_CODE],
      hyper_increase_scales: [true, NS3_CODE],
      min_time_between_cnps: ["50us", NS3_CONFIG],
    },
  },
  "hpcc-ns3": {
    title: "github.com/alibaba-edu/High-Precision-Congestion-Control, its DCQCN as shipped",
    form: "slotted",
    parameters: {
      rpg_time_reset: ["900us", HPCC_CONFIG],
      rpg_byte_reset: [0, `${HPCC_CODE}: no byte counter`],
      rpg_threshold: [1, HPCC_CONFIG],
      rpg_ai_rate: ["50Mbps", HPCC_CONFIG],
      rpg_hai_rate: ["100Mbps", HPCC_CONFIG],
      rpg_max_rate: [0, "line rate"],
      rpg_min_rate: ["100Mbps", HPCC_CONFIG],
      rpg_gd: [11, HPCC_CODE],
      rpg_min_dec_fac: ["50%", "never binding: alpha/2 is at most one half"],
      dce_tcp_g: [1020, `${HPCC_CONFIG}: g = 1/256`],
      dce_tcp_rtt: ["1us", HPCC_CONFIG],
      rate_reduce_monitor_period: ["4us", HPCC_CONFIG],
      initial_alpha_value: [1024, HPCC_CODE],
      alpha_decays_at_line_rate: [false, `${HPCC_CODE}: its timer starts with the first CNP`],
      clamp_tgt_rate: [false, HPCC_CONFIG],
      clamp_tgt_rate_after_time_inc: [true, `${HPCC_CODE}: the first cut after an increase clamps`],
      rate_to_set_on_first_cnp: [0, HPCC_CODE],
      hyper_increase_scales: [false, HPCC_CODE],
      min_time_between_cnps: [0, `${HPCC_CODE}: every ACK of a marked packet carries the CNP flag`],
    },
  },
  otg: {
    title: "Open Traffic Generator model of a RoCEv2 port (test equipment)",
    form: "slotted",
    parameters: {
      rpg_time_reset: ["250us", OTG_MODEL],
      rpg_byte_reset: [32767, OTG_MODEL],
      rpg_threshold: [25, OTG_MODEL],
      rpg_ai_rate: ["0.001%", OTG_MODEL],
      rpg_hai_rate: ["0.001%", OTG_MODEL],
      rpg_max_rate: [0, "line rate"],
      rpg_min_rate: ["0.002%", OTG_MODEL],
      rpg_gd: [11, OTG_MODEL],
      rpg_min_dec_fac: ["90%", `${OTG_MODEL}: maximum decrement 10%`],
      dce_tcp_g: [1019, OTG_MODEL],
      dce_tcp_rtt: ["21us", OTG_MODEL],
      rate_reduce_monitor_period: ["21us", OTG_MODEL],
      initial_alpha_value: [1023, OTG_MODEL],
      alpha_decays_at_line_rate: [false, "not in the model; as mlx5"],
      clamp_tgt_rate: [false, OTG_MODEL],
      clamp_tgt_rate_after_time_inc: [true, "not in the model; mlx5 default"],
      rate_to_set_on_first_cnp: ["0.002%", OTG_MODEL],
      hyper_increase_scales: [false, "not in the model; as mlx5"],
      min_time_between_cnps: ["55us", `${OTG_MODEL}: cnp_delay_timer`],
    },
  },
};
