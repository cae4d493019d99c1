/**
 * Figure 13 of the DCQCN paper, section 6.1: four settings of the rate increase and of marking, by what two senders make of them.
 *
 * Fairness is the difference of the two throughputs and Jain's index, oscillation the standard deviation of a flow's throughput by
 * means of 1 ms, as a share of its mean (coefficient of variation), the mean of both flows.
 */
import type { Curve, Plot } from "../../report/plot.js";
import { jainIndex } from "../../result/statistics.js";
import type { Evidence, Experiment, Observation, Quantity, Trace, TraceValues, Trial } from "../experiment.js";
import { between, describe, mean, movingMean, type Signal } from "../measure.js";
import { ALPHA_RESET } from "./alpha.js";
import { fluidRuns } from "./fluid.js";
import { DCQCN_PAPER } from "./paper.js";
import { kFairShare, kFile, kFlows, kLink, kStartChoice, kStarts, type StartName, throughput } from "./two_senders.js";

/** s */
const kJoined = 0.05;
const kSteady = 0.35;
const kEnd = 0.55;
const kLongEnd = 2.05;
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
const kNames = Object.keys(kSettings) as SettingName[];
const kStartNames = Object.keys(kStarts) as StartName[];

const kTimes = [
  "duration=550ms",
  "warmup=350ms",
  "traffic.1.start=50ms",
  "scale=80", // 550 ms take 44 s on the wire
];
const key = (setting: SettingName, start: StartName) => (start === "line" ? setting : `${setting}-low`);
const kTrials: Trial[] = kNames.flatMap((setting) =>
  kStartNames.map((start) => ({
    name: key(setting, start),
    file: kFile,
    set: [...kTimes, ...kSettings[setting].set, ...kStarts[start].set],
  })),
);
/** What (a) comes to from a start in between. */
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
  set: [...kTimes, ...kSettings.c.set, "duration=2.05s"],
  clocks: ["sim"],
};

const kQuantities: Record<string, Quantity> = {
  ...Object.fromEntries(
    kNames.flatMap((setting) =>
      kStartNames.flatMap((start): [string, Quantity][] => {
        const suffix = `${setting}_${start}`;
        const of = `(${setting}) ${kSettings[setting].label}, ${kStarts[start].label}`;
        return [
          [`difference_${suffix}`, { label: `${of}: difference of throughputs`, unit: "Gb/s" }],
          [`ratio_${suffix}`, { label: `${of}: lower / higher throughput`, unit: "" }],
          [`jain_${suffix}`, { label: `${of}: Jain's index`, unit: "" }],
          [`oscillation_${suffix}`, { label: `${of}: oscillation`, unit: "% of the mean" }],
        ];
      }),
    ),
  ),
  relief_b: { label: "difference in (b) / in (a), from 100 Mb/s", unit: "" },
  relief_c: { label: "difference in (c) / in (a), from 100 Mb/s", unit: "" },
  random_c: { label: "oscillation in (c) where packets are marked at random", unit: "% of the mean" },
  fluid_c: { label: "oscillation in (c) in the fluid model", unit: "% of the mean" },
  ratio_c_long: { label: "(c), from line rate, over 1.7 s: lower / higher throughput", unit: "" },
  oscillation_c_long: { label: "(c), from line rate, over 1.7 s: oscillation", unit: "% of the mean" },
  difference_a_half: { label: "(a), from 20 Gb/s: difference of throughputs", unit: "Gb/s" },
};

const kTraces: Record<string, Trace> = Object.fromEntries(
  kNames.map((setting): [string, Trace] => [
    `second_${setting}`,
    {
      title: `(${setting}) ${kSettings[setting].label}: second sender`,
      x_label: "time since the second sender's start, ms",
      y_label: "throughput, Gb/s",
      unit: "Gb/s",
      x_range: [0, (kEnd - kJoined) * 1000],
    },
  ]),
);

/** How words are read that are no numbers. */
const kUnfair = { most: 0.5 };
const kSimilar = { least: 0.8 };
const kAlleviates = { most: 0.5 };
const kUnstable = 10;

