/** Two reaction points at one bottleneck of 1 Gb/s, run as packets: what the figures of Shu et al. share, measured and drawn. */

import { evenness, firstTime, inUnits, movingMean, queue, rates, type Signal } from "../../src/result/measure.js";
import type { Curve, Plot } from "../../src/result/report/plot.js";
import type { Alternative, Evidence, Trial } from "../engine/experiment.js";
import { type Axis, plot } from "../engine/study.js";
import { FAIR, LINK } from "./convergence.js";

export const BOTTLENECK = "left:right:3";
export const SET_POINT = 64; // Q_eq, KB
export const BUFFER = 512; // Q_max, KB
export const END = 20; // s
/** Noise of the rates that is not looked at when they are compared, s. */
export const WINDOW = 0.5;
/** The queue counts as steady from here on, s. */
export const STEADY = 1;
export const DUMBBELL: Trial = { name: "qcn", file: "qcn/shu-dumbbell.yaml", set: [] };
export const SETUP =
  "Two reaction points behind one link of 1 Gb/s, Q_eq 64 KB, Q_max 512 KB, w 2, G_d 1/128, R_AI 0.5 Mb/s, byte counter 150 KB, timer 15 ms, 20 s.";
export const CONVERGED_BY_MEANS =
  "Converged: the smaller rate first has 0.9 of the larger, by means of 0.5 s (the paper's line of epsilon = 0.9, section V-B, for rates that are not expectations).";
export const CHOICES = [
  CONVERGED_BY_MEANS,
  "Of the round trip the paper prints tens of microseconds (section V-A), and nothing of its hosts; here each of the three links delays by 1 us.",
];

/** Alternative to the setup as printed: feedback that takes as long as it may on boards and servers. */
export const SLOW_FEEDBACK: Alternative = {
  name: "slow feedback",
  reading:
    "A change of rate is at the congestion point, and its feedback at the source, 1 ms after one another: each link delays by 500 us. The paper prints a round trip of tens of microseconds, and nothing of how long its boards and servers take.",
  set: ["topology.link.delay=500us"],
  concerns: () => true,
};

/** Chance decides whom feedback meets. */
export const SEEDS = 10;
export const BY_CHANCE = `Chance decides whom feedback meets, so in virtual time ${SEEDS} seeds run, and medians are judged; ratios are of medians. Curves are those of the first seed.`;

export interface Rates {
  all: Record<string, Signal>;
  converged: number;
}

export function ratesOf({ series }: Evidence): Rates {
  const all = rates(series);
  const even = evenness(Object.values(all).map((one) => movingMean(one, WINDOW)));
  // The mean has less than half of its window before that.
  return { all, converged: firstTime(even, (epsilon) => epsilon >= FAIR, WINDOW / 2) };
}

/** Length of the bottleneck's queue, KB. */
export function lengthOf({ series }: Evidence): Signal {
  return inUnits(queue(series, BOTTLENECK), 1000);
}

/** Axis from the start to `to`, s. */
function timeTo(to: number): Axis {
  return to < 1 ? ["time, ms", 0, to * 1000] : ["time, s", 0, to];
}

export function ratePlot(title: string, curves: readonly Curve[], to: number): Plot {
  return plot(title, timeTo(to), ["rate, Mb/s", 0, 1050], curves, {
    levels: [{ label: "fair share", value: LINK / 2e6 }],
  });
}

export function rateCurves(all: Readonly<Record<string, Signal>>, unit = 1, to = END): Curve[] {
  return Object.values(all).map(({ time, values }, i) => {
    const count = time.findIndex((at) => at > to);
    const some = count < 0 ? time.length : count;
    return {
      label: `RP ${i + 1}`,
      x: time.slice(0, some).map((at) => at * unit),
      y: values.slice(0, some).map((bps) => bps / 1e6),
    };
  });
}

export function queuePlot(signal: Signal, to: number): Plot {
  const unit = to < 1 ? 1000 : 1;
  const some = signal.time.filter((at) => at <= to);
  return plot(
    to < 1 ? "Queue length at the start" : "Queue length",
    timeTo(to),
    ["queue, KB"],
    [{ label: "", x: some.map((at) => at * unit), y: signal.values.slice(0, some.length) }],
    {
      levels: [
        { label: "Q_eq 64 KB", value: SET_POINT },
        { label: "Q_max 512 KB", value: BUFFER },
      ],
    },
  );
}

/** The queue, KB, within 50% of Q_eq. */
export function nearSetPoint(kilobytes: number): boolean {
  return kilobytes >= SET_POINT / 2 && kilobytes <= 1.5 * SET_POINT;
}
