/**
 * Marking thresholds and DCQCN parameters for a link rate and a round-trip time: `weir plan ecn`.
 *
 * Everything scales from section 5.2 of the DCQCN paper (Zhu et al., SIGCOMM 2015), which chose its values by a fluid model for
 * C = 40 Gb/s and a feedback delay tau* of 50 us, the interval N of CNPs. So with
 *
 *   tau = max(N, RTT)     D = C tau     (the paper's D is 250 KB)
 *
 *   Kmin = D / 50         5 KB      Kmax = 4 D / 5       200 KB     Pmax = 1%
 *   T = K = tau + 5 us    55 us     B = 40 D             10 MB      F = 5, g = 1/256
 *   R_AI = C / 1000       40 Mb/s   R_HAI = 5 R_AI       200 Mb/s
 *
 * R_AI is divided by flows / 16 where more than 16 flows may meet: the paper has no starvation of the buffer at 16:1 with 40 Mb/s, and
 * none at 32:1 with half of it. Kmin is two packets at least and Kmax four times Kmin (below 25 Gb/s with 1500 bytes): a mark
 * needs a queue to be seen. These two, and scaling by tau instead of anew by a fluid model, are this planner's own choice.
 */

import { formatRate, formatSize, formatTime } from "../../base/units.js";
import type { DcqcnParameterName } from "../../congestion/dcqcn.js";
import type { ParameterInput } from "../../congestion/parameter.js";
import { kFrameOverhead } from "../../scenario/headroom.js";

export interface EcnInput {
  /** bit/s. */
  rate: number;
  /** ns, without queues. */
  rtt: number;
  /** Bytes. */
  mtu: number;
  /** Flows that may meet at one bottleneck. */
  flows: number;
}

/** A set of marking thresholds that somebody uses. */
export interface MarkingRule {
  kmin_bytes: number;
  kmax_bytes: number;
  pmax: number;
  source: string;
}

/** A parameter as a scenario writes it. */
export interface Chosen {
  value: ParameterInput;
  source: string;
}

export interface EcnPlan {
  rate_bps: number;
  rtt_ns: number;
  /** C RTT. */
  bdp_bytes: number;
  /** max(N, RTT). */
  feedback_delay_ns: number;
  kmin_bytes: number;
  kmax_bytes: number;
  pmax: number;
  /** Origin of each of the three. */
  sources: { kmin: string; kmax: string; pmax: string };
  /** Parameters that differ from the profile `paper-sigcomm15`, or were chosen anew. */
  parameters: Partial<Record<DcqcnParameterName, Chosen>>;
  /** Rules of others at this rate and RTT. */
  alternatives: MarkingRule[];
}

/** N: the paper's CNP interval, ns; also the feedback delay that its parameters are for. */
const kCnpInterval = 50_000;
/** ns by which increases come later than CNPs. */
const kMargin = 5_000;
const kFlowsOfThePaper = 16;
const kPaper = "DCQCN paper, section 5.2";

export function planEcn({ rate, rtt, mtu, flows }: EcnInput): EcnPlan {
  const delay = Math.max(kCnpInterval, rtt);
  const inFlight = (rate * delay) / 8e9;
  const bdp = Math.round((rate * rtt) / 8e9);
  const leastKmin = 2 * (mtu + kFrameOverhead);
  const kmin = Math.max(Math.round(inFlight / 50), leastKmin);
  const kmax = Math.max(Math.round((4 * inFlight) / 5), 4 * kmin);
  const tau = delay === kCnpInterval ? "CNP interval 50 us" : "RTT";
  const timer = formatTime(delay + kMargin);
  const crowd = Math.max(1, flows / kFlowsOfThePaper);
  const increase = Math.round(rate / 1000 / crowd);
  return {
    rate_bps: rate,
    rtt_ns: rtt,
    bdp_bytes: bdp,
    feedback_delay_ns: delay,
    kmin_bytes: kmin,
    kmax_bytes: kmax,
    pmax: 0.01,
    sources: {
      kmin: kmin === leastKmin ? "two packets, the least that makes sense" : `${kPaper}: 5 KB, scaled by rate x ${tau}`,
      kmax: kmax === 4 * leastKmin ? "four times Kmin" : `${kPaper}: 200 KB, scaled by rate x ${tau}`,
      pmax: `${kPaper}: 1%, so that the larger flow gets more CNPs`,
    },
    parameters: {
      min_time_between_cnps: { value: formatTime(kCnpInterval), source: `${kPaper}: N, fixed by the NIC` },
      rpg_time_reset: { value: timer, source: `${kPaper}: T = feedback delay (${tau}) + 5 us` },
      dce_tcp_rtt: { value: timer, source: `${kPaper}: K must be larger than the CNP interval` },
      rpg_byte_reset: {
        value: formatSize(Math.round(40 * inFlight)),
        source: `${kPaper}: 10 MB, scaled by rate x ${tau}`,
      },
      rpg_threshold: { value: 5, source: "DCQCN paper, table 2: F" },
      dce_tcp_g: { value: 1020, source: "DCQCN paper, figures 12 and 14: g = 1/256" },
      rpg_ai_rate: {
        value: formatRate(increase),
        source: `${kPaper}: 40 Mb/s, scaled by rate${crowd > 1 ? `, divided by ${flows} flows / ${kFlowsOfThePaper}` : ""}`,
      },
      rpg_hai_rate: { value: formatRate(5 * increase), source: "ns3-rdma config.txt: 5 R_AI" },
    },
    alternatives: [
      {
        kmin_bytes: 7_000,
        kmax_bytes: 2 * bdp,
        pmax: 0.3,
        source: "Huawei AI Fabric, EDOC1100155250, delay-sensitive: Kmax 2 BDP (100 Gb/s, 20 us: 500 KB)",
      },
      {
        kmin_bytes: 7_000,
        kmax_bytes: 3 * bdp,
        pmax: 0.1,
        source: "Huawei AI Fabric, EDOC1100155250, throughput-sensitive: Kmax 3 BDP (100 Gb/s, 20 us: 750 KB)",
      },
      {
        kmin_bytes: Math.round((4_000 * rate) / 1e9),
        kmax_bytes: Math.round((16_000 * rate) / 1e9),
        pmax: 0.2,
        source: "HPCC's config.txt: 4 and 16 KB for each Gb/s, whatever the RTT",
      },
      {
        kmin_bytes: 1_048_576,
        kmax_bytes: 2_097_152,
        pmax: 0.05,
        source: "SONiC qos_config.j2, AZURE_LOSSLESS, whatever rate and RTT",
      },
    ],
  };
}
