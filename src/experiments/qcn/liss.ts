/** What Liss observed of QCN in adapters and a switch: two ports of one adapter send to one port of another. */
import type { Plot } from "../../report/plot.js";
import type { Evidence, Experiment, Observation, Quantity } from "../experiment.js";
import {
  between,
  describe,
  evenness,
  goodput,
  known,
  lastingFrom,
  mean,
  movingMean,
  queue,
  rates,
  type Signal,
  total,
} from "../measure.js";
import { LISS } from "./papers.js";

const kQueue = "sw:r:3";
const kFile = "qcn/liss-two-ports.yaml";
/** Means by which rates are compared, and from when on the state is steady, s. */
const kWindow = 0.0005;
const kSteady = 0.05;
const kEnd = 0.2;
const kSetPoint = 26; // KB

const kEach = ["pfc", "no_pfc"] as const;
const kWhere = "slide Observations";

const quantities = Object.fromEntries(
  kEach.flatMap((run): [string, Quantity][] => {
    const suffix = run === "pfc" ? "with PFC" : "without PFC";
    return [
      [`settled_${run}`, { label: `queue stays within 50% of Q_eq from, ${suffix}`, unit: "ms" }],
      [`share_${run}`, { label: `rates (means of 0.5 ms) stay within 10% of each other from, ${suffix}`, unit: "ms" }],
      [`utilisation_${run}`, { label: `link in use from 50 ms on, ${suffix}`, unit: "%" }],
      [`empty_${run}`, { label: `samples with an empty queue from 50 ms on, ${suffix}`, unit: "%" }],
      [`queue_mean_${run}`, { label: `queue, mean from 50 ms on, ${suffix}`, unit: "KB" }],
      [`queue_deviation_${run}`, { label: `queue, standard deviation from 50 ms on, ${suffix}`, unit: "KB" }],
      [`queue_max_${run}`, { label: `queue, highest of the whole run, ${suffix}`, unit: "KB" }],
      [`pauses_${run}`, { label: `PFC frames from 50 ms on, ${suffix}`, unit: "frames" }],
      [`drops_${run}`, { label: `frames dropped in the whole run, ${suffix}`, unit: "frames" }],
    ];
  }),
);

export const LISS_CONVERGENCE: Experiment = {
  id: "qcn-ofa-convergence",
  paper: LISS,
  place: "slides Initial Testing to Observations",
  title: "two ports of an adapter send to one port",
  setup:
    "Two senders at 40 Gb/s and one receiver behind one switch, with the defaults of 802.1Qau: Q_eq 26 KB, w 2, G_d 1/128, R_AI 5, R_HAI 50 Mb/s, byte counter 150 KB, timer 15 ms. Both start at line rate; once with PFC, once without.",
  choices: [
    "The slides print no link rate and no parameters. 40 Gb/s is that of ConnectX-3 and SX1036; the parameters are the standard's, which are meant for 10 Gb/s.",
    "What converged in under 2 ms is not said; here it is the queue. From when on the two rates are equal is measured too.",
    "The switch has 4 MB.",
  ],
  quantities,
  statements: [
    {
      quote: "Rapid convergence: Under 2ms",
      where: kWhere,
      reading: "after 2 ms the queue stays within 50% of Q_eq",
      checks: kEach.map((run) => ({ quantity: `settled_${run}`, max: 2 })),
      remark: "The parameters of the adapters and the switch are not known.",
    },
    {
      quote: "Stable: Small oscillations",
      where: kWhere,
      reading: "from 50 ms on the queue's standard deviation is at most half of Q_eq",
      checks: kEach.map((run) => ({ quantity: `queue_deviation_${run}`, max: kSetPoint / 2 })),
    },
    {
      quote: "Negligible underflow; >99% utilization of congested link",
      where: kWhere,
      reading: "from 50 ms on the link is in use for 99% or more of the time",
      checks: kEach.map((run) => ({ quantity: `utilisation_${run}`, min: 99 })),
    },
    {
      quote: "No overflows in steady state: No pause frames while enabling PFC/global-pause",
      where: kWhere,
      reading: "no PFC frame from 50 ms on",
      checks: [{ quantity: "pauses_pfc", max: 0 }],
    },
    {
      quote: "No overflows in steady state: No packet loss while disabling pause",
      where: kWhere,
      reading: "no frame dropped in the run without PFC",
      checks: [{ quantity: "drops_no_pfc", max: 0 }],
    },
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [
      { name: "pfc", file: kFile, set: [] },
      { name: "no-pfc", file: kFile, set: ["switch.pfc.enabled=false"] },
    ],
    observe: (runs) => {
      const parts = [observeOne("pfc", runs.pfc as Evidence), observeOne("no_pfc", runs["no-pfc"] as Evidence)];
      return {
        values: Object.assign({}, ...parts.map(({ values }) => values)),
        plots: parts.flatMap(({ plots }) => plots),
      };
    },
    sim_seconds: 4,
  },
};

