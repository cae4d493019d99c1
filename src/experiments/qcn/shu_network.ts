/**
 * Figures 1, 5, 6 and 12 and table I of Shu et al.: two reaction points at one bottleneck of 1 Gb/s, run as packets; figures 5 and 6
 * with the paper's model beside them.
 */
import type { Curve, Plot } from "../../report/plot.js";
import type { Evidence, Experiment, Observation, Quantity, Statement, Trial } from "../experiment.js";
import {
  between,
  describe,
  evenness,
  firstTime,
  known,
  lastingFrom,
  mean,
  movingMean,
  queue,
  rates,
  type Signal,
} from "../measure.js";
import { FAIR, followModel, LINK, type ModelRun, modelCurves, modelPlots } from "./convergence.js";
import { SHU } from "./papers.js";

const kQueue = "left:right:3";
const kSetPoint = 64; // Q_eq, KB
const kBuffer = 512; // Q_max, KB
const kEnd = 20; // s
/** Noise of the rates that is not looked at when they are compared, s. */
const kWindow = 0.5;
/** The queue counts as steady from here on, s. */
const kSteady = 1;
const kDumbbell: Trial = { name: "qcn", file: "qcn/shu-dumbbell.yaml", set: [] };
const kSetup =
  "Two reaction points behind one link of 1 Gb/s, Q_eq 64 KB, Q_max 512 KB, w 2, G_d 1/128, R_AI 0.5 Mb/s, byte counter 150 KB, timer 15 ms, 20 s.";
const kChoices = [
  "Converged: the smaller rate first has 0.9 of the larger, by means of 0.5 s (the paper's line of epsilon = 0.9, section V-B, for rates that are not expectations).",
  "The paper does not print the round trip; here each of the three links delays by 1 us.",
];

interface Rates {
  all: Record<string, Signal>;
  converged: number;
}

function ratesOf({ series }: Evidence): Rates {
  const all = rates(series);
  const even = evenness(Object.values(all).map((one) => movingMean(one, kWindow)));
  // Before that the mean has less than half of its window.
  return { all, converged: firstTime(even, (epsilon) => epsilon >= FAIR, kWindow / 2) };
}

function inKilobytes({ time, values }: Signal): Signal {
  return { time, values: values.map((bytes) => bytes / 1000) };
}

function ratePlot(title: string, curves: readonly Curve[], range: readonly [number, number]): Plot {
  return {
    title,
    x_label: range[1] < 1 ? "time, ms" : "time, s",
    y_label: "rate, Mb/s",
    x_range: range[1] < 1 ? [range[0] * 1000, range[1] * 1000] : range,
    y_range: [0, 1050],
    curves,
    levels: [{ label: "fair share", value: LINK / 2e6 }],
  };
}

function rateCurves(all: Readonly<Record<string, Signal>>, unit = 1, to = kEnd): Curve[] {
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

function queuePlot(signal: Signal, to: number): Plot {
  const unit = to < 1 ? 1000 : 1;
  const some = signal.time.filter((at) => at <= to);
  return {
    title: to < 1 ? "Queue length at the start" : "Queue length",
    x_label: to < 1 ? "time, ms" : "time, s",
    y_label: "queue, KB",
    x_range: [0, to * unit],
    curves: [{ label: "", x: some.map((at) => at * unit), y: signal.values.slice(0, some.length) }],
    levels: [
      { label: "Q_eq 64 KB", value: kSetPoint },
      { label: "Q_max 512 KB", value: kBuffer },
    ],
  };
}

const figure1: Experiment = {
  id: "qcn-shu-fig1",
  paper: SHU,
  place: "figure 1",
  title: "rate evolution and queue length in three stages",
  setup: `${kSetup} Both start at line rate.`,
  choices: [
    ...kChoices,
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
    queue_settled: { label: "queue (mean of 0.1 s) stays within 50% of Q_eq from", unit: "s" },
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
        "Here feedback is at its source within microseconds, and the first messages cut a rate by up to a half, so that the queue turns long before 512 KB. The paper does not say how long its servers and boards take.",
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
        "How far apart the rates are depends on which of the flows the first feedback messages meet, and so on the seed; the paper shows one run.",
    },
    {
      quote: "We can see that the queue length of CP becomes stable quickly.",
      where: "section III, on figure 1(a)",
      reading: "from 1 s on the queue (mean of 0.1 s) stays within 50% of Q_eq",
      checks: [{ quantity: "queue_settled", max: kSteady }],
    },
    {
      quote: "However, each RP reaches to its fair share of bandwidth after 10 seconds",
      where: "section III, on figure 1(a)",
      reading: "converged between 10 and 20 s",
      checks: [{ quantity: "converged", min: 10, max: 20 }],
      remark: "The time depends on the rates at which the third stage begins.",
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
    trials: [kDumbbell],
    observe: ({ qcn }) => observeStages(qcn as Evidence),
    sim_seconds: 4,
  },
};

function observeStages(run: Evidence): Observation {
  const { series } = run;
  const length = inKilobytes(queue(series, kQueue));
  const peaks = inKilobytes({ time: series.time_s, values: series.queues[kQueue]?.max_bytes ?? [] });
  const { all, converged } = ratesOf(run);
  const overfilled = firstTime(peaks, (kb) => kb > kBuffer - 2);
  const emptied = Number.isFinite(overfilled)
    ? firstTime(length, (kb) => kb < 2, overfilled)
    : Number.POSITIVE_INFINITY;
  const near = (kb: number) => kb >= kSetPoint / 2 && kb <= 1.5 * kSetPoint;
  const third = lastingFrom(length, near, 0, kSteady);
  const position = series.time_s.findIndex((at) => at >= third);
  const there = Object.values(all).map(({ values }) => (values[position] ?? 0) / 1e6);
  const figures = describe(between(length, kSteady, kEnd));
  const last = Object.values(all).map((one) => mean(between(one, kEnd - 1, kEnd)));
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
      queue_settled: lastingFrom(movingMean(length, 0.1), near, 0, kEnd),
      converged,
      even_at_end: Math.min(...last) / Math.max(...last),
    }),
    plots: [
      ratePlot("(a) Rates", rateCurves(all), [0, kEnd]),
      queuePlot(length, kEnd),
      ratePlot("(b) Rates at the start", rateCurves(all, 1000, 0.05), [0, 0.05]),
      queuePlot(length, 0.05),
    ],
  };
}

