/**
 * Thresholds of a shared-buffer switch by section 4 of the DCQCN paper (Zhu et al., SIGCOMM 2015): `weir plan buffers`. The formulas
 * are those of src/scenario/thresholds.ts. Bytes.
 *
 * For B = 12 MB, n = 32, P = 8, t_flight = 22.4 KB, beta = 8 (1 KB = 1000 bytes) against the paper's print:
 *
 *   t_PFC static     24475     24.47 KB   the digits agree, cut; rounded if 22.4 KB stands for 22401 to 22409 bytes
 *   t_ECN dynamic    21755.6   21.75 KB   likewise
 *   t_ECN static       764.8    0.85 KB   does not follow from t_PFC > n t_ECN and 24.47 KB
 *
 * Reading: the paper says that s <= n t_ECN just before ECN marks, and n t_ECN < t_PFC would give t_ECN < beta F / (n (P + beta)),
 * 97.9 KB. Its formula has s <= P n t_ECN: every priority of every port full to t_ECN ("even in the worst case and when all 8 PFC
 * priorities are used"). Both are given; the verdict is by the formula as printed.
 */
import type { Headroom } from "../../scenario/headroom.js";
import {
  ecnThresholdBound,
  pfcThreshold,
  pfcThresholdAlone,
  reservedBytes,
  sharedBytes,
  staticThresholdBound,
} from "../../scenario/thresholds.js";
import type { BufferConfig } from "../../scenario/types.js";

export interface BufferPlanInput {
  ports: number;
  priorities: number;
  /** B. */
  buffer: number;
  /** t_flight: a given number, or one of headroomFor(). */
  headroom: number | Headroom;
  beta: number;
  /** t_ECN. */
  kmin: number;
}

export interface BufferPlan {
  ports: number;
  priorities: number;
  buffer_bytes: number;
  beta: number;
  t_flight_bytes: number;
  /** Empty where t_flight was given. */
  t_flight_terms: Headroom["terms"];
  /** P n t_flight. */
  reserved_bytes: number;
  /** B - P n t_flight. */
  shared_bytes: number;
  /** Largest static threshold. */
  t_pfc_static_bytes: number;
  /** Dynamic threshold of an empty buffer. */
  t_pfc_dynamic_bytes: number;
  /** Threshold of the one ingress that fills the buffer alone, dynamic. */
  t_pfc_dynamic_alone_bytes: number;
  /** Bound of t_ECN with the largest static threshold. */
  t_ecn_static_bytes: number;
  /** Bound of t_ECN with dynamic thresholds: all priorities in use. */
  t_ecn_dynamic_bytes: number;
  /** The same with one priority in use. */
  t_ecn_dynamic_one_priority_bytes: number;
  kmin_bytes: number;
  /** Verdict for the worst case, with dynamic thresholds. */
  ecn_before_pfc: boolean;
  /** Verdict for the worst case, with the largest static threshold. */
  ecn_before_pfc_static: boolean;
  /** Assumptions of the figures. */
  assumptions: string[];
}

const hundredths = (value: number) => Math.round(value * 100) / 100;

/** Returns undefined if the buffer does not hold the headroom (P n t_flight >= B). */
export function planBuffers(input: BufferPlanInput): BufferPlan | undefined {
  const { ports, priorities, buffer: total, headroom: given, beta, kmin } = input;
  const { bytes: headroom, terms } = typeof given === "number" ? { bytes: given, terms: [] } : given;
  const sizes = { total, headroom, priorities };
  const shared = sharedBytes(sizes, ports);
  if (shared <= 0) return undefined;
  const threshold = staticThresholdBound(sizes, ports);
  const fixed = { ...sizes, beta, mode: "static" as const, threshold };
  const dynamic: Pick<BufferConfig, keyof typeof fixed> = { ...fixed, mode: "dynamic" };
  const worst = ecnThresholdBound(dynamic, ports);
  const worstStatic = ecnThresholdBound(fixed, ports);
  return {
    ports,
    priorities,
    buffer_bytes: total,
    beta,
    t_flight_bytes: headroom,
    t_flight_terms: terms,
    reserved_bytes: reservedBytes(sizes, ports),
    shared_bytes: shared,
    t_pfc_static_bytes: threshold,
    t_pfc_dynamic_bytes: pfcThreshold(dynamic, ports, 0),
    t_pfc_dynamic_alone_bytes: pfcThresholdAlone(dynamic, ports),
    t_ecn_static_bytes: hundredths(worstStatic),
    t_ecn_dynamic_bytes: hundredths(worst),
    t_ecn_dynamic_one_priority_bytes: hundredths(
      ecnThresholdBound(dynamic, ports, { ofIngress: ports, ofSwitch: ports }),
    ),
    kmin_bytes: kmin,
    ecn_before_pfc: kmin < worst,
    ecn_before_pfc_static: kmin < worstStatic,
    assumptions: assumptions(input, headroom),
  };
}

function assumptions({ ports, priorities, buffer, beta }: BufferPlanInput, headroom: number): string[] {
  const general = [
    "1 KB = 1000 bytes; every port and priority keeps its headroom, lossless or not",
    "t_ECN static: one ingress fills an egress queue at every port; its t_PFC is the upper bound",
    "t_ECN dynamic: the same while all priorities of all ports are filled to t_ECN; one priority: only those of the ingress",
  ];
  const paper = ports === 32 && priorities === 8 && buffer === 12e6 && beta === 8 && Math.round(headroom / 100) === 224;
  if (!paper) return general;
  return [
    ...general,
    "DCQCN paper, section 4: 24.47 and 21.75 KB follow from t_flight = 22.4 KB, cut to two digits (rounded: from 22401 to 22409 bytes)",
    "DCQCN paper, section 4: the 0.85 KB printed for t_ECN static does not follow from its formula: 24.475 / 32 is 0.765",
    "DCQCN paper, section 4: the terms of 22.4 KB are not printed; 40 Gb/s, MTU 1500 and 173 m of cable give 22402 bytes",
  ];
}
