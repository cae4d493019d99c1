/**
 * Figures 3 and 8 of the DCQCN paper, sections 2.2 and 3.2: one sender under each ToR, and a receiver under the fourth sender's.
 * PFC shares by input ports, DCQCN by flows.
 */
import { mean } from "simple-statistics";
import { jainIndex, spread } from "../../result/statistics.js";
import type { Evidence, Experiment, Observation, Quantity, Statement, Trial } from "../experiment.js";
import { known } from "../measure.js";
import { ALPHA_RESET } from "./alpha.js";
import { DCQCN_PAPER } from "./paper.js";
import {
  change,
  equal,
  higher,
  kLink,
  kRates,
  kSettings,
  kStream,
  kStreams,
  kWords,
  little,
  printed,
  rateFrom,
  repeated,
  repeats,
  type Setting,
  whiskers,
} from "./testbed.js";

const kFile = "dcqcn/unfairness.yaml";
const kDraws = 20;
const kReceiver = "h4_2";

const kHosts = [
  { name: "h1", host: "h1_1", label: "H1" },
  { name: "h2", host: "h2_1", label: "H2" },
  { name: "h3", host: "h3_1", label: "H3" },
  { name: "h4", host: "h4_1", label: "H4" },
] as const;

/** The paper's worst case: H1, H2 and H3 come through one uplink of T4. */
const kOneUplink = [
  { from: "h1_1", to: kReceiver, via: ["t1", "l1", "s1", "l3", "t4"] },
  { from: "h2_1", to: kReceiver, via: ["t2", "l2", "s2", "l3", "t4"] },
  { from: "h3_1", to: kReceiver, via: ["t3", "l3", "t4"] },
];

const kQuantities: Record<string, Quantity> = {
  ...Object.fromEntries(
    kHosts.flatMap(({ name, label }): [string, Quantity][] => [
      [`${name}_least`, { label: `${label}, least of ${kDraws} draws of paths`, unit: "Gb/s" }],
      [`${name}_median`, { label: `${label}, median`, unit: "Gb/s" }],
      [`${name}_most`, { label: `${label}, most`, unit: "Gb/s" }],
      [`${name}_spread`, { label: `${label}, least and most differ from the median by up to`, unit: "%" }],
    ]),
  ),
  median_ratio: { label: "median of H4 / highest median of the others", unit: "" },
  extreme_ratio: { label: "least of H4 / most of the others", unit: "" },
  ...Object.fromEntries(
    kHosts.map(({ name, label }): [string, Quantity] => [
      `${name}_shared`,
      { label: `${label}, where H1 to H3 share an uplink`, unit: "Gb/s" },
    ]),
  ),
  ratio_shared: { label: "H4 / mean of the others, where they share an uplink", unit: "" },
  jain_shared: { label: "Jain's index, where H1 to H3 share an uplink", unit: "" },
};

const kUnfair: Statement[] = [
  {
    quote: "However, with PFC, there is unfairness.",
    where: "section 2.2",
    reading: "where H1 to H3 share an uplink of T4, H4 gets more than their mean",
    checks: [higher("ratio_shared")],
  },
  {
    quote: "Thus, H4 receives higher throughput than H1-H3.",
    where: "section 2.2",
    reading: "over the draws of paths, the median of H4 is higher than each of the others'",
    checks: [higher("median_ratio")],
  },
  {
    quote: "H4 gets as much as 20Gbps throughput, e.g. when ECMP maps all of H1-H3 to either P3 or P4.",
    where: "section 2.2",
    reading: "20 Gb/s for H4 where H1 to H3 share an uplink",
    checks: [printed("h4_shared", 20)],
  },
  {
    quote: "H4's minimum throughput is higher than the maximum throughput of H1-H3.",
    where: "section 2.2",
    reading: "over the draws of paths",
    checks: [higher("extreme_ratio")],
    remark:
      "Where paths split two to one, the single flow has an input of T4 for itself, as H4 has, and the two get a third of the link each: H4's least is the others' most.",
  },
];