/** Figures 5 and 6 differ in the rates at the start. */
function unevenStart(number: 5 | 6, start: readonly [number, number], statements: readonly Statement[]): Experiment {
  const [high, low] = start.map((rate) => rate / 1e6);
  const model = (): ModelRun => followModel({ label: "model", input: {}, rates: start });
  return {
    id: `qcn-shu-fig${number}`,
    paper: SHU,
    place: `figure ${number}`,
    title: `rate evolution from ${high} and ${low} Mb/s`,
    setup: `${kSetup} They start at ${high} and ${low} Mb/s with an empty queue. The model, equation 25, beside them.`,
    choices: [
      ...kChoices,
      "Rates count headers, preamble and gap of the frames, so that they add up to the link's.",
      "Distance to the model: mean over 20 s of the difference between a rate (mean of 0.5 s) and the model's, both flows.",
    ],
    quantities: UNEVEN_QUANTITIES,
    statements,
    network: {
      clocks: ["wire", "sim"],
      trials: [
        {
          name: "qcn",
          file: "qcn/shu-uneven-start.yaml",
          set: number === 5 ? [] : [startOf("s1", high), startOf("s2", low)],
        },
      ],
      observe: ({ qcn }) => observeBesideModel(qcn as Evidence, model()),
      sim_seconds: 4,
    },
    model: () => {
      const run = model();
      return { values: { converged: run.converged }, plots: modelPlots([run]) };
    },
  };
}

const startOf = (host: string, mbps: number | undefined) => `topology.host_overrides.${host}.initial_rate=${mbps}Mbps`;

const UNEVEN_QUANTITIES: Readonly<Record<string, Quantity>> = {
  converged: { label: "converged", unit: "s" },
  distance: { label: "mean distance to the model", unit: "Mb/s" },
  early_distance: { label: "the same, first 5 s", unit: "Mb/s" },
  queue_mean: { label: "queue, mean from 1 s on", unit: "KB" },
  queue_deviation: { label: "queue, standard deviation from 1 s on", unit: "KB" },
};

const kWell = 50; // Mb/s

function observeBesideModel(run: Evidence, model: ModelRun): Observation {
  const { all, converged } = ratesOf(run);
  const [first, second] = Object.values(all).map((one) => movingMean(one, kWindow)) as [Signal, Signal];
  const figures = describe(between(inKilobytes(queue(run.series, kQueue)), kSteady, kEnd));
  const { time, rates: expected } = model.convergence.series;
  const step = (time[1] ?? 1) - (time[0] ?? 0);
  const distance = (to: number) => {
    const gaps = [first, second].flatMap((signal, flow) =>
      signal.values.flatMap((rate, i) => {
        const at = signal.time[i] as number;
        const model = expected[flow]?.[Math.round((at * 1e9) / step)];
        return at < to && model !== undefined ? [Math.abs(rate - model)] : [];
      }),
    );
    return mean(gaps) / 1e6;
  };
  return {
    values: known({
      converged,
      distance: distance(kEnd),
      early_distance: distance(5),
      queue_mean: figures?.mean,
      queue_deviation: figures?.deviation,
    }),
    plots: [
      ratePlot(
        "Rates, and the model",
        [
          ...rateCurves(all),
          ...modelCurves([model]).map((curve): Curve => ({ ...curve, color: 6, style: "dashed", label: curve.label })),
        ],
        [0, kEnd],
      ),
      queuePlot(inKilobytes(queue(run.series, kQueue)), kEnd),
    ],
  };
}

