/**
 * Figure 10 of the DCQCN paper, section 6.1: a second sender joins a first, and the fluid model follows its rate.
 *
 * The rate is R_C, which all clocks have: the reaction point's on wire and sim, equation 9's in the model.
 */

import { between, describe, firstTime, movingMean, overMilliseconds, type Signal } from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import { byName, grid, namesOf, plot, quantity, type Runs, statement, studyOf, trace } from "../engine/study.js";
import { ALPHA_RESET } from "./alpha.js";
import { CHANCE_OF_MARKS } from "./causes.js";
import { fluidRuns } from "./fluid.js";
import { dcqcnFigure } from "./paper.js";
import {
  type FlowName,
  kFairShare,
  kFile,
  kFlows,
  kLink,
  kSince,
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
/** Difference between two curves that is still "closely", Gb/s: a tenth of the fair share. */
const kClosely = kFairShare / 10;

const kNames = namesOf(kStarts);
const kTrials: Trial[] = kNames.map((name) => ({ name, file: kFile, set: kStarts[name].set }));

/** Sending rates, by the second sender's start. */
interface Joined {
  run: Evidence;
  /** Means of 1 ms from the second sender's start on, Gb/s. */
  rates: Readonly<Record<FlowName, Signal>>;
}
type Seen = Readonly<Record<StartName, Joined>>;

function see(runs: Runs): Seen {
  return byName(kNames, (name) => {
    const run = runs[name] as Evidence;
    return { run, rates: byName(kFlows, (flow) => rateAfterStart(run, flow)) };
  });
}

const settled = (rate: Signal) => describe(between(rate, kSettled, kShown));

const traceOf = (title: string, start: StartName, flow: FlowName) =>
  trace(title, [kSince, 0, kShown * 1000], ["sending rate", "Gb/s"], (seen: Seen) =>
    overMilliseconds(seen[start].rates[flow]),
  );

/** Chance decides which packets are marked. */
const kSeeds = 10;
const kChance = "Simulations with the seeds 1 to 5 are 0.9 to 3.2 Gb/s from each other.";

export const DCQCN_FIGURE_10 = studyOf<Seen>()({
  ...dcqcnFigure(10),
  title: "the second of two senders, and the fluid model",
  setup:
    "Two greedy senders and a receiver on one switch, 40 Gb/s, parameters of figure 14. The first sender starts at 0, the second 10 ms later; its rate over the next 100 ms.",
  choices: [
    "The sending rate is R_C, by means of 1 ms, on every clock. What the paper's hardware was asked for it does not say.",
    kStartChoice,
    "Streams that nobody acknowledges, as all three clocks have them; nothing is lost.",
    "The model counts packets of 1024 bytes of payload, as the others send them, and takes tau* = 54 us: CNP interval and propagation.",
    `Marks come by chance: in virtual time ${kSeeds} seeds run, and the median of their distances is judged.`,
    "Closely, well: the mean of the absolute difference is at most 2 Gb/s, a tenth of the fair share.",
  ],
  quantities: grid(
    kNames,
    (seen: Seen, name) => seen[name].rates,
    (label, name) => label.replace("*", name === "line" ? "" : `, ${kStarts[name].label}`),
  )({
    reached: quantity(
      "second sender first has 90% of the fair share*, after",
      "ms",
      ({ second }) => 1000 * firstTime(second, (gbps) => gbps >= 0.9 * kFairShare, kCut),
    ),
    first: quantity("first sender*, mean of 50 to 100 ms", "Gb/s", ({ first }) => settled(first)?.mean),
    first_deviation: quantity(
      "first sender*, its standard deviation",
      "Gb/s",
      ({ first }) => settled(first)?.deviation,
    ),
    second: quantity("second sender*, mean of 50 to 100 ms", "Gb/s", ({ second }) => settled(second)?.mean),
    second_deviation: quantity(
      "second sender*, its standard deviation",
      "Gb/s",
      ({ second }) => settled(second)?.deviation,
    ),
  }),
  statements: [
    statement(
      "We see that the model closely matches the firmware implementation.",
      "section 6.1",
      "over the first 100 ms the second sender's rate is at most 2 Gb/s from the model's in the mean",
      [{ trace: "second", clock: "model", most: kClosely }],
      kChance,
      CHANCE_OF_MARKS,
    ),
    statement(
      "Fluid model closely matches implementation.",
      "figure 10",
      "the same where the second sender begins as in the model of section 5.2, from next to nothing",
      [{ trace: "second_low", clock: "model", most: kClosely }],
      kChance,
      CHANCE_OF_MARKS,
    ),
    statement(
      "The first step is to show that the fluid model is a good representation of the implementation.",
      "section 6.1",
      "the first sender's rate, too, is at most 2 Gb/s from the model's in the mean",
      [{ trace: "first", clock: "model", most: kClosely }],
      kChance,
      CHANCE_OF_MARKS,
    ),
    statement(
      "Experiments show that the fluid model matches the implementation quite well.",
      "section 5.1",
      "on the other clocks, too, the second sender's rate is at most 2 Gb/s from that in virtual time in the mean",
      [{ trace: "second", clock: "sim", most: kClosely }],
      kChance,
      CHANCE_OF_MARKS,
    ),
  ],
  traces: {
    second: traceOf("Second sender", "line", "second"),
    first: traceOf("First sender", "line", "first"),
    second_low: traceOf("Second sender, from 100 Mb/s", "low", "second"),
    first_low: traceOf("First sender, the second from 100 Mb/s", "low", "first"),
  },
  plots: (seen) => kNames.map((name) => ratePlot(name, seen[name].run)),
  network: { clocks: ["wire", "sim"], trials: kTrials, seeds: kSeeds, see, sim_seconds: 2 },
  model: async (alternative) => see(await fluidRuns(kTrials, alternative)),
  alternative: ALPHA_RESET,
});

/** R_C from the second sender's start on, smoothed; times from that start. */
function rateAfterStart(run: Evidence, flow: FlowName): Signal {
  const { time, values } = sendingRate(run, flow);
  const from = time.findIndex((at) => at >= kJoined - run.series.interval_s / 2);
  const after = { time: time.slice(from).map((at) => at - kJoined), values: values.slice(from) };
  return movingMean(after, kWindow);
}

function ratePlot(name: StartName, run: Evidence): Plot {
  return plot(
    `Sending rates, the second sender ${kStarts[name].label}`,
    ["time, ms", 0, (kJoined + kShown) * 1000],
    ["sending rate, Gb/s", 0, kLink + 2],
    kFlows.map((flow) => ({
      label: `${flow} sender`,
      ...overMilliseconds(movingMean(sendingRate(run, flow), kWindow)),
    })),
    { levels: [{ label: "fair share", value: kFairShare }] },
  );
}
