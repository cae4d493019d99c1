/**
 * Figure 13 of the DCQCN paper, section 6.1: four settings of the rate increase and of marking, by what two senders make of them.
 *
 * Fairness is the difference of the two throughputs and Jain's index, oscillation the standard deviation of a flow's throughput by
 * means of 1 ms, as a share of its mean (coefficient of variation), the mean of both flows.
 */

import { describe, mean, movingMean, overMilliseconds } from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import { jainIndex } from "../../src/result/statistics.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import { atLeast, atMost, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { ALPHA_RESET } from "./alpha.js";
import { fluidRuns } from "./fluid.js";
import { dcqcnFigure } from "./paper.js";
import {
  kFairShare,
  kFile,
  kFlows,
  kLink,
  kStartChoice,
  kStarts,
  milliseconds,
  type StartName,
  throughput,
} from "./two_senders.js";

/** s */
const kJoined = 0.5;
const kSteady = 0.8;
const kEnd = 1;
const kLongEnd = 2.5;
const kMillisecond = 0.001;
const kSmooth = 0.005;

const kCutOff = ["switch.ecn.kmin=40KB", "switch.ecn.kmax=40KB", "switch.ecn.pmax=1"];
const kStrawman = ["congestion.parameters.rpg_time_reset=1.5ms", "congestion.parameters.rpg_byte_reset=150KB"];
const kLargeGain = ["congestion.parameters.dce_tcp_g=960"];

const kSettings = {
  a: { label: "strawman", set: [...kCutOff, ...kStrawman, ...kLargeGain] },
  b: { label: "fast timer", set: [...kCutOff, ...kLargeGain] },
  c: { label: "marking like RED", set: [...kStrawman, ...kLargeGain] },
  d: { label: "both, g 1/256", set: [] },
} as const;
type SettingName = keyof typeof kSettings;
const kNames = namesOf(kSettings);
const kStartNames = namesOf(kStarts);

const kTimes = [
  "duration=1s",
  "warmup=800ms",
  "traffic.1.start=500ms",
  "scale=80", // 1 s takes 80 s on the wire
];
const key = (setting: SettingName, start: StartName) => (start === "line" ? setting : `${setting}-low`);
const kTrials: Trial[] = kNames.flatMap((setting) =>
  kStartNames.map((start) => ({
    name: key(setting, start),
    file: kFile,
    set: [...kTimes, ...kSettings[setting].set, ...kStarts[start].set],
  })),
);
/** Trial of (a) from a start in between. */
const kHalf: Trial = {
  name: "a-half",
  file: kFile,
  set: [
    ...kTimes,
    ...kSettings.a.set,
    "topology.host_overrides.h2.line_rate_start=false",
    "topology.host_overrides.h2.initial_rate=20Gbps",
  ],
  clocks: ["sim"],
};
/** (c) for longer than chance takes to even out. */
const kLong: Trial = {
  name: "c-long",
  file: kFile,
  set: [...kTimes, ...kSettings.c.set, "duration=2.5s"],
  clocks: ["sim"],
};

/** Shares of two flows, and the run that shows them. */
interface Pair {
  run: Evidence;
  /** Difference of the throughputs, Gb/s. */
  difference: number;
  ratio: number;
  jain: number;
  /** % of the mean. */
  oscillation: number;
}

type Case = `${SettingName}_${StartName}`;
interface Seen {
  pairs: Readonly<Record<Case, Pair>>;
  /** Only virtual time has these runs. */
  half: Pair | undefined;
  long: Pair | undefined;
  fluid: boolean;
}
const kCases = kNames.flatMap((setting) =>
  kStartNames.map((start) => ({
    setting,
    start,
    name: `${setting}_${start}` as const,
    title: `(${setting}) ${kSettings[setting].label}, ${kStarts[start].label}`,
  })),
);

