/**
 * What other simulators needed for the same scenarios, measured once on one vCPU of a 2.5 GHz Xeon (g++ 12, -O3 -march=native):
 * HPCC-ns3 is alibaba-edu/High-Precision-Congestion-Control 9f4be2a (ns-3.17), htsim is Broadcom/csg-htsim 841d9e7. A hop is a
 * packet put on a link, acknowledgements included. To compare on one machine in one run use --peer.
 */

export interface Recorded {
  simulator: "HPCC-ns3" | "htsim";
  /** User and system time of the whole process, s. */
  cpu_s: number;
  hops: number;
  /** Virtual s. */
  simulated_s: number;
}

function hpcc(cpu_s: number, hops: number, simulated_s: number): Recorded {
  return { simulator: "HPCC-ns3", cpu_s, hops, simulated_s };
}

function htsim(cpu_s: number, hops: number, simulated_s: number): Recorded {
  return { simulator: "htsim", cpu_s, hops, simulated_s };
}

export const RECORDED = {
  incast2: hpcc(1.744, 340_224, 20e-3),
  incast4: hpcc(1.807, 339_240, 20e-3),
  incast20: hpcc(1.655, 304_206, 20e-3),
  fabric10ms: hpcc(736.888, 120_340_993, 10e-3),
  fabric1ms: hpcc(36.956, 6_708_746, 1e-3),
  permutation432: htsim(7.689, 6_949_432, 200e-6),
  permutation1024: htsim(12.354, 8_443_150, 100e-6),
  incast127: htsim(0.325, 422_665, 2e-3),
} as const;