const kTooShort =
  "Chance leads the rates away from each other and back over hundreds of ms, so 200 ms show part of it. The table has 1.7 s, too, in virtual time.";

export const DCQCN_FIGURE_13: Experiment = {
  id: "dcqcn-fig13",
  paper: DCQCN_PAPER,
  place: "figure 13",
  title: "fairness and stability of two senders with four settings",
  setup:
    "Two greedy senders and a receiver on one switch, 40 Gb/s; the second starts 50 ms after the first. (a) T 1.5 ms, B 150 KB, all marked above 40 KB, g 1/16; (b) T 55 us and B 10 MB instead; (c) as (a), but 5 KB, 200 KB, 1%; (d) figure 14.",
  choices: [
    kStartChoice,
    "The paper's second sender starts after 500 ms. After 50 ms alone at line rate nothing is left of the first one's alpha, but for 0.03 in (d), so they are as good.",
    "Throughput is what arrives, with headers, preamble and gap. It is judged over 200 ms that begin 300 ms after the second sender's start: until then the model is still on its way in (c).",
    "Oscillation: standard deviation of the throughput by means of 1 ms, as a share of the mean; mean of both flows.",
    "g of (b) and (c) is not printed. It is that of the strawman, which they change in one point each.",
  ],
  quantities: kQuantities,
  statements: [
    {
      quote: "Figure 13(a) confirms that as the model predicts, there is unfairness between the two competing flows.",
      where: "section 6.1",
      reading: "from line rate, the lower throughput is at most half of the higher",
      checks: [{ quantity: "ratio_a_line", max: kUnfair.most }],
    },
    {
      quote: "Unfortunately we find that with these parameter values, the flows cannot converge",
      where: "section 5.2",
      reading: "from 100 Mb/s, the lower throughput is at most half of the higher",
      checks: [{ quantity: "ratio_a_low", max: kUnfair.most }],
    },
    {
      quote: "Next we verify that speeding up the rate increase timer alleviates the unfairness.",
      where: "section 6.1, figure 13(b)",
      reading:
        "from 100 Mb/s, where (a) is unfair on every clock, the throughputs differ by at most half as much as in (a)",
      checks: [{ quantity: "relief_b", max: kAlleviates.most }],
    },
    {
      quote: "RED-like marking alleviates the unfairness problem, even without changing the timer.",
      where: "section 6.1, figure 13(c)",
      reading: "the same of (c)",
      checks: [{ quantity: "relief_c", max: kAlleviates.most }],
    },
    {
      quote: "Figure 13(c) shows that the two flows, on average get similar throughput.",
      where: "section 6.1",
      reading: "the lower throughput is at least 0.8 of the higher, from line rate and from 100 Mb/s",
      checks: kStartNames.map((start) => ({ quantity: `ratio_c_${start}`, min: kSimilar.least })),
      remark: kTooShort,
    },
    {
      quote: "the throughput is unstable due to the randomness in marking",
      where: "section 6.1, figure 13(c)",
      reading: "where packets are marked one by one, oscillation in (c) from line rate is at least 10% of the mean",
      checks: [{ quantity: "random_c", min: kUnstable }],
      remark: kTooShort,
    },
    {
      quote: "However, we see a drawback that isn't shown by fluid model",
      where: "section 6.1, figure 13(c)",
      reading: "in the model, oscillation in (c) from line rate is less than half of that",
      checks: [{ quantity: "fluid_c", max: kUnstable / 2 }],
    },
    {
      quote:
        "We have also verified that the value of g = 1/256 works well in this scenario, as predicted by the fluid model.",
      where: "section 6.1",
      reading:
        "in (d), from line rate and from 100 Mb/s, the lower throughput is at least 0.8 of the higher, and oscillation is at most 10% of the mean",
      checks: kStartNames.flatMap((start) => [
        { quantity: `ratio_d_${start}`, min: kSimilar.least },
        { quantity: `oscillation_d_${start}`, max: kUnstable },
      ]),
    },
  ],
  traces: kTraces,
  network: {
    clocks: ["wire", "sim"],
    trials: [...kTrials, kHalf, kLong],
    observe: (runs) => {
      const { values, ...seen } = observe(runs);
      return { ...seen, values: { ...values, random_c: values.oscillation_c_line as number } };
    },
    sim_seconds: 16,
  },
  model: async (alternative) => {
    const { values, ...seen } = observe(await fluidRuns(kTrials, alternative));
    return { ...seen, values: { ...values, fluid_c: values.oscillation_c_line as number } };
  },
  alternative: ALPHA_RESET,
};