function observeOne(run: (typeof kEach)[number], { series, result, scenario }: Evidence): Observation {
  const length: Signal = { time: series.time_s, values: queue(series, kQueue).values.map((bytes) => bytes / 1000) };
  const peaks = series.queues[kQueue]?.max_bytes ?? [];
  const own = Object.values(rates(series));
  const near = (kb: number) => kb >= kSetPoint / 2 && kb <= 1.5 * kSetPoint;
  const even = evenness(own.map((one) => movingMean(one, kWindow)));
  const steady = between(length, kSteady, kEnd);
  const figures = describe(steady);
  const delivered = mean(between(goodput(series), kSteady + series.interval_s / 2, kEnd + series.interval_s / 2));
  const limit = result.totals.goodput_limit_bps;
  const pauses = total(Object.values(series.pauses ?? {}));
  const name = run === "pfc" ? "With PFC" : "Without PFC";
  return {
    values: known({
      [`settled_${run}`]: 1000 * lastingFrom(length, near, 0, kEnd),
      [`share_${run}`]: 1000 * lastingFrom(even, (epsilon) => epsilon >= 0.9, kWindow / 2, kEnd),
      [`utilisation_${run}`]: typeof limit === "number" && limit > 0 ? (100 * delivered) / limit : undefined,
      [`empty_${run}`]: (100 * steady.filter((kb) => kb === 0).length) / Math.max(1, steady.length),
      [`queue_mean_${run}`]: figures?.mean,
      [`queue_deviation_${run}`]: figures?.deviation,
      [`queue_max_${run}`]: peaks.reduce((most, bytes) => Math.max(most, bytes), 0) / 1000,
      [`pauses_${run}`]: between({ time: series.time_s, values: pauses }, kSteady, kEnd).reduce((sum, n) => sum + n, 0),
      [`drops_${run}`]: dropsOf(result),
    }),
    plots: [ratePlot(`${name}: current rates`, own, scenario.flows.length), queuePlot(`${name}: queue length`, length)],
  };
}

export function dropsOf({ switches }: Evidence["result"]): number {
  return Object.values(switches)
    .flatMap(({ drops }) => Object.values(drops))
    .reduce((sum, n) => sum + n, 0);
}

function ratePlot(title: string, own: readonly Signal[], flows: number): Plot {
  return {
    title,
    x_label: "time, ms",
    y_label: "rate, Gb/s",
    x_range: [0, kEnd * 1000],
    y_range: [0, 42],
    curves: own.map(({ time, values }, i) => ({
      label: `port ${i + 1}`,
      x: time.map((at) => at * 1000),
      y: values.map((bps) => bps / 1e9),
    })),
    levels: [{ label: "fair share", value: 40 / flows }],
  };
}

function queuePlot(title: string, { time, values }: Signal): Plot {
  return {
    title,
    x_label: "time, ms",
    y_label: "queue, KB",
    x_range: [0, kEnd * 1000],
    curves: [{ label: "", x: time.map((at) => at * 1000), y: values }],
    levels: [{ label: "Q_eq 26 KB", value: kSetPoint }],
  };
}
