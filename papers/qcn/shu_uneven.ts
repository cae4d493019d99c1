/** Figures 5 and 6 and table I of Shu et al.: two reaction points from uneven rates, the paper's model beside them. */

import { between, describe, mean, movingMean, type Signal } from "../../src/result/measure.js";
import type { Curve, Plot } from "../../src/result/report/plot.js";
import type { Evidence } from "../engine/experiment.js";
import { atMost, namesOf, plot, quantity, type StatementsOn, statement, studyOf, within } from "../engine/study.js";
import { CHANCE_OF_FEEDBACK, QUANTIZED_FEEDBACK } from "./causes.js";
import { followModel, type ModelRun, modelCurves, modelPlots } from "./convergence.js";
import { SHU, shuFigure } from "./papers.js";
import {
  BOTTLENECK,
  BY_CHANCE,
  CHOICES,
  END,
  lengthOf,
  queuePlot,
  type Rates,
  rateCurves,
  ratePlot,
  ratesOf,
  SEEDS,
  SETUP,
  SLOW_FEEDBACK,
  STEADY,
  WINDOW,
} from "./two_flows.js";

interface Seen {
  model: ModelRun;
  converged: number;
  /** Rates and queue as packets. */
  packets?: Rates & { length: Signal };
}
const steady = ({ packets }: Seen) => packets && describe(between(packets.length, STEADY, END));

const kUneven = {
  converged: quantity("converged", "s", ({ converged }: Seen) => converged),
  distance: quantity("mean distance to the model", "Mb/s", (seen: Seen) => distance(seen, END)),
  early_distance: quantity("the same, first 5 s", "Mb/s", (seen: Seen) => distance(seen, 5)),
  queue_mean: quantity("queue, mean from 1 s on", "KB", (seen: Seen) => steady(seen)?.mean),
  queue_deviation: quantity("queue, standard deviation from 1 s on", "KB", (seen: Seen) => steady(seen)?.deviation),
};

/** Figures 5 and 6 differ in the rates at the start. */
function unevenStart(number: 5 | 6, start: readonly [number, number], statements: StatementsOn<typeof kUneven>) {
  const [high, low] = start.map((rate) => rate / 1e6);
  const model = (): ModelRun => followModel({ label: "model", input: {}, rates: start });
  return studyOf<Seen>()({
    ...shuFigure(number),
    title: `rate evolution from ${high} and ${low} Mb/s`,
    setup: `${SETUP} They start at ${high} and ${low} Mb/s with an empty queue. The model, equation 25, beside them.`,
    choices: [
      ...CHOICES,
      BY_CHANCE,
      "Rates count headers, preamble and gap of the frames, so that they add up to the link's.",
      "Distance to the model: mean over 20 s of the difference between a rate (mean of 0.5 s) and the model's, both flows.",
    ],
    quantities: kUneven,
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
      seeds: SEEDS,
      see: ({ qcn }) => {
        const rates = ratesOf(qcn as Evidence);
        const { converged } = rates;
        return { model: model(), converged, packets: { ...rates, length: lengthOf(qcn as Evidence) } };
      },
      sim_seconds: 8,
    },
    alternative: SLOW_FEEDBACK,
    model: () => {
      const run = model();
      return { model: run, converged: run.converged };
    },
    plots,
  });
}

const startOf = (host: string, mbps: number | undefined) => `topology.host_overrides.${host}.initial_rate=${mbps}Mbps`;

const kWell = 50; // Mb/s

/** Distance of rates as packets, by means, from the model's. */
function distance({ packets, model }: Seen, to: number): number | undefined {
  if (packets === undefined) return undefined;
  const { time, rates: expected } = model.convergence.series;
  const step = (time[1] ?? 1) - (time[0] ?? 0);
  const gaps = Object.values(packets.all).flatMap((own, flow) => {
    const signal = movingMean(own, WINDOW);
    return signal.values.flatMap((rate, i) => {
      const at = signal.time[i] as number;
      const there = expected[flow]?.[Math.round((at * 1e9) / step)];
      return at < to && there !== undefined ? [Math.abs(rate - there)] : [];
    });
  });
  return mean(gaps) / 1e6;
}

function plots({ packets, model }: Seen): Plot[] {
  if (packets === undefined) return modelPlots([model]);
  const expected = modelCurves([model]).map(
    (curve, i): Curve => ({ ...curve, color: 6, style: "dashed", label: i === 0 ? "model" : "" }),
  );
  return [
    ratePlot("Rates, and the model", [...rateCurves(packets.all), ...expected], END),
    queuePlot(packets.length, END),
  ];
}

