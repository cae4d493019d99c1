/**
 * Figures 3 and 8 of the DCQCN paper, sections 2.2 and 3.2: one sender under each ToR, and a receiver under the fourth sender's.
 * PFC shares by input ports, DCQCN by flows.
 */
import { mean } from "simple-statistics";
import { jainIndex, spread } from "../../result/statistics.js";
import type { Evidence, Trial } from "../experiment.js";
import { byName, caseFirst, grid, plot, quantity, type Runs, type StatementsOn, statement, studyOf } from "../study.js";
import { ALPHA_RESET } from "./alpha.js";
import { dcqcnFigure } from "./paper.js";
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

type Host = (typeof kHosts)[number]["name"];

interface Seen {
  /** Where H1 to H3 share an uplink, Gb/s. */
  shared: Readonly<Record<Host, number>>;
  /** The rates of each draw, and their spread; the wire has none. */
  draws?: {
    rates: Readonly<Record<Host, readonly number[]>>;
    spreads: Readonly<Record<Host, ReturnType<typeof spread>>>;
  };
}

const kNames = kHosts.map(({ name }) => name);
const kOthers = kNames.filter((name) => name !== "h4");

const kQuantities = {
  ...grid(
    kHosts,
    ({ draws }: Seen, { name }) => draws?.spreads[name],
    (label, host) => `${host.label}, ${label}`,
  )(
    {
      least: quantity(`least of ${kDraws} draws of paths`, "Gb/s", ({ min }) => min),
      median: quantity("median", "Gb/s", ({ p50 }) => p50),
      most: quantity("most", "Gb/s", ({ max }) => max),
      spread: quantity("least and most differ from the median by up to", "%", ({ min, p50, max }) =>
        change([min, max], p50),
      ),
    },
    caseFirst,
  ),
  median_ratio: quantity(
    "median of H4 / highest median of the others",
    "",
    ({ draws }: Seen) => draws && draws.spreads.h4.p50 / Math.max(...kOthers.map((name) => draws.spreads[name].p50)),
  ),
  extreme_ratio: quantity(
    "least of H4 / most of the others",
    "",
    ({ draws }: Seen) => draws && draws.spreads.h4.min / Math.max(...kOthers.map((name) => draws.spreads[name].max)),
  ),
  ...grid(
    kHosts,
    ({ shared }: Seen, { name }) => shared[name],
    (label, host) => `${host.label}, ${label}`,
  )({ shared: quantity("where H1 to H3 share an uplink", "Gb/s", (rate) => rate) }, caseFirst),
  ratio_shared: quantity(
    "H4 / mean of the others, where they share an uplink",
    "",
    ({ shared }: Seen) => shared.h4 / mean(kOthers.map((name) => shared[name])),
  ),
  jain_shared: quantity("Jain's index, where H1 to H3 share an uplink", "", ({ shared }: Seen) =>
    jainIndex(kNames.map((name) => shared[name])),
  ),
};

const kUnfair: StatementsOn<typeof kQuantities> = [
  statement(
    "However, with PFC, there is unfairness.",
    "section 2.2",
    "where H1 to H3 share an uplink of T4, H4 gets more than their mean",
    [higher("ratio_shared")],
  ),
  statement(
    "Thus, H4 receives higher throughput than H1-H3.",
    "section 2.2",
    "over the draws of paths, the median of H4 is higher than each of the others'",
    [higher("median_ratio")],
  ),
  statement(
    "H4 gets as much as 20Gbps throughput, e.g. when ECMP maps all of H1-H3 to either P3 or P4.",
    "section 2.2",
    "20 Gb/s for H4 where H1 to H3 share an uplink",
    [printed("h4_shared", 20)],
  ),
  statement(
    "H4's minimum throughput is higher than the maximum throughput of H1-H3.",
    "section 2.2",
    "over the draws of paths",
    [higher("extreme_ratio")],
    "Where paths split two to one, the single flow has an input of T4 for itself, as H4 has, and the two get a third of the link each: H4's least is the others' most.",
  ),
];

const kFair: StatementsOn<typeof kQuantities> = [
  statement(
    "Figure 8 shows that DCQCN solves the unfairness problem depicted in Figure 3.",
    "section 3.2",
    "where H1 to H3 share an uplink of T4, H4 gets as much as their mean",
    [equal("ratio_shared", 1)],
  ),
  statement(
    "All four flows get equal share of the bottleneck bandwidth",
    "section 3.2",
    "over the draws of paths, the median of each is a quarter of 40 Gb/s",
    kHosts.map(({ name }) => equal(`${name}_median`, kLink / kHosts.length)),
  ),
  statement(
    "and there is little variance.",
    "section 3.2",
    "over the draws of paths, least and most of each are as its median",
    kHosts.map(({ name }) => little(`${name}_spread`)),
    "Marks come by chance, and the means are over 80 ms. In runs of 1 s with seeds 1 to 4, all are within 3.4% of 10 Gb/s.",
  ),
];

function experiment(figure: number, setting: Setting, title: string, statements: StatementsOn<typeof kQuantities>) {
  const { label, set } = kSettings[setting];
  const shared: Trial = {
    name: "shared",
    file: kFile,
    set: [...set, kStream, `topology.routes=${JSON.stringify(kOneUplink)}`],
  };
  return studyOf<Seen>()({
    ...dcqcnFigure(figure),
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
      see,
      sim_seconds: setting === "pfc" ? 10 : 14,
    },
    plots: ({ shared, draws }) => [
      plot(
        draws === undefined ? "H1 to H3 share an uplink" : "Median, least and most over the draws",
        ["sender"],
        ["throughput, Gb/s", 0, 25],
        [
          ...(draws === undefined
            ? []
            : [
                whiskers(
                  label,
                  kPlaces,
                  kNames.map((name) => draws.rates[name]),
                ),
              ]),
          { label: `${label}, one uplink`, x: kPlaces, y: kNames.map((name) => shared[name]), kind: "bars", color: 1 },
        ],
        {
          x_names: kHosts.map(({ label: host }, i) => ({ x: i, label: host })),
          levels: [{ label: "a quarter", value: kLink / kHosts.length }],
        },
      ),
    ],
    ...(setting === "dcqcn" && { alternative: ALPHA_RESET }),
  });
}

const kPlaces = kHosts.map((_, i) => i);

function see(runs: Runs): Seen {
  const of = (run: Evidence) => Object.fromEntries(kHosts.map(({ name, host }) => [name, rateFrom(run, host)]));
  const shared = of(runs.shared as Evidence) as Seen["shared"];
  const draws = repeats(runs, "draw").map(of);
  if (draws.length === 0) return { shared };
  const rates = byName(kNames, (name) => draws.map((one) => one[name] as number));
  return { shared, draws: { rates, spreads: byName(kNames, (name) => spread(rates[name])) } };
}

export const DCQCN_FIGURE_3 = experiment(3, "pfc", "PFC's unfairness to flows that share an input", kUnfair);
export const DCQCN_FIGURE_8 = experiment(8, "dcqcn", "fairness with DCQCN", kFair);