function see(runs: Runs, fluid = false): Seen {
  const pairs = kCases.map(({ setting, start, name }) => [name, compareFlows(runs[key(setting, start)] as Evidence)]);
  const { [kHalf.name]: half, [kLong.name]: long } = runs;
  return {
    pairs: Object.fromEntries(pairs),
    half: half && compareFlows(half),
    long: long && compareFlows(long, kLongEnd),
    fluid,
  };
}

const kOfMean = "% of the mean";
const relief =
  (setting: "b" | "c") =>
  ({ pairs }: Seen) =>
    pairs[`${setting}_low`].difference / pairs.a_low.difference;

/** Numbers that words without numbers stand for. */
const kUnfair = { most: 0.5 };
const kSimilar = { least: 0.8 };
const kAlleviates = { most: 0.5 };
const kUnstable = 10;

const kTooShort =
  "Chance leads the rates away from each other and back over hundreds of ms, so 200 ms show part of it. The table has 1.7 s, too, in virtual time.";

export const DCQCN_FIGURE_13 = studyOf<Seen>()({
  ...dcqcnFigure(13),
  title: "fairness and stability of two senders with four settings",
  setup:
    "Two greedy senders and a receiver on one switch, 40 Gb/s; the second starts 500 ms after the first, as in the paper. (a) T 1.5 ms, B 150 KB, all marked above 40 KB, g 1/16; (b) T 55 us and B 10 MB instead; (c) as (a), but 5 KB, 200 KB, 1%; (d) figure 14.",
  choices: [
    kStartChoice,
    "Throughput is what arrives, with headers, preamble and gap. It is judged over 200 ms that begin 300 ms after the second sender's start: until then the model is still on its way in (c).",
    "Oscillation: standard deviation of the throughput by means of 1 ms, as a share of the mean; mean of both flows.",
    "g of (b) and (c) is not printed. It is that of the strawman, which they change in one point each.",
  ],
  quantities: {
    ...grid(
      kCases,
      ({ pairs }: Seen, { name }) => pairs[name],
      (label, { title }) => `${title}: ${label}`,
    )({
      difference: quantity("difference of throughputs", "Gb/s", ({ difference }) => difference),
      ratio: quantity("lower / higher throughput", "", ({ ratio }) => ratio),
      jain: quantity("Jain's index", "", ({ jain }) => jain),
      oscillation: quantity("oscillation", kOfMean, ({ oscillation }) => oscillation),
    }),
    relief_b: quantity("difference in (b) / in (a), from 100 Mb/s", "", relief("b")),
    relief_c: quantity("difference in (c) / in (a), from 100 Mb/s", "", relief("c")),
    random_c: quantity("oscillation in (c) where packets are marked at random", kOfMean, ({ fluid, pairs }) =>
      fluid ? undefined : pairs.c_line.oscillation,
    ),
    fluid_c: quantity("oscillation in (c) in the fluid model", kOfMean, ({ fluid, pairs }) =>
      fluid ? pairs.c_line.oscillation : undefined,
    ),
    ratio_c_long: quantity("(c), from line rate, over 1.7 s: lower / higher throughput", "", ({ long }) => long?.ratio),
    oscillation_c_long: quantity(
      "(c), from line rate, over 1.7 s: oscillation",
      kOfMean,
      ({ long }) => long?.oscillation,
    ),
    difference_a_half: quantity("(a), from 20 Gb/s: difference of throughputs", "Gb/s", ({ half }) => half?.difference),
  },
  statements: [
    statement(
      "Figure 13(a) confirms that as the model predicts, there is unfairness between the two competing flows.",
      "section 6.1",
      "from line rate, the lower throughput is at most half of the higher",
      [atMost("ratio_a_line", kUnfair.most)],
    ),
    statement(
      "Unfortunately we find that with these parameter values, the flows cannot converge",
      "section 5.2",
      "from 100 Mb/s, the lower throughput is at most half of the higher",
      [atMost("ratio_a_low", kUnfair.most)],
    ),
    statement(
      "Next we verify that speeding up the rate increase timer alleviates the unfairness.",
      "section 6.1, figure 13(b)",
      "from 100 Mb/s, where (a) is unfair on every clock, the throughputs differ by at most half as much as in (a)",
      [atMost("relief_b", kAlleviates.most)],
    ),
    statement(
      "RED-like marking alleviates the unfairness problem, even without changing the timer.",
      "section 6.1, figure 13(c)",
      "the same of (c)",
      [atMost("relief_c", kAlleviates.most)],
    ),
    statement(
      "Figure 13(c) shows that the two flows, on average get similar throughput.",
      "section 6.1",
      "the lower throughput is at least 0.8 of the higher, from line rate and from 100 Mb/s",
      kStartNames.map((start) => atLeast(`ratio_c_${start}`, kSimilar.least)),
      kTooShort,
    ),
    statement(
      "the throughput is unstable due to the randomness in marking",
      "section 6.1, figure 13(c)",
      "where packets are marked one by one, oscillation in (c) from line rate is at least 10% of the mean",
      [atLeast("random_c", kUnstable)],
      kTooShort,
    ),
    statement(
      "However, we see a drawback that isn't shown by fluid model",
      "section 6.1, figure 13(c)",
      "in the model, oscillation in (c) from line rate is less than half of that",
      [atMost("fluid_c", kUnstable / 2)],
    ),
    statement(
      "We have also verified that the value of g = 1/256 works well in this scenario, as predicted by the fluid model.",
      "section 6.1",
      "in (d), from line rate and from 100 Mb/s, the lower throughput is at least 0.8 of the higher, and oscillation is at most 10% of the mean",
      kStartNames.flatMap((start) => [
        atLeast(`ratio_d_${start}`, kSimilar.least),
        atMost(`oscillation_d_${start}`, kUnstable),
      ]),
    ),
  ],
  traces: {
    second_a: trace("a"),
    second_b: trace("b"),
    second_c: trace("c"),
    second_d: trace("d"),
  },
  plots: ({ pairs }) => kCases.map(({ name, title }) => throughputPlot(title, pairs[name].run)),
  network: {
    clocks: ["wire", "sim"],
    trials: [...kTrials, kHalf, kLong],
    see: (runs) => see(runs),
    sim_seconds: 25,
  },
  model: async (alternative) => see(await fluidRuns(kTrials, alternative), true),
  alternative: ALPHA_RESET,
});

