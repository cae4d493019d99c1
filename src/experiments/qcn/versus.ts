/** QCN and DCQCN on the same incast, held against what the QCN paper asks of any congestion control on Ethernet. */
import type { Curve } from "../../report/plot.js";
import type { Check, Evidence, Experiment, Quantity } from "../experiment.js";
import { between, describe, evenness, known, lastingFrom, movingMean, queue, rates, type Signal } from "../measure.js";
import { dropsOf } from "./liss.js";
import { NETFPGA } from "./papers.js";

const kQueue = "sw:h9:3";
const kFile = "qcn/incast-8to1.yaml";
const kWindow = 0.005;
const kSteady = 0.05;
const kEnd = 0.2;

const kAlgorithms = [
  { name: "qcn", label: "QCN", set: [] },
  {
    name: "dcqcn",
    label: "DCQCN",
    set: [
      "congestion.algorithm=dcqcn",
      "congestion.profile=paper-sigcomm15",
      "switch.qcn.enabled=false",
      "switch.ecn.enabled=true",
    ],
  },
] as const;

const quantities = Object.fromEntries(
  kAlgorithms.flatMap(({ name, label }): [string, Quantity][] => [
    [
      `converged_${name}`,
      { label: `${label}: slowest rate stays at half of the fastest (means of 5 ms) from`, unit: "ms" },
    ],
    [`goodput_${name}`, { label: `${label}: goodput from 50 ms on`, unit: "Gb/s" }],
    [`utilisation_${name}`, { label: `${label}: of what headers leave`, unit: "%" }],
    [`jain_${name}`, { label: `${label}: Jain's index from 50 ms on`, unit: "" }],
    [`queue_p50_${name}`, { label: `${label}: queue, p50 from 50 ms on`, unit: "KB" }],
    [`queue_p95_${name}`, { label: `${label}: queue, p95`, unit: "KB" }],
    [`queue_p99_${name}`, { label: `${label}: queue, p99`, unit: "KB" }],
    [`spread_${name}`, { label: `${label}: queue, p99 / p50`, unit: "" }],
    [`queue_max_${name}`, { label: `${label}: queue, highest of the whole run`, unit: "KB" }],
    [
      `feedback_${name}`,
      { label: `${label}: ${label === "QCN" ? "CNMs" : "CNPs"} per second, whole run`, unit: "1/s" },
    ],
    [`pauses_${name}`, { label: `${label}: PFC frames, whole run`, unit: "frames" }],
    [`drops_${name}`, { label: `${label}: frames dropped, whole run`, unit: "frames" }],
  ]),
);

const both = (make: (name: string) => Check): Check[] => kAlgorithms.map(({ name }) => make(name));

