/** Figures 5 and 6 and table I of Shu et al.: two reaction points from uneven rates, the paper's model beside them. */
import type { Curve } from "../../report/plot.js";
import type { Evidence, Experiment, Observation, Quantity, Statement } from "../experiment.js";
import { between, describe, known, mean, movingMean, queue, type Signal } from "../measure.js";
import { followModel, type ModelRun, modelCurves, modelPlots } from "./convergence.js";
import { SHU } from "./papers.js";
import {
  BOTTLENECK,
  CHOICES,
  END,
  inKilobytes,
  queuePlot,
  rateCurves,
  ratePlot,
  ratesOf,
  SETUP,
  STEADY,
  WINDOW,
} from "./two_flows.js";

/** Figures 5 and 6 differ in the rates at the start. */
function unevenStart(number: 5 | 6, start: readonly [number, number], statements: readonly Statement[]): Experiment {
  const [high, low] = start.map((rate) => rate / 1e6);
  const model = (): ModelRun => followModel({ label: "model", input: {}, rates: start });
  return {
    id: `qcn-shu-fig${number}`,
    paper: SHU,
    place: `figure ${number}`,
    title: `rate evolution from ${high} and ${low} Mb/s`,
    setup: `${SETUP} They start at ${high} and ${low} Mb/s with an empty queue. The model, equation 25, beside them.`,
    choices: [
      ...CHOICES,
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
  const [first, second] = Object.values(all).map((one) => movingMean(one, WINDOW)) as [Signal, Signal];
  const figures = describe(between(inKilobytes(queue(run.series, BOTTLENECK)), STEADY, END));
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
      distance: distance(END),
      early_distance: distance(5),
      queue_mean: figures?.mean,
      queue_deviation: figures?.deviation,
    }),
    plots: [
      ratePlot(
        "Rates, and the model",
        [
          ...rateCurves(all),
          ...modelCurves([model]).map(
            (curve, i): Curve => ({ ...curve, color: 6, style: "dashed", label: i === 0 ? "model" : "" }),
          ),
        ],
        [0, END],
      ),
      queuePlot(inKilobytes(queue(run.series, BOTTLENECK)), END),
    ],
  };
}

const kModelFits = (quote: string): Statement => ({
  quote,
  where: "section V-A",
  reading: "rates, by means of 0.5 s, are 50 Mb/s (5% of the link) or less from the model in the mean",
  checks: [{ quantity: "distance", max: kWell }],
  remark:
    "The model leaves out the timer, and with it hyper-active increase. A flow of 100 Mb/s that no feedback meets for 5 cycles of the timer, some 75 ms, enters it, and its rate leaps. Else a single run is a walk of chance around the expectation.",
});

export const SHU_FIGURE_5 = unevenStart(
  5,
  [900e6, 100e6],
  [
    {
      quote: "Besides, the figure shows that two RPs converge to their fair share of bandwidth in about 12 seconds",
      where: "section V-A",
      reading: "converged in 12 s, plus or minus a fifth",
      checks: [{ quantity: "converged", min: 9.6, max: 14.4 }],
      remark: "Chance decides whom the feedback meets: with the seeds 1 to 10 a simulation takes 2.8 to 15.0 s.",
    },
    kModelFits("We can see that our model well characterizes the convergence of QCN."),
  ],
);

export const SHU_FIGURE_6 = unevenStart(
  6,
  [700e6, 300e6],
  [
    {
      quote: "Compared with the results shown in Figure 5, the convergence time is much smaller.",
      where: "section V-A",
      reading: "converged in three quarters or less of the 12 s that the paper has there",
      checks: [{ quantity: "converged", max: 9 }],
      remark:
        "Chance decides whom the feedback meets: with the seeds 1 to 10 a simulation takes 4.3 to 16.2 s, eight times less than 9.",
    },
    kModelFits("Our model well matches the experimental data."),
  ],
);

const kOutOf = { zero: 69.7, one: 29.3, more: 1.0 } as const;

export const SHU_TABLE_1: Experiment = {
  id: "qcn-shu-table1",
  paper: SHU,
  place: "table I",
  title: "how often which feedback is sampled",
  setup: `${SETUP} They start at 900 and 100 Mb/s, so that the third stage is all there is. Counted: all samples of the congestion point.`,
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
  const [device = "", port = "", priority = ""] = BOTTLENECK.split(":");
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
        x_label: "F_b",
        x_names: ["0", "1", "more than 1"].map((label, x) => ({ x, label })),
        y_label: "share of samples, %",
        x_range: [-0.5, 2.5],
        y_range: [0, 100],
        curves: [bars("measured", shares, 0), bars("paper", [kOutOf.zero, kOutOf.one, kOutOf.more], 0.34)],
      },
    ],
  };
}

/** An outline for each height, `offset` to the right of its place. */
function bars(label: string, heights: readonly number[], offset: number): Curve {
  const corners = heights.flatMap((height, i): [number, number | null][] => {
    const left = i - 0.34 + offset;
    return [
      [left, 0],
      [left, height],
      [left + 0.32, height],
      [left + 0.32, 0],
      [left + 0.32, null],
    ];
  });
  return { label, x: corners.map(([x]) => x), y: corners.map(([, y]) => y) };
}
