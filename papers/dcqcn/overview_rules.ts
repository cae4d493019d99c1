/** Changes by the rules of Mellanox's overview in the place of the SIGCOMM paper's: shares, use and queue of two incasts. */

import { networkCounts } from "../../src/result/counts.js";
import { between, describe, evenness, firstTime, inUnits, movingMean, queue, rates } from "../../src/result/measure.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import { grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { OVERVIEW } from "./overview.js";

const kFile = "dcqcn/n-to-1.yaml";
const kQueue = "sw:h65:3";
/** Time from which rates count, and the end, s; width of means by which rates are compared. */
const kSteady = 0.05;
const kEnd = 0.1;
const kWidth = 0.001;
const kSeeds = 10;

const parameter = (name: string, value: boolean) => `congestion.parameters.${name}=${value}`;
const kRestart = [parameter("increase_restarts_counters", true)];
const kByNumber = [parameter("stage_by_increases", true)];
const kConstant = [parameter("increase_raises_rate", true), parameter("hyper_increase_scales", false)];

const kRules = {
  sigcomm: { label: "SIGCOMM's rules", set: [] },
  restart: { label: "counters restart each other", set: kRestart },
  by_number: { label: "stage by number of increases", set: kByNumber },
  constant: { label: "rate raised by a constant", set: kConstant },
  all: { label: "all three", set: [...kRestart, ...kByNumber, ...kConstant] },
  mlx5: { label: "firmware's values, SIGCOMM's rules", set: ["congestion.profile=mlx5"] },
  overview: { label: "firmware's values, all three", set: ["congestion.profile=mellanox-overview"] },
} as const;
const kNames = namesOf(kRules);
const kIncasts = [2, 8] as const;
const kCases = kIncasts.flatMap((senders) =>
  kNames.map((rule) => ({
    name: `${rule}_${senders}` as const,
    trial: `${rule}-${senders}`,
    label: `${senders}:1, ${kRules[rule].label}`,
    senders,
    rule,
  })),
);

/** All but the first begin at next to nothing, so that it is seen how soon they have their share. */
const kUneven = [
  "host.line_rate_start=false",
  "host.initial_rate=100Mbps",
  "topology.host_overrides.h1.line_rate_start=true",
];

function trialOf({ trial, senders, rule }: (typeof kCases)[number]): Trial {
  const from = Array.from({ length: senders }, (_, i) => `h${i + 1}`).join(", ");
  return { name: trial, file: kFile, set: [`traffic.0.from=[${from}]`, ...kUneven, ...kRules[rule].set] };
}

function lengths({ series }: Evidence) {
  return describe(between(inUnits(queue(series, kQueue), 1000), kSteady, kEnd));
}

const kNoNumber = "The overview says nothing of how much, so nothing is asked: the table has what each rule changes.";

export const OVERVIEW_RULES = studyOf<Runs>()({
  id: "dcqcn-overview-rules",
  paper: OVERVIEW,
  place: "Rate Increase",
  title: "the overview's rules of rate increase in the place of the SIGCOMM paper's",
  setup:
    "Two and eight senders and one receiver on one switch, 40 Gb/s, 100 ms; the first sender begins at line rate, the others at 100 Mb/s: the parameters of the SIGCOMM paper's figure 14 with each rule of the overview by itself and with all three, and the firmware's values with the rules of either.",
  choices: [
    "No statement is judged: the overview has no number. What is shown are medians of ten seeds in virtual time, second half of the run.",
    "A constant does not scale, so step i of hyper increase is R_HAI with that rule, not i R_HAI.",
    "With figure 14's values 10 MB take 2 ms at line rate and the timer 55 us: where counters restart each other, the byte counter never expires.",
  ],
  quantities: grid(
    kCases,
    (runs: Runs, { trial }) => runs[trial],
    (label, one) => `${one.label}: ${label}`,
  )({
    near: quantity("slowest rate first has half of the fastest (means of 1 ms)", "ms", ({ series }) => {
      const even = evenness(Object.values(rates(series)).map((one) => movingMean(one, kWidth)));
      return 1000 * firstTime(even, (epsilon) => epsilon >= 0.5, kWidth / 2);
    }),
    jain: quantity("Jain's index", "", ({ result }) => result.totals.jain),
    used: quantity("of what headers leave of the link", "%", ({ result: { totals } }) =>
      totals.goodput_limit_bps === undefined ? undefined : (100 * totals.goodput_bps) / totals.goodput_limit_bps,
    ),
    queue_p50: quantity("queue, p50", "KB", (run) => lengths(run)?.p50),
    queue_p99: quantity("queue, p99", "KB", (run) => lengths(run)?.p99),
    pauses: quantity("PFC frames, whole run", "frames", ({ result }) => networkCounts(result).pfc_sent),
  }),
  statements: [
    statement(
      "Rate increase logic is very similar to the one defined by QCN.",
      "Rate Increase",
      "no number",
      [],
      kNoNumber,
    ),
    statement(
      "Rate increase event occurs after predefined time period was passed since previous rate increase or predefined amount of bytes were send since previous rate increase, given that no rate decrease event occurred meanwhile.",
      "Rate Increase",
      "no number; run as increase_restarts_counters",
      [],
      kNoNumber,
    ),
    statement(
      "After the number of rate increase events in a phase passed predefined threshold, the logic moves to the next phase (simplified explanation).",
      "Rate Increase",
      "no number; run as stage_by_increases",
      [],
      kNoNumber,
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: kCases.map(trialOf),
    seeds: kSeeds,
    see: (runs) => runs,
    sim_seconds: 3,
  },
  plots: (runs) =>
    kIncasts.map((senders) => {
      const own = kCases.filter((one) => one.senders === senders);
      return plot(
        `${senders}:1: p99 of the queue`,
        [""],
        ["queue, KB"],
        [
          {
            label: "",
            kind: "bars",
            x: own.map((_, x) => x),
            y: own.map(({ trial }) => lengths(runs[trial] as Evidence)?.p99 ?? 0),
          },
        ],
        { x_names: own.map(({ rule }, x) => ({ x, label: kRules[rule].label })) },
      );
    }),
});
