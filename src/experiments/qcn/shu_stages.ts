/** Figures 1 and 12 of Shu et al.: two reaction points from line rate, with QCN and with QCN-T. */
import type { Evidence, Experiment, Observation } from "../experiment.js";
import { between, describe, firstTime, known, lastingFrom, mean, movingMean, queue, type Signal } from "../measure.js";
import { FAIR } from "./convergence.js";
import { SHU } from "./papers.js";
import {
  BOTTLENECK,
  BUFFER,
  CHOICES,
  DUMBBELL,
  END,
  inKilobytes,
  nearSetPoint,
  queuePlot,
  rateCurves,
  ratePlot,
  ratesOf,
  SETUP,
  STEADY,
} from "./two_flows.js";

/** Width of the means by which the queue is seen to be stable, s. */
const kShort = 0.01;

export const SHU_FIGURE_1: Experiment = {
  id: "qcn-shu-fig1",
  paper: SHU,
  place: "figure 1",
  title: "rate evolution and queue length in three stages",
  setup: `${SETUP} Both start at line rate.`,
  choices: [
    ...CHOICES,
    "The third stage begins when the queue has come within 50% of Q_eq, where it stays for the rest of the first second.",
    "Which of the two flows comes out ahead depends on the seed.",
  ],
  quantities: {
    queue_peak: { label: "queue, highest in the first 50 ms", unit: "KB" },
    overfilled: { label: "queue first at the buffer's size", unit: "ms" },
    emptied: { label: "queue empty after that", unit: "ms" },
    third_stage: { label: "third stage begins", unit: "ms" },
    larger: { label: "larger rate there", unit: "Mb/s" },
    smaller: { label: "smaller rate there", unit: "Mb/s" },
    queue_mean: { label: "queue, mean from 1 s on", unit: "KB" },
    queue_deviation: { label: "queue, standard deviation from 1 s on", unit: "KB" },
    queue_p99: { label: "queue, p99 from 1 s on", unit: "KB" },
    queue_settled: { label: "queue (mean of 10 ms) stays within 50% of Q_eq from", unit: "s" },
    converged: { label: "converged", unit: "s" },
    even_at_end: { label: "smaller / larger rate, mean of the last second", unit: "" },
  },
  statements: [
    {
      quote:
        "We can see that the queue length of CP quickly increases until the buffer is overfilled, then it becomes empty quickly and at last gradually increases to the equilibrium point.",
      where: "section III, on figure 1(b), 0 to 50 ms",
      reading: "the buffer is full, then empty, then within 50% of Q_eq, all within 50 ms",
      checks: [
        { quantity: "overfilled", max: 50 },
        { quantity: "emptied", max: 50 },
        { quantity: "third_stage", max: 50 },
      ],
      remark:
        "Here feedback is at its source within microseconds, and the first messages cut a rate by up to a half, so that the queue turns at some 200 KB. The paper does not say how long its servers and boards take. With 2 ms on each link the buffer fills and empties: --set topology.link.delay=2ms.",
    },
    {
      quote: "The duration of the former two phases lasts only about 10-20 ms",
      where: "section III",
      reading: "the third stage begins after 8 to 24 ms",
      checks: [{ quantity: "third_stage", min: 8, max: 24 }],
    },
    {
      quote:
        "By investigating the experimental data of QCN, we found that the initial rates of RPs are generally (900,100) Mbps at the beginning of the third stage (as shown in Figure 1).",
      where: "section V-B",
      reading: "the larger rate is then 800 Mb/s or more, the smaller at most 200 Mb/s",
      checks: [
        { quantity: "larger", min: 800 },
        { quantity: "smaller", max: 200 },
      ],
      remark:
        "How far apart the rates are depends on which of the flows the first feedback messages meet, and on how long they take. With 500 us on each link one flow comes out with some 790 Mb/s, the other with 150: --set topology.link.delay=500us.",
    },
    {
      quote: "We can see that the queue length of CP becomes stable quickly.",
      where: "section III, on figure 1(a)",
      reading: "from 1 s on the queue (mean of 10 ms) stays within 50% of Q_eq",
      checks: [{ quantity: "queue_settled", max: STEADY }],
    },
    {
      quote: "However, each RP reaches to its fair share of bandwidth after 10 seconds",
      where: "section III, on figure 1(a)",
      reading: "converged between 10 and 20 s",
      checks: [{ quantity: "converged", min: 10, max: 20 }],
      remark:
        "The time depends on the rates at which the third stage begins; from 900 and 100 Mb/s, see qcn-shu-fig5. With 500 us on each link the seeds 1 to 3 take 12.3, 2.7 and 7.6 s.",
    },
    {
      quote: "Actually, we can see that QCN is able to reach fairness.",
      where: "section III",
      reading: "the smaller rate has at least 0.9 of the larger in the last second of 20",
      checks: [{ quantity: "even_at_end", min: FAIR }],
      remark: "Rates that have met still go their own ways: feedback meets one of the flows at random.",
    },
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [DUMBBELL],
    observe: ({ qcn }) => observeStages(qcn as Evidence),
    sim_seconds: 4,
  },
};