const kFair: Statement[] = [
  {
    quote: "Figure 8 shows that DCQCN solves the unfairness problem depicted in Figure 3.",
    where: "section 3.2",
    reading: "where H1 to H3 share an uplink of T4, H4 gets as much as their mean",
    checks: [equal("ratio_shared", 1)],
  },
  {
    quote: "All four flows get equal share of the bottleneck bandwidth",
    where: "section 3.2",
    reading: "over the draws of paths, the median of each is a quarter of 40 Gb/s",
    checks: kHosts.map(({ name }) => equal(`${name}_median`, kLink / kHosts.length)),
  },
  {
    quote: "and there is little variance.",
    where: "section 3.2",
    reading: "over the draws of paths, least and most of each are as its median",
    checks: kHosts.map(({ name }) => little(`${name}_spread`)),
    remark:
      "Marks come by chance, and the means are over 80 ms. In runs of 1 s with seeds 1 to 4, all are within 3.4% of 10 Gb/s.",
  },
];

function experiment(figure: number, setting: Setting, title: string, statements: Statement[]): Experiment {
  const { label, set } = kSettings[setting];
  const shared: Trial = {
    name: "shared",
    file: kFile,
    set: [...set, kStream, `topology.routes=${JSON.stringify(kOneUplink)}`],
  };
  return {
    id: `dcqcn-fig${figure}`,
    paper: DCQCN_PAPER,
    place: `figure ${figure}`,
    title,
    setup: `H1 to H4, one under each ToR of the testbed (figure 2), send to R under H4's ToR, with ${setting === "pfc" ? "PFC alone" : "DCQCN and PFC"}: ${kDraws} draws of the ECMP paths, and the case that H1 to H3 share an uplink of T4.`,
    choices: [
      kWords,
      kRates,
      "The paper shows least, median and most of 1000 transfers of 4 MB; here of the rates of runs, 80 ms after 20 ms of warm-up, each with other paths.",
      "The wire has the case of one uplink alone: chance in its paths would need as many runs.",
      kStreams,
    ],
    quantities: kQuantities,
    statements,
    network: {
      clocks: ["wire", "sim"],
      trials: [shared, ...repeated("draw", { file: kFile, set, clocks: ["sim"] }, kDraws)],
      observe: (runs) => observe(runs, label),
      sim_seconds: setting === "pfc" ? 10 : 14,
    },
    ...(setting === "dcqcn" && { alternative: ALPHA_RESET }),
  };
}

function observe(runs: Readonly<Record<string, Evidence>>, label: string): Observation {
  const shared = kHosts.map(({ host }) => rateFrom(runs.shared as Evidence, host));
  const [h4 = 0, ...others] = [...shared].reverse();
  const draws = repeats(runs, "draw");
  const rates = kHosts.map(({ host }) => draws.map((run) => rateFrom(run, host)));
  const places = kHosts.map((_, i) => i);
  return {
    values: known({
      ...(draws.length > 0 && overDraws(rates)),
      ...Object.fromEntries(kHosts.map(({ name }, i) => [`${name}_shared`, shared[i]])),
      ratio_shared: h4 / mean(others),
      jain_shared: jainIndex(shared),
    }),
    plots: [
      {
        title: draws.length > 0 ? "Median, least and most over the draws" : "H1 to H3 share an uplink",
        x_label: "sender",
        y_label: "throughput, Gb/s",
        x_names: kHosts.map(({ label: host }, i) => ({ x: i, label: host })),
        y_range: [0, 25],
        curves: [
          ...(draws.length > 0 ? [whiskers(label, places, rates)] : []),
          { label: `${label}, one uplink`, x: places, y: shared, kind: "bars", color: 1 },
        ],
        levels: [{ label: "a quarter", value: kLink / kHosts.length }],
      },
    ],
  };
}

function overDraws(rates: readonly (readonly number[])[]): Record<string, number> {
  const all = rates.map(spread);
  const [h4, ...others] = [...all].reverse();
  const each = kHosts.flatMap(({ name }, i): [string, number][] => {
    const { min, p50, max } = all[i] as (typeof all)[number];
    return [
      [`${name}_least`, min],
      [`${name}_median`, p50],
      [`${name}_most`, max],
      [`${name}_spread`, change([min, max], p50)],
    ];
  });
  return {
    ...Object.fromEntries(each),
    median_ratio: (h4?.p50 ?? 0) / Math.max(...others.map(({ p50 }) => p50)),
    extreme_ratio: (h4?.min ?? 0) / Math.max(...others.map(({ max }) => max)),
  };
}

export const DCQCN_FIGURE_3 = experiment(3, "pfc", "PFC's unfairness to flows that share an input", kUnfair);
export const DCQCN_FIGURE_8 = experiment(8, "dcqcn", "fairness with DCQCN", kFair);
