/** The paper on congestion control under collectives, and what its experiments have in common. */
import type { Paper } from "../engine/experiment.js";

/** Its abstract was at hand, and topology, configuration and front end of its simulator. */
export const KHAN: Paper = {
  name: "Khan et al. 2022",
  citation:
    "T. Khan, S. Rashidi, S. Sridharan, P. Shurpali, A. Akella, T. Krishna: Impact of RoCE Congestion Control Policies on Distributed Training of DNNs, HOTI 2022, arXiv:2207.10898",
};

export const CLUSTER = "training/cluster.yaml";

/** PFC alone first: all others are held against it. */
export const CONTROLS = {
  none: { label: "PFC alone", set: [] },
  dcqcn: { label: "DCQCN", set: ["congestion={algorithm: dcqcn, profile: hpcc-ns3}"] },
  dctcp: { label: "DCTCP", set: ["congestion={algorithm: dctcp}"] },
  timely: { label: "TIMELY", set: ["congestion={algorithm: timely}"] },
  hpcc: { label: "HPCC", set: ["congestion={algorithm: hpcc, parameters: {hpcc_base_rtt: 72us}}"] },
} as const;
export type Control = keyof typeof CONTROLS;
export const SCHEMES = ["dcqcn", "dctcp", "timely", "hpcc"] as const satisfies readonly Control[];

/** Where chance decides: paths by ECMP, and places. */
export const SEEDS = [1, 2, 3] as const;

export const COMMON_CHOICES = [
  "Of the text only the abstract was at hand. The network is that of the simulator's published files: 128 GPUs with a NIC of 200 Gb/s each, 16 of two servers on a leaf, eight spines at 200 Gb/s, 70 us of propagation there and back, 32 MB for each switch, marks from 800 KB to 3.2 MB up to 20%. Which of its files the paper's figures are of is not known.",
  "DCQCN has the values of the simulator's config.txt (profile hpcc-ns3), HPCC the base round-trip time of this network; all else are defaults. Theirs give all controls a window of the bandwidth-delay product, which DCQCN, TIMELY and PFC alone have not here.",
  "A connection keeps its rate or window from one message to the next. In theirs each message has a new queue pair, which begins at line rate.",
  `Paths are chosen by ECMP, flow by flow. Where that or a place is chance, ${SEEDS.length} seeds run, and medians are judged.`,
];