const kModelFits = (quote: string): Statement => ({
  quote,
  where: "section V-A",
  reading: "rates, by means of 0.5 s, are 50 Mb/s (5% of the link) or less from the model in the mean",
  checks: [{ quantity: "distance", max: kWell }],
  remark: "The model expects F_b = 1 and ignores the timer; a single run is a random walk around its expectation.",
});

const figure5 = unevenStart(
  5,
  [900e6, 100e6],
  [
    {
      quote: "Besides, the figure shows that two RPs converge to their fair share of bandwidth in about 12 seconds",
      where: "section V-A",
      reading: "converged in 12 s, plus or minus a fifth",
      checks: [{ quantity: "converged", min: 9.6, max: 14.4 }],
      remark: "The time of one run depends on its seed, as chance decides whom the feedback meets.",
    },
    kModelFits("We can see that our model well characterizes the convergence of QCN."),
  ],
);

const figure6 = unevenStart(
  6,
  [700e6, 300e6],
  [
    {
      quote: "Compared with the results shown in Figure 5, the convergence time is much smaller.",
      where: "section V-A",
      reading: "converged in three quarters or less of the 12 s that the paper has there",
      checks: [{ quantity: "converged", max: 9 }],
    },
    kModelFits("Our model well matches the experimental data."),
  ],
);

const kOutOf = { zero: 69.7, one: 29.3, more: 1.0 } as const;

const table1: Experiment = {
  id: "qcn-shu-table1",
  paper: SHU,
  place: "table I",
  title: "how often which feedback is sampled",
  setup: `${kSetup} They start at 900 and 100 Mb/s, so that the third stage is all there is. Counted: all samples of the congestion point.`,
  choices: [
    "The paper counts in the stable state, over a time that it does not print: 6,854 samples, which are some 8 s of 1 Gb/s. Here all 20 s count.",
    "A feedback of 0 is not sent, so nobody knows to whom; these samples are not told apart by reaction point.",
    "F_b is quantized by rounding down in 63 steps of (2 w + 1) Q_eq = 320 KB.",
  ],
  quantities: {
    samples: { label: "samples", unit: "" },
    zero: { label: "F_b = 0", unit: "% of samples" },
    one: { label: "F_b = 1", unit: "% of samples" },
    more: { label: "F_b > 1", unit: "% of samples" },
    one_rp1: { label: "F_b = 1, RP 1", unit: "" },
    one_rp2: { label: "F_b = 1, RP 2", unit: "" },
    more_rp1: { label: "F_b > 1, RP 1", unit: "" },
    more_rp2: { label: "F_b > 1, RP 2", unit: "" },
  },
  statements: [
    {
      quote: "As shown in Table I, most of the feedback value is 0 or 1.",
      where: "section IV-A",
      reading: "F_b is more than 1 in at most 5% of the samples",
      checks: [{ quantity: "more", max: 5 }],
    },
    {
      quote: "F_b 0: 1947, 2832; 1: 794, 1211; > 1: 30, 40",
      where: "table I, RP 1 and RP 2",
      reading: "together 69.7%, 29.3% and 1.0% of all samples; within 10 points",
      checks: [
        { quantity: "zero", min: kOutOf.zero - 10, max: kOutOf.zero + 10 },
        { quantity: "one", min: kOutOf.one - 10, max: kOutOf.one + 10 },
        { quantity: "more", max: kOutOf.more + 10 },
      ],
      remark:
        "How F_b becomes 6 bits is not printed: rounding to the nearest step in place of down would give more ones. The paper's own model has p[F_b > 0] = 0.17 to 0.21.",
    },
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [{ name: "qcn", file: "qcn/shu-uneven-start.yaml", set: [] }],
    observe: ({ qcn }) => countFeedback(qcn as Evidence),
    sim_seconds: 4,
  },
};