export function observe(runs: Readonly<Record<string, Evidence>>): Observation {
  const values: Record<string, number> = {};
  const traces: Record<string, TraceValues> = {};
  for (const setting of kNames) {
    for (const start of kStartNames) {
      const run = runs[key(setting, start)] as Evidence;
      const suffix = `${setting}_${start}`;
      const { difference, ratio, jain, oscillation } = compareFlows(run);
      values[`difference_${suffix}`] = difference;
      values[`ratio_${suffix}`] = ratio;
      values[`jain_${suffix}`] = jain;
      values[`oscillation_${suffix}`] = oscillation;
      if (start === "line") traces[`second_${setting}`] = traceOf(run);
    }
  }
  for (const setting of ["b", "c"] as const) {
    values[`relief_${setting}`] = (values[`difference_${setting}_low`] as number) / (values.difference_a_low as number);
  }
  const { [kHalf.name]: half, [kLong.name]: long } = runs;
  if (half !== undefined) values.difference_a_half = compareFlows(half).difference;
  if (long !== undefined) {
    const { ratio, oscillation } = compareFlows(long, kLongEnd);
    values.ratio_c_long = ratio;
    values.oscillation_c_long = oscillation;
  }
  const plots = kNames.flatMap((setting) =>
    kStartNames.map((start) => throughputPlot(setting, start, runs[key(setting, start)] as Evidence)),
  );
  return { values, plots, traces };
}

function compareFlows(run: Evidence, end = kEnd) {
  const steady = kFlows.map((flow) => {
    const { mean: average = 0, deviation = 0 } = describe(milliseconds(throughput(run, flow), end)) ?? {};
    return { average, oscillation: (100 * deviation) / average };
  });
  const averages = steady.map(({ average }) => average);
  const [lower, higher] = [Math.min(...averages), Math.max(...averages)];
  return {
    difference: higher - lower,
    ratio: lower / higher,
    jain: jainIndex(averages),
    oscillation: mean(steady.map(({ oscillation }) => oscillation)),
  };
}

/** Means of 1 ms each, from where it is judged. A sample is of the interval that ends with it. */
function milliseconds({ time, values }: Signal, end: number): number[] {
  const interval = (time[1] ?? 1) - (time[0] ?? 0);
  const samples = between({ time, values }, kSteady + interval / 2, end + interval / 2);
  const each = Math.round(kMillisecond / interval);
  return Array.from({ length: Math.floor(samples.length / each) }, (_, i) =>
    mean(samples.slice(i * each, (i + 1) * each)),
  );
}

function traceOf(run: Evidence): TraceValues {
  const { time, values } = movingMean(throughput(run, "second"), kSmooth);
  const from = time.findIndex((at) => at >= kJoined);
  return { x: time.slice(from).map((at) => (at - kJoined) * 1000), y: values.slice(from) };
}

function throughputPlot(setting: SettingName, start: StartName, run: Evidence): Plot {
  return {
    title: `(${setting}) ${kSettings[setting].label}, ${kStarts[start].label}: means of 1 ms`,
    x_label: "time, ms",
    y_label: "throughput, Gb/s",
    x_range: [0, kEnd * 1000],
    y_range: [0, kLink + 2],
    curves: kFlows.map((flow): Curve => {
      const { time, values } = movingMean(throughput(run, flow), kMillisecond);
      return { label: `${flow} sender`, x: time.map((at) => at * 1000), y: values };
    }),
    levels: [{ label: "fair share", value: kFairShare }],
  };
}
