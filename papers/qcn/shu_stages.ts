/** Figures 1 and 12 of Shu et al.: two reaction points from line rate, with QCN and with QCN-T. */

import {
  between,
  describe,
  firstTime,
  inUnits,
  lastingFrom,
  mean,
  movingMean,
  type Signal,
} from "../../src/result/measure.js";
import type { Evidence } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  byName,
  grid,
  mediansOf,
  namesOf,
  quantity,
  type Runs,
  statement,
  studyOf,
  within,
} from "../engine/study.js";
import { CHANCE_OF_FEEDBACK, FEEDBACK_DELAY } from "./causes.js";
import { FAIR } from "./convergence.js";
import { shuFigure } from "./papers.js";
import {
  BOTTLENECK,
  BUFFER,
  BY_CHANCE,
  CHOICES,
  DUMBBELL,
  END,
  lengthOf,
  nearSetPoint,
  queuePlot,
  type Rates,
  rateCurves,
  ratePlot,
  ratesOf,
  SEEDS,
  SETUP,
  SLOW_FEEDBACK,
  STEADY,
} from "./two_flows.js";

/** Width of the means by which the queue is seen to be stable, s. */
const kShort = 0.01;

interface Stages extends Rates {
  /** KB, and its highest in each interval. */
  length: Signal;
  peaks: Signal;
  /** Beginning of the third stage: s, and rates there, Mb/s; none if it does not begin. */
  third: number;
  there: readonly number[];
}
const overfilled = ({ peaks }: Stages) => firstTime(peaks, (kb) => kb > BUFFER - 2);
/** The queue counts as steady from there on. */
const steady = (length: Signal) => describe(between(length, STEADY, END));
const settled = (length: Signal) => lastingFrom(movingMean(length, kShort), nearSetPoint, 0, END);