const modelFits = (quote: string) =>
  statement(
    quote,
    "section V-A",
    "rates, by means of 0.5 s, are 50 Mb/s (5% of the link) or less from the model in the mean",
    [atMost("distance", kWell)],
    "The model leaves out the timer, and with it hyper-active increase. A flow of 100 Mb/s that no feedback meets for 5 cycles of the timer, some 75 ms, enters it, and its rate leaps. Else a single run is a walk of chance around the expectation.",
    CHANCE_OF_FEEDBACK,
  );

export const SHU_FIGURE_5 = unevenStart(
  5,
  [900e6, 100e6],
  [
    statement(
      "Besides, the figure shows that two RPs converge to their fair share of bandwidth in about 12 seconds",
      "section V-A",
      "converged in 12 s, plus or minus a fifth",
      [within("converged", 9.6, 14.4)],
      undefined,
      CHANCE_OF_FEEDBACK,
    ),
    modelFits("We can see that our model well characterizes the convergence of QCN."),
  ],
);

export const SHU_FIGURE_6 = unevenStart(
  6,
  [700e6, 300e6],
  [
    statement(
      "Compared with the results shown in Figure 5, the convergence time is much smaller.",
      "section V-A",
      "converged in three quarters or less of the 12 s that the paper has there",
      [atMost("converged", 9)],
      undefined,
      CHANCE_OF_FEEDBACK,
    ),
    modelFits("Our model well matches the experimental data."),
  ],
);

const kOutOf = { zero: 69.7, one: 29.3, more: 1.0 } as const;

/** Samples of the congestion point, all and by their feedback. */
interface Counts {
  samples: number;
  one: readonly [number, number];
  more: readonly [number, number];
}
const sum = ([rp1, rp2]: readonly [number, number]) => rp1 + rp2;
/** Shares of all samples, %. */
const share = {
  zero: ({ samples, one, more }: Counts) => (100 * (samples - sum(one) - sum(more))) / samples,
  one: ({ samples, one }: Counts) => (100 * sum(one)) / samples,
  more: ({ samples, more }: Counts) => (100 * sum(more)) / samples,
};

export const SHU_TABLE_1 = studyOf<Counts | undefined>()({
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
    samples: quantity("samples", "", (seen) => seen?.samples),
    zero: quantity("F_b = 0", "% of samples", (seen) => seen && share.zero(seen)),
    one: quantity("F_b = 1", "% of samples", (seen) => seen && share.one(seen)),
    more: quantity("F_b > 1", "% of samples", (seen) => seen && share.more(seen)),
    one_rp1: quantity("F_b = 1, RP 1", "", (seen) => seen?.one[0]),
    one_rp2: quantity("F_b = 1, RP 2", "", (seen) => seen?.one[1]),
    more_rp1: quantity("F_b > 1, RP 1", "", (seen) => seen?.more[0]),
    more_rp2: quantity("F_b > 1, RP 2", "", (seen) => seen?.more[1]),
  },
  statements: [
    statement(
      "As shown in Table I, most of the feedback value is 0 or 1.",
      "section IV-A",
      "F_b is more than 1 in at most 5% of the samples",
      [atMost("more", 5)],
    ),
    statement(
      "F_b 0: 1947, 2832; 1: 794, 1211; > 1: 30, 40",
      "table I, RP 1 and RP 2",
      "together 69.7%, 29.3% and 1.0% of all samples; each within a fifth of it",
      namesOf(kOutOf).map((name) => within(name, 0.8 * kOutOf[name], 1.2 * kOutOf[name])),
      "Rounding to the nearest step in place of down would give more ones. The paper's own model has p[F_b > 0] = 0.17 to 0.21.",
      QUANTIZED_FEEDBACK,
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [{ name: "qcn", file: "qcn/shu-uneven-start.yaml", set: [] }],
    see: ({ qcn }) => countFeedback(qcn as Evidence),
    sim_seconds: 8,
  },
  alternative: SLOW_FEEDBACK,
  plots: (seen) => {
    if (seen === undefined) return [];
    return [
      plot(
        "Frequency of each feedback",
        ["F_b", -0.5, 2.5],
        ["share of samples, %", 0, 100],
        [
          bars("measured", [share.zero(seen), share.one(seen), share.more(seen)], 0),
          bars("paper", [kOutOf.zero, kOutOf.one, kOutOf.more], 0.34),
        ],
        { x_names: ["0", "1", "more than 1"].map((label, x) => ({ x, label })) },
      ),
    ];
  },
});

function countFeedback({ result }: Evidence): Counts | undefined {
  const [device = "", port = "", priority = ""] = BOTTLENECK.split(":");
  const samples = result.switches[device]?.congestion_points?.[port]?.[priority]?.sampled ?? 0;
  const [rp1, rp2] = result.flows.map(({ cnm_handled: all = 0, cnm_lowest: one = 0 }) => ({ one, more: all - one }));
  if (rp1 === undefined || rp2 === undefined || samples === 0) return undefined;
  return { samples, one: [rp1.one, rp2.one], more: [rp1.more, rp2.more] };
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