function countFeedback({ result }: Evidence): Observation {
  const [device = "", port = "", priority = ""] = kQueue.split(":");
  const samples = result.switches[device]?.congestion_points?.[port]?.[priority]?.sampled ?? 0;
  const [rp1, rp2] = result.flows.map(({ cnm_handled: all = 0, cnm_lowest: one = 0 }) => ({ one, more: all - one }));
  if (rp1 === undefined || rp2 === undefined || samples === 0) return { values: {}, plots: [] };
  const [one, more] = [rp1.one + rp2.one, rp1.more + rp2.more];
  const share = (count: number) => (100 * count) / samples;
  const shares = [share(samples - one - more), share(one), share(more)] as const;
  return {
    values: {
      samples,
      zero: shares[0],
      one: shares[1],
      more: shares[2],
      one_rp1: rp1.one,
      one_rp2: rp2.one,
      more_rp1: rp1.more,
      more_rp2: rp2.more,
    },
    plots: [
      {
        title: "Frequency of each feedback",
        x_label: "F_b: 0, 1, more than 1",
        y_label: "share of samples, %",
        x_range: [-0.5, 2.5],
        y_range: [0, 100],
        curves: [bars("measured", shares, 0), bars("paper", [kOutOf.zero, kOutOf.one, kOutOf.more], 0.34)],
      },
    ],
  };
}

/** Three outlines, `offset` to the right of their places. */
function bars(label: string, heights: readonly number[], offset: number): Curve {
  const corners = heights.flatMap((height, i) => {
    const left = i - 0.34 + offset;
    return [
      { x: left, y: 0 },
      { x: left, y: height },
      { x: left + 0.32, y: height },
      { x: left + 0.32, y: 0 },
    ];
  });
  return { label, x: corners.map(({ x }) => x), y: corners.map(({ y }) => y) };
}

const figure12: Experiment = {
  id: "qcn-shu-fig12",
  paper: SHU,
  place: "figure 12",
  title: "convergence of QCN and QCN-T",
  setup: `${kSetup} Both start at line rate; once with QCN, once with QCN-T: a timer of 2.4 ms in the place of byte counter and timer.`,
  choices: [...kChoices, "QCN-T enters hyper-active increase after 31 cycles: 15 ms x 5 / 2.4 ms (section VI)."],
  quantities: {
    qcn: { label: "converged, QCN", unit: "s" },
    qcn_t: { label: "converged, QCN-T", unit: "s" },
    gain: { label: "time of QCN / of QCN-T", unit: "" },
    queue_mean: { label: "queue with QCN-T, mean from 1 s on", unit: "KB" },
    queue_deviation: { label: "queue with QCN-T, standard deviation from 1 s on", unit: "KB" },
    queue_settled: { label: "queue with QCN-T (mean of 0.1 s) stays within 50% of Q_eq from", unit: "s" },
    qcn_deviation: { label: "queue with QCN, standard deviation from 1 s on", unit: "KB" },
  },
  statements: [
    {
      quote: "we can see that QCN-T significantly decreases the convergence time of QCN.",
      where: "section VI",
      reading: "QCN takes at least twice as long",
      checks: [{ quantity: "gain", min: 2 }],
    },
    {
      quote: "Besides, the queue length is still stable in QCN-T.",
      where: "section VI",
      reading: "from 1 s on the queue (mean of 0.1 s) stays within 50% of Q_eq",
      checks: [{ quantity: "queue_settled", max: kSteady }],
    },
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [kDumbbell, { ...kDumbbell, name: "qcn-t", set: ["congestion.variant=qcn-t"] }],
    observe: (runs) => {
      const [qcn, timer] = [runs.qcn as Evidence, runs["qcn-t"] as Evidence];
      const [plain, timed] = [ratesOf(qcn), ratesOf(timer)];
      const lengths = [qcn, timer].map(({ series }) => inKilobytes(queue(series, kQueue))) as [Signal, Signal];
      const figures = lengths.map((signal) => describe(between(signal, kSteady, kEnd)));
      const near = (kb: number) => kb >= kSetPoint / 2 && kb <= 1.5 * kSetPoint;
      return {
        values: known({
          qcn: plain.converged,
          qcn_t: timed.converged,
          gain: plain.converged / timed.converged,
          queue_mean: figures[1]?.mean,
          queue_deviation: figures[1]?.deviation,
          queue_settled: lastingFrom(movingMean(lengths[1], 0.1), near, 0, kEnd),
          qcn_deviation: figures[0]?.deviation,
        }),
        plots: [
          ratePlot("QCN: rates", rateCurves(plain.all), [0, kEnd]),
          ratePlot("QCN-T: rates", rateCurves(timed.all), [0, kEnd]),
          { ...queuePlot(lengths[0], kEnd), title: "QCN: queue length" },
          { ...queuePlot(lengths[1], kEnd), title: "QCN-T: queue length" },
        ],
      };
    },
    sim_seconds: 8,
  },
};

export const SHU_NETWORK_FIGURES: readonly Experiment[] = [figure1, table1, figure5, figure6, figure12];