export const SHU_FIGURE_1 = studyOf<Stages>()({
  ...shuFigure(1),
  title: "rate evolution and queue length in three stages",
  setup: `${SETUP} Both start at line rate.`,
  choices: [
    ...CHOICES,
    BY_CHANCE,
    "The third stage begins when the queue has come within 50% of Q_eq, where it stays for the rest of the first second.",
    "Which of the two flows comes out ahead depends on the seed.",
  ],
  quantities: {
    queue_peak: quantity("queue, highest in the first 50 ms", "KB", ({ peaks }) =>
      Math.max(...between(peaks, 0, 0.05)),
    ),
    overfilled: quantity("queue first at the buffer's size", "ms", (seen) => overfilled(seen) * 1000),
    emptied: quantity("queue empty after that", "ms", (seen) => {
      const full = overfilled(seen);
      return Number.isFinite(full) ? firstTime(seen.length, (kb) => kb < 2, full) * 1000 : Number.POSITIVE_INFINITY;
    }),
    third_stage: quantity("third stage begins", "ms", ({ third }) => third * 1000),
    larger: quantity("larger rate there", "Mb/s", ({ there }) => (there.length === 0 ? undefined : Math.max(...there))),
    smaller: quantity("smaller rate there", "Mb/s", ({ there }) =>
      there.length === 0 ? undefined : Math.min(...there),
    ),
    queue_mean: quantity("queue, mean from 1 s on", "KB", ({ length }) => steady(length)?.mean),
    queue_deviation: quantity("queue, standard deviation from 1 s on", "KB", ({ length }) => steady(length)?.deviation),
    queue_p99: quantity("queue, p99 from 1 s on", "KB", ({ length }) => steady(length)?.p99),
    queue_settled: quantity("queue (mean of 10 ms) stays within 50% of Q_eq from", "s", ({ length }) =>
      settled(length),
    ),
    converged: quantity("converged", "s", ({ converged }) => converged),
    even_at_end: quantity("smaller / larger rate, mean of the last second", "", ({ all }) => {
      const last = Object.values(all).map((one) => mean(between(one, END - 1, END)));
      return Math.min(...last) / Math.max(...last);
    }),
  },
  statements: [
    statement(
      "We can see that the queue length of CP quickly increases until the buffer is overfilled, then it becomes empty quickly and at last gradually increases to the equilibrium point.",
      "section III, on figure 1(b), 0 to 50 ms",
      "the buffer is full, then empty, then within 50% of Q_eq, all within 50 ms",
      [atMost("overfilled", 50), atMost("emptied", 50), atMost("third_stage", 50)],
      "Here feedback is at its source within microseconds, and the first messages cut a rate by up to a half, so that the queue turns at some 200 KB. The paper does not say how long its servers and boards take. With 2 ms on each link the buffer fills and empties: weir sim run papers/qcn/shu-dumbbell.yaml --set topology.link.delay=2ms.",
      FEEDBACK_DELAY,
    ),
    statement(
      "The duration of the former two phases lasts only about 10-20 ms",
      "section III",
      "the third stage begins after 8 to 24 ms",
      [within("third_stage", 8, 24)],
      undefined,
      FEEDBACK_DELAY,
    ),
    statement(
      "By investigating the experimental data of QCN, we found that the initial rates of RPs are generally (900,100) Mbps at the beginning of the third stage (as shown in Figure 1).",
      "section V-B",
      "the larger rate is then 800 Mb/s or more, the smaller at most 200 Mb/s",
      [atLeast("larger", 800), atMost("smaller", 200)],
      "How far apart the rates are depends on which of the flows the first feedback messages meet, and on how long they take.",
      FEEDBACK_DELAY,
    ),
    statement(
      "We can see that the queue length of CP becomes stable quickly.",
      "section III, on figure 1(a)",
      "from 1 s on the queue (mean of 10 ms) stays within 50% of Q_eq",
      [atMost("queue_settled", STEADY)],
    ),
    statement(
      "However, each RP reaches to its fair share of bandwidth after 10 seconds",
      "section III, on figure 1(a)",
      "converged between 10 and 20 s",
      [within("converged", 10, 20)],
      "The time depends on the rates at which the third stage begins; from 900 and 100 Mb/s, see qcn-shu-fig5.",
      FEEDBACK_DELAY,
    ),
    statement(
      "Actually, we can see that QCN is able to reach fairness.",
      "section III",
      "the smaller rate has at least 0.9 of the larger in the last second of 20",
      [atLeast("even_at_end", FAIR)],
      "Rates that have met still go their own ways: feedback meets one of the flows at random.",
      CHANCE_OF_FEEDBACK,
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [DUMBBELL],
    seeds: SEEDS,
    see: seeStages,
    sim_seconds: 8,
  },
  alternative: SLOW_FEEDBACK,
  plots: ({ all, length }) => [
    ratePlot("(a) Rates", rateCurves(all), END),
    queuePlot(length, END),
    ratePlot("(b) Rates at the start", rateCurves(all, 1000, 0.05), 0.05),
    queuePlot(length, 0.05),
  ],
});

function seeStages({ qcn }: Runs): Stages {
  const run = qcn as Evidence;
  const { series } = run;
  const length = lengthOf(run);
  const rates = ratesOf(run);
  const third = lastingFrom(length, nearSetPoint, 0, STEADY);
  const position = series.time_s.findIndex((at) => at >= third);
  const there = Object.values(rates.all).map(({ values }) => (values[position] ?? 0) / 1e6);
  return {
    ...rates,
    length,
    peaks: inUnits({ time: series.time_s, values: series.queues[BOTTLENECK]?.max_bytes ?? [] }, 1000),
    third,
    there: position < 0 ? [] : there,
  };
}

/** Measurements of one, and its curves. */
interface Variant {
  figures: { converged: number; queue_mean: number; queue_deviation: number; queue_settled: number };
  rates: Rates["all"];
  length: Signal;
}

function seeVariant(run: Evidence): Variant {
  const { all, converged } = ratesOf(run);
  const length = lengthOf(run);
  const { mean: queue_mean = Number.NaN, deviation: queue_deviation = Number.NaN } = steady(length) ?? {};
  return { figures: { converged, queue_mean, queue_deviation, queue_settled: settled(length) }, rates: all, length };
}

const kVariants = { qcn: "QCN", qcn_t: "QCN-T" } as const;
const kVariantNames = namesOf(kVariants);
type Variants = Readonly<Record<keyof typeof kVariants, Variant>>;

export const SHU_FIGURE_12 = studyOf<Variants>()({
  ...shuFigure(12),
  title: "convergence of QCN and QCN-T",
  setup: `${SETUP} Both start at line rate; once with QCN, once with QCN-T: a timer of 2.4 ms in the place of byte counter and timer.`,
  choices: [
    ...CHOICES,
    BY_CHANCE,
    "QCN-T enters hyper-active increase after 31 cycles: 15 ms x 5 / 2.4 ms (section VI).",
  ],
  quantities: {
    ...grid(
      kVariantNames,
      (seen: Variants, name) => seen[name].figures,
      (label, name) => label.replace("*", kVariants[name]),
    )({
      converged: quantity("converged, *", "s", ({ converged }) => converged),
      queue_mean: quantity("queue with *, mean from 1 s on", "KB", ({ queue_mean }) => queue_mean),
      queue_deviation: quantity(
        "queue with *, standard deviation from 1 s on",
        "KB",
        ({ queue_deviation }) => queue_deviation,
      ),
      queue_settled: quantity(
        "queue with * (mean of 10 ms) stays within 50% of Q_eq from",
        "s",
        ({ queue_settled }) => queue_settled,
      ),
    }),
    gain: quantity("time of QCN / of QCN-T", "", ({ qcn, qcn_t }) => qcn.figures.converged / qcn_t.figures.converged),
  },
  statements: [
    statement(
      "we can see that QCN-T significantly decreases the convergence time of QCN.",
      "section VI",
      "QCN takes at least twice as long",
      [atLeast("gain", 2)],
      "From line rate both flows come out of the first stage almost equal here, with QCN as with QCN-T, so that nothing remains to be gained: see qcn-shu-fig1. From 900 and 100 Mb/s: qcn-shu-fig10.",
      FEEDBACK_DELAY,
    ),
    statement(
      "Besides, the queue length is still stable in QCN-T.",
      "section VI",
      "from 1 s on the queue (mean of 10 ms) stays within 50% of Q_eq",
      [atMost("queue_settled_qcn_t", STEADY)],
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [DUMBBELL, { ...DUMBBELL, name: "qcn-t", set: ["congestion.variant=qcn-t"] }],
    seeds: SEEDS,
    see: (runs) => ({ qcn: seeVariant(runs.qcn as Evidence), qcn_t: seeVariant(runs["qcn-t"] as Evidence) }),
    typical: (all) =>
      byName(kVariantNames, (name) => ({
        ...(all[0] as Variants)[name],
        figures: mediansOf(all.map((one) => one[name].figures)),
      })),
    sim_seconds: 16,
  },
  alternative: SLOW_FEEDBACK,
  plots: (seen) => [
    ...kVariantNames.map((name) => ratePlot(`${kVariants[name]}: rates`, rateCurves(seen[name].rates), END)),
    ...kVariantNames.map((name) => ({
      ...queuePlot(seen[name].length, END),
      title: `${kVariants[name]}: queue length`,
    })),
  ],
});