function observeStages(run: Evidence): Observation {
  const { series } = run;
  const length = inKilobytes(queue(series, BOTTLENECK));
  const peaks = inKilobytes({ time: series.time_s, values: series.queues[BOTTLENECK]?.max_bytes ?? [] });
  const { all, converged } = ratesOf(run);
  const overfilled = firstTime(peaks, (kb) => kb > BUFFER - 2);
  const emptied = Number.isFinite(overfilled)
    ? firstTime(length, (kb) => kb < 2, overfilled)
    : Number.POSITIVE_INFINITY;
  const third = lastingFrom(length, nearSetPoint, 0, STEADY);
  const position = series.time_s.findIndex((at) => at >= third);
  const there = Object.values(all).map(({ values }) => (values[position] ?? 0) / 1e6);
  const figures = describe(between(length, STEADY, END));
  const last = Object.values(all).map((one) => mean(between(one, END - 1, END)));
  return {
    values: known({
      queue_peak: Math.max(...between(peaks, 0, 0.05)),
      overfilled: overfilled * 1000,
      emptied: emptied * 1000,
      third_stage: third * 1000,
      larger: position < 0 ? undefined : Math.max(...there),
      smaller: position < 0 ? undefined : Math.min(...there),
      queue_mean: figures?.mean,
      queue_deviation: figures?.deviation,
      queue_p99: figures?.p99,
      queue_settled: lastingFrom(movingMean(length, kShort), nearSetPoint, 0, END),
      converged,
      even_at_end: Math.min(...last) / Math.max(...last),
    }),
    plots: [
      ratePlot("(a) Rates", rateCurves(all), [0, END]),
      queuePlot(length, END),
      ratePlot("(b) Rates at the start", rateCurves(all, 1000, 0.05), [0, 0.05]),
      queuePlot(length, 0.05),
    ],
  };
}

export const SHU_FIGURE_12: Experiment = {
  id: "qcn-shu-fig12",
  paper: SHU,
  place: "figure 12",
  title: "convergence of QCN and QCN-T",
  setup: `${SETUP} Both start at line rate; once with QCN, once with QCN-T: a timer of 2.4 ms in the place of byte counter and timer.`,
  choices: [...CHOICES, "QCN-T enters hyper-active increase after 31 cycles: 15 ms x 5 / 2.4 ms (section VI)."],
  quantities: {
    qcn: { label: "converged, QCN", unit: "s" },
    qcn_t: { label: "converged, QCN-T", unit: "s" },
    gain: { label: "time of QCN / of QCN-T", unit: "" },
    queue_mean: { label: "queue with QCN-T, mean from 1 s on", unit: "KB" },
    queue_deviation: { label: "queue with QCN-T, standard deviation from 1 s on", unit: "KB" },
    queue_settled: { label: "queue with QCN-T (mean of 10 ms) stays within 50% of Q_eq from", unit: "s" },
    qcn_deviation: { label: "queue with QCN, standard deviation from 1 s on", unit: "KB" },
  },
  statements: [
    {
      quote: "we can see that QCN-T significantly decreases the convergence time of QCN.",
      where: "section VI",
      reading: "QCN takes at least twice as long",
      checks: [{ quantity: "gain", min: 2 }],
      remark:
        "From line rate both flows come out of the first stage almost equal here, with QCN as with QCN-T, so that nothing remains to be gained: see qcn-shu-fig1. From 900 and 100 Mb/s: qcn-shu-fig10.",
    },
    {
      quote: "Besides, the queue length is still stable in QCN-T.",
      where: "section VI",
      reading: "from 1 s on the queue (mean of 10 ms) stays within 50% of Q_eq",
      checks: [{ quantity: "queue_settled", max: STEADY }],
    },
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [DUMBBELL, { ...DUMBBELL, name: "qcn-t", set: ["congestion.variant=qcn-t"] }],
    observe: (runs) => {
      const [qcn, timer] = [runs.qcn as Evidence, runs["qcn-t"] as Evidence];
      const [plain, timed] = [ratesOf(qcn), ratesOf(timer)];
      const lengths = [qcn, timer].map(({ series }) => inKilobytes(queue(series, BOTTLENECK))) as [Signal, Signal];
      const figures = lengths.map((signal) => describe(between(signal, STEADY, END)));
      return {
        values: known({
          qcn: plain.converged,
          qcn_t: timed.converged,
          gain: plain.converged / timed.converged,
          queue_mean: figures[1]?.mean,
          queue_deviation: figures[1]?.deviation,
          queue_settled: lastingFrom(movingMean(lengths[1], kShort), nearSetPoint, 0, END),
          qcn_deviation: figures[0]?.deviation,
        }),
        plots: [
          ratePlot("QCN: rates", rateCurves(plain.all), [0, END]),
          ratePlot("QCN-T: rates", rateCurves(timed.all), [0, END]),
          { ...queuePlot(lengths[0], END), title: "QCN: queue length" },
          { ...queuePlot(lengths[1], END), title: "QCN-T: queue length" },
        ],
      };
    },
    sim_seconds: 8,
  },
};
