/**
 * Figure 10 of the DCQCN paper, section 6.1: a second sender joins a first, and the fluid model follows its rate.
 *
 * The rate is R_C, which all clocks have: the reaction point's on wire and sim, equation 9's in the model.
 */
import type { Curve, Plot } from "../../report/plot.js";
import type { Evidence, Experiment, Observation, Quantity, Trace, TraceValues, Trial } from "../experiment.js";
import { between, describe, firstTime, known, movingMean, type Signal } from "../measure.js";
import { ALPHA_RESET } from "./alpha.js";
import { fluidRuns } from "./fluid.js";
import { DCQCN_PAPER } from "./paper.js";
import {
  type FlowName,
  kFairShare,
  kFile,
  kFlows,
  kLink,
  kStartChoice,
  kStarts,
  type StartName,
  sendingRate,
} from "./two_senders.js";

/** When the second sender starts, and how long it is looked at, s. */
const kJoined = 0.01;
const kShown = 0.1;
/** Saw teeth that are not looked at, s. */
const kWindow = 0.001;
/** The first cuts are over, s after the start. */
const kCut = 0.005;
/** Rates have settled, s after the start. */
const kSettled = 0.05;
/** What "closely" may leave between two curves, Gb/s: a tenth of the fair share. */
const kClosely = kFairShare / 10;

const kNames = Object.keys(kStarts) as StartName[];
const kTrials: Trial[] = kNames.map((name) => ({ name, file: kFile, set: kStarts[name].set }));

const trace = (title: string): Trace => ({
  title,
  x_label: "time since the second sender's start, ms",
  y_label: "sending rate, Gb/s",
  unit: "Gb/s",
  x_range: [0, kShown * 1000],
});

const kTraces: Record<string, Trace> = {
  second: trace("Second sender"),
  first: trace("First sender"),
  second_low: trace("Second sender, from 100 Mb/s"),
  first_low: trace("First sender, the second from 100 Mb/s"),
};

const kQuantities: Record<string, Quantity> = Object.fromEntries(
  kNames.flatMap((name): [string, Quantity][] => {
    const suffix = name === "line" ? "" : `, ${kStarts[name].label}`;
    return [
      [`reached_${name}`, { label: `second sender first has 90% of the fair share${suffix}, after`, unit: "ms" }],
      ...kFlows.flatMap((flow): [string, Quantity][] => [
        [`${flow}_${name}`, { label: `${flow} sender${suffix}, mean of 50 to 100 ms`, unit: "Gb/s" }],
        [`${flow}_deviation_${name}`, { label: `${flow} sender${suffix}, its standard deviation`, unit: "Gb/s" }],
      ]),
    ];
  }),
);

const kChance =
  "Marks come by chance: simulations with the seeds 1 to 5 are 1.0 to 2.1 Gb/s from the model, and 0.9 to 3.2 from each other.";

export const DCQCN_FIGURE_10: Experiment = {
  id: "dcqcn-fig10",
  paper: DCQCN_PAPER,
  place: "figure 10",
  title: "the second of two senders, and the fluid model",
  setup:
    "Two greedy senders and a receiver on one switch, 40 Gb/s, parameters of figure 14. The first sender starts at 0, the second 10 ms later; its rate over the next 100 ms.",
  choices: [
    "The sending rate is R_C, by means of 1 ms, on every clock. What the paper's hardware was asked for it does not say.",
    kStartChoice,
    "Streams that nobody acknowledges, as all three clocks have them; nothing is lost.",
    "The model counts packets of 1024 bytes of payload, as the others send them, and takes tau* = 54 us: CNP interval and propagation.",
    "Closely, well: the mean of the absolute difference is at most 2 Gb/s, a tenth of the fair share.",
  ],
  quantities: kQuantities,
  statements: [
    {
      quote: "We see that the model closely matches the firmware implementation.",
      where: "section 6.1",
      reading: "over the first 100 ms the second sender's rate is at most 2 Gb/s from the model's in the mean",
      checks: [{ trace: "second", clock: "model", most: kClosely }],
      remark: kChance,
    },
    {
      quote: "Fluid model closely matches implementation.",
      where: "figure 10",
      reading: "the same where the second sender begins as in the model of section 5.2, from next to nothing",
      checks: [{ trace: "second_low", clock: "model", most: kClosely }],
      remark: kChance,
    },
    {
      quote: "The first step is to show that the fluid model is a good representation of the implementation.",
      where: "section 6.1",
      reading: "the first sender's rate, too, is at most 2 Gb/s from the model's in the mean",
      checks: [{ trace: "first", clock: "model", most: kClosely }],
      remark: kChance,
    },
    {
      quote: "Experiments show that the fluid model matches the implementation quite well.",
      where: "section 5.1",
      reading:
        "on the other clocks, too, the second sender's rate is at most 2 Gb/s from that in virtual time in the mean",
      checks: [{ trace: "second", clock: "sim", most: kClosely }],
      remark: kChance,
    },
  ],
  traces: kTraces,
  network: { clocks: ["wire", "sim"], trials: kTrials, observe, sim_seconds: 2 },
  model: async (alternative) => observe(await fluidRuns(kTrials, alternative)),
  alternative: ALPHA_RESET,
};

export function observe(runs: Readonly<Record<string, Evidence>>): Observation {
  const values: Record<string, number | undefined> = {};
  const traces: Record<string, TraceValues> = {};
  for (const name of kNames) {
    for (const flow of kFlows) {
      const rate = rateAfterStart(runs[name] as Evidence, flow);
      const figures = describe(between(rate, kSettled, kShown));
      values[`${flow}_${name}`] = figures?.mean;
      values[`${flow}_deviation_${name}`] = figures?.deviation;
      if (flow === "second")
        values[`reached_${name}`] = 1000 * firstTime(rate, (gbps) => gbps >= 0.9 * kFairShare, kCut);
      traces[name === "line" ? flow : `${flow}_low`] = traceOf(rate);
    }
  }
  return { values: known(values), plots: kNames.map((name) => ratePlot(name, runs[name] as Evidence)), traces };
}

/** R_C from the second sender's start on, smoothed; times from that start. */
function rateAfterStart(run: Evidence, flow: FlowName): Signal {
  const { time, values } = sendingRate(run, flow);
  const from = time.findIndex((at) => at >= kJoined - run.series.interval_s / 2);
  const after = { time: time.slice(from).map((at) => at - kJoined), values: values.slice(from) };
  return movingMean(after, kWindow);
}

function traceOf({ time, values }: Signal): TraceValues {
  return { x: time.map((at) => at * 1000), y: values };
}

function ratePlot(name: StartName, run: Evidence): Plot {
  return {
    title: `Sending rates, the second sender ${kStarts[name].label}`,
    x_label: "time, ms",
    y_label: "sending rate, Gb/s",
    x_range: [0, (kJoined + kShown) * 1000],
    y_range: [0, kLink + 2],
    curves: kFlows.map((flow): Curve => {
      const { time, values } = movingMean(sendingRate(run, flow), kWindow);
      return { label: `${flow} sender`, x: time.map((at) => at * 1000), y: values };
    }),
    levels: [{ label: "fair share", value: kFairShare }],
  };
}