export const QCN_VERSUS_DCQCN: Experiment = {
  id: "qcn-vs-dcqcn",
  paper: NETFPGA,
  place: "section 1",
  title: "the same incast with QCN and with DCQCN",
  setup:
    "Eight senders and one receiver on one switch, all links 40 Gb/s, PFC on: once QCN with the defaults of 802.1Qau, once DCQCN with the parameters of its paper. All start at line rate.",
  choices: [
    "No paper has this comparison. The statements are the requirements on any congestion control that the QCN paper names.",
    "802.1Qau's defaults are meant for 10 Gb/s, DCQCN's for 40 Gb/s; both are used as they are printed.",
    "Feedback: congestion notification messages that a switch sends with QCN, congestion notification packets that a receiver sends with DCQCN.",
  ],
  quantities,
  statements: [
    {
      quote:
        "Fair. When multiple flows share a link, they should obtain nearly the same share of the link's bandwidth.",
      where: "section 1, performance requirements",
      reading: "Jain's index at least 0.95 from 50 ms on, with either",
      checks: both((name) => ({ quantity: `jain_${name}`, min: 0.95 })),
      remark: "Flows of QCN take seconds to become equal, see qcn-shu-fig1.",
    },
    {
      quote: "Packets may not be dropped.",
      where: "section 1, Ethernet constraints",
      reading: "no frame is dropped, with either",
      checks: both((name) => ({ quantity: `drops_${name}`, max: 0 })),
    },
    {
      quote: "Stable. Buffer occupancy processes should not fluctuate.",
      where: "section 1, performance requirements",
      reading: "from 50 ms on the queue's p99 is at most 4 times its median, with either",
      checks: both((name) => ({ quantity: `spread_${name}`, max: 4 })),
    },
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: kAlgorithms.map(({ name, set }) => ({ name, file: kFile, set })),
    observe: (runs) => {
      const parts = kAlgorithms.map((algorithm) => ({ ...algorithm, run: runs[algorithm.name] as Evidence }));
      return {
        values: Object.assign({}, ...parts.map(({ name, run }) => valuesOf(name, run))),
        plots: [
          ...parts.map(({ label, run }) => ({
            title: `${label}: current rates of the 8 senders`,
            x_label: "time, ms",
            y_label: "rate, Gb/s",
            x_range: [0, kEnd * 1000] as const,
            y_range: [0, 20] as const,
            curves: Object.values(rates(run.series)).map(
              ({ time, values }): Curve => ({
                label: "",
                x: time.map((at) => at * 1000),
                y: values.map((bps) => bps / 1e9),
              }),
            ),
            levels: [{ label: "fair share", value: 5 }],
          })),
          {
            title: "Queue length, highest of each ms (beyond 400 KB: only in the table)",
            x_label: "time, ms",
            y_label: "queue, KB",
            x_range: [0, kEnd * 1000],
            y_range: [0, 400],
            curves: parts.map(({ label, run }) => ({ label, ...highest(run) })),
          },
        ],
      };
    },
    sim_seconds: 6,
  },
};

function valuesOf(name: string, { series, result }: Evidence): Record<string, number> {
  const length = queue(series, kQueue);
  const figures = describe(between(length, kSteady, kEnd).map((bytes) => bytes / 1000));
  const peaks = series.queues[kQueue]?.max_bytes ?? [];
  const even = evenness(Object.values(rates(series)).map((one) => movingMean(one, kWindow)));
  const { goodput_bps, goodput_limit_bps, jain } = result.totals;
  const feedback = result.flows.reduce((sum, { cnp_handled, cnm_handled }) => sum + (cnm_handled ?? cnp_handled), 0);
  const pauses = Object.values(result.switches).flatMap(({ pfc_sent }) => Object.values(pfc_sent));
  return known({
    [`converged_${name}`]: 1000 * lastingFrom(even, (epsilon) => epsilon >= 0.5, kWindow / 2, kEnd),
    [`goodput_${name}`]: goodput_bps / 1e9,
    [`utilisation_${name}`]: goodput_limit_bps !== undefined ? (100 * goodput_bps) / goodput_limit_bps : undefined,
    [`jain_${name}`]: jain,
    [`queue_p50_${name}`]: figures?.p50,
    [`queue_p95_${name}`]: figures?.p95,
    [`queue_p99_${name}`]: figures?.p99,
    [`spread_${name}`]: figures && figures.p50 > 0 ? figures.p99 / figures.p50 : Number.POSITIVE_INFINITY,
    [`queue_max_${name}`]: peaks.reduce((most, bytes) => Math.max(most, bytes), 0) / 1000,
    [`feedback_${name}`]: feedback / result.duration_s,
    [`pauses_${name}`]: pauses.reduce((sum, n) => sum + n, 0),
    [`drops_${name}`]: dropsOf(result),
  });
}

/** Of each ms, so that two noisy curves can be told apart. */
function highest({ series }: Evidence): { x: number[]; y: number[] } {
  const signal: Signal = { time: series.time_s, values: series.queues[kQueue]?.max_bytes ?? [] };
  const x = Array.from({ length: Math.round(kEnd * 1000) }, (_, i) => i);
  return { x, y: x.map((ms) => Math.max(0, ...between(signal, ms / 1000, (ms + 1) / 1000)) / 1000) };
}
