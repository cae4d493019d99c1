/**
 * Parameters of the fluid model of DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015,
 * section 5, tables 1, 2 and 14. Base units: bit/s, bytes, ns. Names are those of scenarios (mlx5's) where these have one.
 *
 * The equations count packets and seconds (`inPackets` converts): rates are packets/s, the queue is packets, B is packets. The
 * paper counts packets of the MTU ("166 full-sized (1500 byte MTU) packets every 50 us" at 40 Gb/s), so its C is 40e9 / (8 x
 * 1500) and B = 10 MB is 6,667 packets. Where a packet takes more of the link than it takes of the queue (preamble, gap, FCS),
 * `queued` is less than `packet`.
 *
 * tau appears in equations 8 and 9, and table 2 does not have it. It is the CNP generation interval, N = 50 us: the factor
 * 1 - (1 - p)^(tau R_C) is the probability that one of the packets of an interval is marked, and the notification point sends one
 * CNP for each such interval.
 */
import type { DcqcnParameters } from "../../congestion/dcqcn.js";

/** DCQCN's parameters that the equations have: B, T, F and R_AI, tau (min_time_between_cnps), tau' of equation 2 (dce_tcp_rtt), g. */
export const kControlNames = [
  "g",
  "rpg_ai_rate",
  "rpg_byte_reset",
  "rpg_time_reset",
  "rpg_threshold",
  "min_time_between_cnps",
  "dce_tcp_rtt",
  // True: equation 7 as it stands; false: alpha is the flow's initial one while it sends at line rate (system.ts).
  "alpha_decays_at_line_rate",
] as const;
export type ControlName = (typeof kControlNames)[number];

/** Sizes of thresholds, rates and times as a scenario means them. */
export interface DcqcnModelParameters extends Pick<DcqcnParameters, ControlName> {
  /** C, the rate of the bottleneck, bit/s. */
  bandwidth: number;
  /** Bytes that a packet takes of the link and counts in B. */
  packet: number;
  /** Bytes that a packet takes of the queue. */
  queued: number;
  /** Bytes. */
  kmin: number;
  /** Bytes. */
  kmax: number;
  pmax: number;
  /** tau*: delay of the control loop, ns. */
  delay: number;
}

/** Flows that start and stop together, at one rate. */
export interface FluidFlows {
  /** Number of flows. */
  count: number;
  /** ns. */
  start: number;
  /** ns; Infinity: never. */
  stop: number;
  /** R_C = R_T at the start, bit/s. */
  rate: number;
  /** R_C and R_T never exceed it, bit/s. */
  lineRate: number;
  /** alpha at the start. */
  alpha: number;
}

/** Parameters of table 14 at 40 Gb/s, MTU 1500; R_AI, F, tau and tau' of table 2 and section 5. */
export const DCQCN_PAPER: Readonly<DcqcnModelParameters> = {
  bandwidth: 40e9,
  packet: 1500,
  queued: 1500,
  kmin: 5_000,
  kmax: 200_000,
  pmax: 0.01,
  g: 1 / 256,
  rpg_ai_rate: 40e6,
  rpg_byte_reset: 10e6,
  rpg_time_reset: 55_000,
  rpg_threshold: 5,
  min_time_between_cnps: 50_000,
  dce_tcp_rtt: 55_000,
  alpha_decays_at_line_rate: true,
  delay: 50_000,
};

/** Parameters of section 5.2 before it tunes: QCN's and DCTCP's recommendations. */
export const DCQCN_STRAWMAN: Readonly<DcqcnModelParameters> = {
  ...DCQCN_PAPER,
  kmin: 40_000,
  kmax: 40_000,
  pmax: 1,
  g: 1 / 16,
  rpg_byte_reset: 150e3,
  rpg_time_reset: 1_500_000,
};

/** The parameters in packets and seconds, as the equations have them. */
export interface PacketParameters {
  /** C, packets/s. */
  capacity: number;
  /** packets. */
  kmin: number;
  /** packets. */
  kmax: number;
  pmax: number;
  g: number;
  /** R_AI, packets/s. */
  increase: number;
  /** B, packets; Infinity: no byte counter. */
  bytes: number;
  /** T, s. */
  timer: number;
  /** F. */
  stages: number;
  /** tau, s. */
  interval: number;
  /** tau', s. */
  alphaInterval: number;
  /** True if alpha decays at line rate, too. */
  alphaAtLineRate: boolean;
  /** tau*, s. */
  delay: number;
}

/** Throws RangeError for parameters that the model has no meaning for. */
export function checkParameters(parameters: DcqcnModelParameters): void {
  const positive = [
    "bandwidth",
    "packet",
    "queued",
    "rpg_ai_rate",
    "rpg_time_reset",
    "min_time_between_cnps",
    "dce_tcp_rtt",
    "delay",
  ] as const;
  for (const name of positive) {
    if (!(parameters[name] > 0 && Number.isFinite(parameters[name]))) throw new RangeError(`${name} must be positive`);
  }
  const { kmin, kmax, pmax, g, rpg_byte_reset, rpg_threshold } = parameters;
  if (!(kmin >= 0)) throw new RangeError("kmin must not be negative");
  if (!(kmax >= kmin && Number.isFinite(kmax))) throw new RangeError("kmax must be finite and at least kmin");
  if (!(pmax > 0 && pmax <= 1)) throw new RangeError("pmax must be more than 0 and at most 1");
  if (!(g > 0 && g <= 1)) throw new RangeError("g must be more than 0 and at most 1");
  if (!(rpg_byte_reset >= 0)) throw new RangeError("rpg_byte_reset must not be negative");
  if (!(Number.isInteger(rpg_threshold) && rpg_threshold >= 1)) {
    throw new RangeError("rpg_threshold must be a whole number from 1 on");
  }
}

/** Throws RangeError for flows that the model has no meaning for. */
export function checkFlows(flows: readonly FluidFlows[]): void {
  if (flows.length === 0) throw new RangeError("there must be flows");
  for (const { count, start, stop, rate, lineRate, alpha } of flows) {
    if (!(Number.isInteger(count) && count >= 1)) throw new RangeError("count must be a whole number from 1 on");
    if (!(start >= 0 && stop > start)) throw new RangeError("start must not be negative, and stop must be later");
    if (!(lineRate > 0 && Number.isFinite(lineRate))) throw new RangeError("lineRate must be positive");
    if (!(rate >= 0 && rate <= lineRate)) throw new RangeError("rate must be 0 to lineRate");
    if (!(alpha >= 0 && alpha <= 1)) throw new RangeError("alpha must be 0 to 1");
  }
}

export function inPackets(parameters: DcqcnModelParameters): PacketParameters {
  const { packet, queued, rpg_byte_reset } = parameters;
  const bits = 8 * packet;
  return {
    capacity: parameters.bandwidth / bits,
    kmin: parameters.kmin / queued,
    kmax: parameters.kmax / queued,
    pmax: parameters.pmax,
    g: parameters.g,
    increase: parameters.rpg_ai_rate / bits,
    bytes: rpg_byte_reset > 0 ? rpg_byte_reset / packet : Number.POSITIVE_INFINITY,
    timer: parameters.rpg_time_reset / 1e9,
    stages: parameters.rpg_threshold,
    interval: parameters.min_time_between_cnps / 1e9,
    alphaInterval: parameters.dce_tcp_rtt / 1e9,
    alphaAtLineRate: parameters.alpha_decays_at_line_rate,
    delay: parameters.delay / 1e9,
  };
}