function compareFlows(run: Evidence, end = kEnd): Pair {
  const steady = kFlows.map((flow) => {
    const { mean: average = 0, deviation = 0 } = describe(milliseconds(throughput(run, flow), kSteady, end)) ?? {};
    return { average, oscillation: (100 * deviation) / average };
  });
  const averages = steady.map(({ average }) => average);
  const [lower, higher] = [Math.min(...averages), Math.max(...averages)];
  return {
    run,
    difference: higher - lower,
    ratio: lower / higher,
    jain: jainIndex(averages),
    oscillation: mean(steady.map(({ oscillation }) => oscillation)),
  };
}

function trace(setting: SettingName) {
  return {
    title: `(${setting}) ${kSettings[setting].label}: second sender`,
    x_label: "time since the second sender's start, ms",
    y_label: "throughput, Gb/s",
    unit: "Gb/s",
    x_range: [0, (kEnd - kJoined) * 1000] as const,
    of: ({ pairs }: Seen) => smoothed(pairs[`${setting}_line`].run),
  };
}

function smoothed(run: Evidence) {
  const { time, values } = movingMean(throughput(run, "second"), kSmooth);
  const from = time.findIndex((at) => at >= kJoined);
  return overMilliseconds({ time: time.slice(from).map((at) => at - kJoined), values: values.slice(from) });
}

function throughputPlot(title: string, run: Evidence): Plot {
  return plot(
    `${title}: means of 1 ms`,
    ["time, ms", 0, kEnd * 1000],
    ["throughput, Gb/s", 0, kLink + 2],
    kFlows.map((flow) => ({
      label: `${flow} sender`,
      ...overMilliseconds(movingMean(throughput(run, flow), kMillisecond)),
    })),
    { levels: [{ label: "fair share", value: kFairShare }] },
  );
}
