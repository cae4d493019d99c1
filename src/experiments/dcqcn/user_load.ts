/** Figure 17 of the DCQCN paper, section 6.2: an incast of degree 10 while the communicating pairs grow from 5 to 80. */
import type { Evidence, Experiment, Observation } from "../experiment.js";
import {
  benchmarkGrid,
  kBenchmarkChoices,
  kShareNames,
  kShares,
  type Shares,
  shareQuantities,
  sharesOf,
  shareValues,
} from "./benchmark.js";
import { DCQCN_PAPER } from "./paper.js";
import { equal, higher, kSettings, type Setting } from "./testbed.js";

const kPairs = [5, 10, 20, 40, 80] as const;
const [kFewest, kMost] = [5, 80] as const;
const kWhere = "section 6.2";

export const DCQCN_FIGURE_17: Experiment = {
  id: "dcqcn-fig17",
  paper: DCQCN_PAPER,
  place: "figure 17",
  title: "user traffic and disk rebuild by number of pairs",
  setup:
    "5 to 80 pairs of random hosts and an incast of degree 10 on the testbed, with PFC alone and with DCQCN and PFC, five seeds each.",
  choices: kBenchmarkChoices,
  quantities: {
    ...shareQuantities(kPairs, (pairs) => `${pairs} pairs`),
    match_p50: { label: "users, median, 80 pairs with DCQCN / 5 pairs with PFC", unit: "" },
    match_p10: { label: "users, 10th percentile, 80 pairs with DCQCN / 5 pairs with PFC", unit: "" },
    fairer: { label: "incast, 10th percentile / median, DCQCN / PFC, least of all numbers of pairs", unit: "" },
  },
  statements: [
    {
      quote:
        "In Figure 17(a), we see that the performance of user traffic with 5 communicating pairs when no DCQCN is used, matches the performance of user traffic with 80 communicating pairs, with DCQCN.",
      where: kWhere,
      reading: "median and 10th percentile are equal",
      checks: [equal("match_p50", 1), equal("match_p10", 1)],
      remark:
        "80 pairs with DCQCN fare far better. Messages of some KB, one after another, each wait a round trip through full buffers with PFC, which takes milliseconds; longer ones keep more.",
    },
    {
      quote: "In other words, with DCQCN, we can handle 16x more user traffic, without performance degradation.",
      where: kWhere,
      reading: "median and 10th percentile of 80 pairs with DCQCN are not lower than those of 5 pairs without",
      checks: [
        { quantity: "match_p50", min: 0.9 },
        { quantity: "match_p10", min: 0.9 },
      ],
    },
    {
      quote:
        "Figure 17(b) shows that even the performance of disk rebuild traffic is more uniform and fair with DCQCN than without it.",
      where: kWhere,
      reading: "the incast's 10th percentile as a share of its median is higher at each number of pairs",
      checks: [higher("fairer")],
      remark: "It is at 5, 10, 20 and 80 pairs, by 1.2 to 1.8 times. At 40 it is just less than 1.1 times.",
    },
  ],
  network: {
    clocks: ["sim"],
    trials: benchmarkGrid("traffic.0.count", kPairs, ["traffic.1.degree=10"]),
    observe,
    sim_seconds: 102,
  },
};

function observe(runs: Readonly<Record<string, Evidence>>): Observation {
  const at = sharesOf(runs);
  const match = (share: keyof Shares) => at("dcqcn", kMost)[share] / at("pfc", kFewest)[share];
  const evenness = (setting: Setting, pairs: number) => at(setting, pairs).incast_p10 / at(setting, pairs).incast_p50;
  return {
    values: {
      ...shareValues(at, kPairs),
      match_p50: match("users_p50"),
      match_p10: match("users_p10"),
      fairer: Math.min(...kPairs.map((pairs) => evenness("dcqcn", pairs) / evenness("pfc", pairs))),
    },
    plots: kShareNames.map((share) => ({
      title: kShares[share],
      x_label: "communicating pairs",
      y_label: "throughput, Gb/s",
      x_names: kPairs.map((pairs, i) => ({ x: i, label: String(pairs) })),
      curves: (["pfc", "dcqcn"] as const).map((setting) => ({
        label: kSettings[setting].label,
        kind: "bars" as const,
        x: kPairs.map((_, i) => i),
        y: kPairs.map((pairs) => at(setting, pairs)[share]),
      })),
    })),
  };
}
