/**
 * Figures 3 and 8 of the DCQCN paper, sections 2.2 and 3.2: one sender under each ToR, and a receiver under the fourth sender's.
 * PFC shares by input ports, DCQCN by flows.
 */
import { mean } from "simple-statistics";
import { jainIndex, type Spread, spread } from "../../src/result/statistics.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import { caseFirst, grid, plot, quantity, type Runs, type StatementsOn, statement, studyOf } from "../engine/study.js";
import { ALPHA_RESET } from "./alpha.js";
import { CHANCE_OF_MARKS, SHARED_INPUTS } from "./causes.js";
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
  transferRates,
} from "./testbed.js";

const kFile = "dcqcn/unfairness.yaml";
const kDraws = 20;
const kReceiver = "h4-2";

const kHosts = [
  { name: "h1", host: "h1-1", label: "H1" },
  { name: "h2", host: "h2-1", label: "H2" },
  { name: "h3", host: "h3-1", label: "H3" },
  { name: "h4", host: "h4-1", label: "H4" },
] as const;

/** Bytes, and the run that has some 50 of them for each host, of which the warm-up is not looked at; s. */
const kTransfer = 4e6;
const kDuration = "duration=190ms";
const kWarmup = 0.02;

/** The paper's worst case: H1, H2 and H3 come through one uplink of T4. */
const kOneUplink = [
  { from: "h1-1", to: kReceiver, via: ["t1", "l1", "s1", "l3", "t4"] },
  { from: "h2-1", to: kReceiver, via: ["t2", "l2", "s2", "l3", "t4"] },
  { from: "h3-1", to: kReceiver, via: ["t3", "l3", "t4"] },
];

type Host = (typeof kHosts)[number]["name"];

interface Seen {
  /** Throughputs while H1 to H3 share an uplink, Gb/s. */
  shared: Readonly<Record<Host, number>>;
  /** Transfers of 4 MB over all draws of paths, Gb/s; the wire has none. */
  draws?: Readonly<Record<Host, Transfers>>;
}

/** Figures over the throughputs of all, Gb/s. */
interface Transfers extends Pick<Spread, "min" | "p50" | "max"> {
  count: number;
}

const kNames = kHosts.map(({ name }) => name);
const kOthers = kNames.filter((name) => name !== "h4");

const kQuantities = {
  ...grid(
    kHosts,
    ({ draws }: Seen, { name }) => draws?.[name],
    (label, host) => `${host.label}, ${label}`,
  )(
    {
      transfers: quantity(`transfers of 4 MB in ${kDraws} draws of paths`, "", ({ count }) => count),
      least: quantity("least throughput of a transfer", "Gb/s", ({ min }) => min),
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
    ({ draws }: Seen) => draws && draws.h4.p50 / Math.max(...kOthers.map((name) => draws[name].p50)),
  ),
  extreme_ratio: quantity(
    "least of H4 / most of the others",
    "",
    ({ draws }: Seen) => draws && draws.h4.min / Math.max(...kOthers.map((name) => draws[name].max)),
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
    "over transfers in all draws of paths, the median of H4 is higher than each of the others'",
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
    "over transfers in all draws of paths",
    [higher("extreme_ratio")],
    undefined,
    SHARED_INPUTS,
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
    "over transfers in all draws of paths, the median of each is a quarter of 40 Gb/s",
    kHosts.map(({ name }) => equal(`${name}_median`, kLink / kHosts.length)),
  ),
  statement(
    "and there is little variance.",
    "section 3.2",
    "over transfers in all draws of paths, least and most of each are as its median",
    kHosts.map(({ name }) => little(`${name}_spread`)),
    "In the mean of 1 s, with seeds 1 to 4, all are within 3.4% of 10 Gb/s; a transfer of 4 MB takes 3.5 ms.",
    CHANCE_OF_MARKS,
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
      "Least, median and most are over transfers of 4 MB, as in the paper, which has 1000 of each host: each 4 MB that a host has delivered after the 4 MB before, in runs of 190 ms, of which 20 ms are warm-up. Each run has other paths.",
      "The wire has the case of one uplink alone: chance in its paths would need as many runs.",
      kStreams,
    ],
    quantities: kQuantities,
    statements,
    network: {
      clocks: ["wire", "sim"],
      trials: [shared, ...repeated("draw", { file: kFile, set: [...set, kDuration], clocks: ["sim"] }, kDraws)],
      see,
      sim_seconds: setting === "pfc" ? 20 : 28,
    },
    plots: ({ shared, draws }) => [
      plot(
        draws === undefined ? "H1 to H3 share an uplink" : "Median, least and most of the transfers",
        ["sender"],
        ["throughput, Gb/s", 0, 25],
        [
          ...(draws === undefined
            ? []
            : [
                {
                  label,
                  kind: "bars" as const,
                  x: kPlaces,
                  y: kNames.map((name) => draws[name].p50),
                  low: kNames.map((name) => draws[name].min),
                  high: kNames.map((name) => draws[name].max),
                },
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
  const shared = byHost(({ host }) => rateFrom(runs.shared as Evidence, host));
  const draws = repeats(runs, "draw");
  return draws.length === 0 ? { shared } : { shared, draws: byHost(({ host }) => transfersOf(draws, host)) };
}

function byHost<Value>(make: (host: (typeof kHosts)[number]) => Value): Record<Host, Value> {
  return Object.fromEntries(kHosts.map((host) => [host.name, make(host)])) as Record<Host, Value>;
}

function transfersOf(draws: readonly Evidence[], host: string): Transfers {
  const all = draws.flatMap((run) => transferRates(run, host, kTransfer, kWarmup));
  return { count: all.length, ...spread(all) };
}

export const DCQCN_FIGURE_3 = experiment(3, "pfc", "PFC's unfairness to flows that share an input", kUnfair);
export const DCQCN_FIGURE_8 = experiment(8, "dcqcn", "fairness with DCQCN", kFair);
