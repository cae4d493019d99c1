/**
 * Figures 8 to 13 of Kabbani and Yasuda: queue and utilisation while the service rate of the output queue falls from 0.95 to 0.2
 * Gb/s and comes back, with 1 and 8 sources and round trips of 100, 500 and 1000 us.
 */

import { jainIndex } from "../../result/statistics.js";
import type { Scenario } from "../../scenario/types.js";
import { kEthernetOverhead, kHeaderBytes } from "../../wire/frame_size.js";
import type { Check, Evidence, Experiment, Observation, Quantity, Statement } from "../experiment.js";
import { between, describe, firstTime, goodput, known, lastingFrom, mean, movingMean, queue } from "../measure.js";
import { NETFPGA } from "./papers.js";

const kQueue = "sw:r:3";
const kSetPoint = 33; // Q_eq, KB
const kBuffer = 150; // KB
/** Bytes by which a queue can stay below its buffer's size when the next frame no longer fits. */
const kFrame = 1200;
/** Width of the means by which transients are judged, and how long a transient may take, s. */
const kWindow = 0.1;
const kShortWindow = 0.02;
const kTransient = 0.5;
const kTag = 4;

/** Service rates in order: begin and end, s, and bit/s. */
const kPhases = [
  { name: "before", label: "0.95 Gb/s, before", from: 0, to: 3, rate: 950e6 },
  { name: "reduced", label: "0.2 Gb/s", from: 3, to: 6.7, rate: 200e6 },
  { name: "after", label: "0.95 Gb/s, after", from: 6.7, to: 9.7, rate: 950e6 },
] as const;

function quantities(sources: number): Record<string, Quantity> {
  const each = kPhases.flatMap(({ name, label }): [string, Quantity][] => [
    [`queue_mean_${name}`, { label: `queue, mean (${label})`, unit: "KB" }],
    [`queue_p1_${name}`, { label: `queue, p1 (${label})`, unit: "KB" }],
    [`queue_p99_${name}`, { label: `queue, p99 (${label})`, unit: "KB" }],
    [`queue_deviation_${name}`, { label: `queue, standard deviation (${label})`, unit: "KB" }],
    [`utilisation_${name}`, { label: `utilisation (${label})`, unit: "%" }],
    [`full_${name}`, { label: `share of ms in which the buffer was full (${label})`, unit: "%" }],
    [`settled_${name}`, { label: `queue within 50% of Q_eq from (${label})`, unit: "s" }],
  ]);
  return {
    ...Object.fromEntries(each),
    recovery: { label: "utilisation back at 95% after the rate returned", unit: "s" },
    idle: { label: "link time lost after the rate returned", unit: "s" },
    drops: { label: "frames dropped, whole run", unit: "frames" },
    ...(sources > 1 && { jain: { label: "Jain's index of the sources, last second", unit: "" } }),
  };
}

function statements(sources: number): Statement[] {
  const all = (make: (phase: string) => Check): Check[] => kPhases.map(({ name }) => make(name));
  return [
    {
      quote: "Figures 8 through 13 show that our implementation results closely match OMNeT++ results in all cases.",
      where: "section 4.2",
      reading:
        "the paper's hardware and simulator as Weir's wire and sim: mean queue within 10% or 3.3 KB, utilisation within 2 points",
      checks: [
        ...all((phase) => ({
          quantity: `queue_mean_${phase}`,
          near: { clock: "sim", within: 0.1, margin: kSetPoint / 10 },
        })),
        ...all((phase) => ({ quantity: `utilisation_${phase}`, near: { clock: "sim", within: 0, margin: 2 } })),
      ],
    },
    {
      quote: "The goal of the CP is to maintain the buffer occupancy at a desired operating point, Q_eq",
      where: "section 2",
      reading: "mean queue within 20% of 33 KB at each service rate, the first 0.5 s of it left out",
      checks: all((phase) => ({ quantity: `queue_mean_${phase}`, min: 0.8 * kSetPoint, max: 1.2 * kSetPoint })),
      remark:
        "The more sources there are and the slower the queue is served, the more their increases weigh between two samples, and the more of the samples must tell to cut: the queue settles where they do, above Q_eq.",
    },
    {
      quote: "Stable. Buffer occupancy processes should not fluctuate.",
      where: "section 1",
      reading: "standard deviation of the queue at most half of Q_eq at each service rate",
      checks: all((phase) => ({ quantity: `queue_deviation_${phase}`, max: kSetPoint / 2 })),
    },
    {
      quote: "Responsive. ... The algorithm needs to rapidly adapt source rates to these variations.",
      where: "section 1",
      reading:
        "0.5 s after the service rate fell, the queue (mean of 0.1 s) stays within 50% of Q_eq; 0.5 s after it returned, utilisation (mean of 20 ms) is 95% again",
      checks: [
        { quantity: "settled_reduced", max: kTransient },
        { quantity: "recovery", max: kTransient },
      ],
    },
    ...(sources > 1
      ? [
          {
            quote:
              "Fair. When multiple flows share a link, they should obtain nearly the same share of the link's bandwidth.",
            where: "section 1",
            reading: "Jain's index of what the sources got in the last second at least 0.95",
            checks: [{ quantity: "jain", min: 0.95 }],
            remark:
              "The paper shows no rates. Shu et al. measure that two flows of QCN take more than 10 s to become equal; the phases here last 3 s.",
          },
        ]
      : []),
  ];
}

/** Wire bytes per byte of payload, in full packets. */
function frameShare({ hosts: [host] }: Scenario): number {
  const payload = host?.path_mtu ?? 1024;
  return (payload + kHeaderBytes + (host?.qcn.cn_tag ? kTag : 0) + kEthernetOverhead) / payload;
}

export function observe({ qcn }: Readonly<Record<string, Evidence>>): Observation {
  const { series, scenario, result } = qcn as Evidence;
  const length = queue(series, kQueue);
  const kilobytes = { time: length.time, values: length.values.map((bytes) => bytes / 1000) };
  const peak = series.queues[kQueue]?.max_bytes ?? length.values;
  const delivered = goodput(series);
  const share = frameShare(scenario);
  const rateAt = (time: number) => kPhases.find(({ from, to }) => time > from && time <= to)?.rate ?? kPhases[0].rate;
  const used = {
    time: delivered.time,
    values: delivered.values.map((bps, i) => (100 * bps * share) / rateAt(delivered.time[i] as number)),
  };
  const smoothQueue = movingMean(kilobytes, kWindow);
  const smoothUsed = movingMean(used, kShortWindow);
  const near = (kb: number) => kb >= kSetPoint / 2 && kb <= 1.5 * kSetPoint;
  const values: Record<string, number | undefined> = {};
  for (const { name, from, to } of kPhases) {
    const steady = from + kTransient;
    const figures = describe(between(kilobytes, steady, to));
    const tops = between({ time: length.time, values: peak }, steady, to);
    values[`queue_mean_${name}`] = figures?.mean;
    values[`queue_p1_${name}`] = figures?.p1;
    values[`queue_p99_${name}`] = figures?.p99;
    values[`queue_deviation_${name}`] = figures?.deviation;
    values[`utilisation_${name}`] = mean(between(used, steady, to));
    values[`full_${name}`] = (100 * tops.filter((bytes) => bytes > kBuffer * 1000 - kFrame).length) / tops.length;
    values[`settled_${name}`] = lastingFrom(smoothQueue, near, from, to - kWindow / 2) - from;
  }
  const { from } = kPhases[2];
  const returned = between(used, from, kPhases[2].to);
  return {
    values: known({
      ...values,
      // The first means have times before the change in them.
      recovery: firstTime(smoothUsed, (percent) => percent >= 95, from + kShortWindow) - from,
      idle: returned.reduce((sum, percent) => sum + Math.max(0, 1 - percent / 100), 0) * series.interval_s,
      drops: Object.values(result.switches.sw?.drops ?? {}).reduce((sum, n) => sum + n, 0),
      jain: scenario.flows.length > 1 ? lastSecond(qcn as Evidence) : undefined,
    }),
    plots: [
      {
        title: "Queue size",
        x_label: "time, s",
        y_label: "queue, KB",
        x_range: [0, 9.7],
        y_range: [0, 160],
        curves: [{ label: "", x: kilobytes.time, y: kilobytes.values }],
        levels: [
          { label: "Q_eq 33 KB", value: kSetPoint },
          { label: "buffer 150 KB", value: kBuffer },
        ],
        marks: phaseMarks(),
      },
      {
        title: "Utilisation of the service rate, mean of 20 ms",
        x_label: "time, s",
        y_label: "utilisation, %",
        x_range: [0, 9.7],
        y_range: [0, 125],
        curves: [{ label: "", x: used.time, y: smoothUsed.values, color: 2 }],
        levels: [{ label: "100%", value: 100 }],
        marks: phaseMarks(),
      },
      {
        title: scenario.flows.length > 1 ? "Current rate of each source" : "Current rate of the source",
        x_label: "time, s",
        y_label: "rate, Mb/s",
        x_range: [0, 9.7],
        curves: Object.values(series.flows).map(({ rate_bps = [] }) => ({
          label: "",
          x: series.time_s,
          y: rate_bps.map((bps) => bps / 1e6),
        })),
        marks: phaseMarks(),
      },
    ],
  };
}

function phaseMarks() {
  return [
    { label: "0.2 Gb/s", x: 3 },
    { label: "0.95 Gb/s", x: 6.7 },
  ];
}

function lastSecond({ series }: Evidence): number {
  const end = series.time_s.at(-1) ?? 0;
  const shares = Object.values(series.flows).map(({ goodput_bps = [] }) =>
    mean(between({ time: series.time_s, values: goodput_bps }, end - 1, end)),
  );
  return jainIndex(shares);
}

function figure(number: number, sources: 1 | 8, rtt: number): Experiment {
  const one = sources === 1;
  const delays = one ? [0] : [0, 1];
  return {
    id: `qcn-netfpga-fig${number}`,
    paper: NETFPGA,
    place: `figure ${number}`,
    title: `queue and utilisation, ${one ? "1 source" : "8 sources"}, RTT ${rtt} us`,
    setup: `${one ? "One source" : "Eight sources on two NICs"} at 1 Gb/s, each with a MAC address of its own, and one output queue of 150 KB that is served at 0.95 Gb/s for 3 s, at 0.2 Gb/s for 3.7 s and at 0.95 Gb/s for 3 s. Q_eq 33 KB, W 2, G_d 1/128, AI 0.5 and HAI 5 Mb/s, timer 25 ms, byte counter 150 KB. Round trip between sources and switch ${rtt} us.`,
    choices: [
      "The paper's figures are pictures; no numbers are printed, and where the change comes on their axis of time is not said. Here it comes after 3 s.",
      "The rates count headers, preamble and gap of the frames; the payload of a packet is 1,024 bytes. The paper does not say what its generators send.",
      "The round trip is that of the delay line, between a source and the switch; what lies behind the switch adds 2 us.",
      ...(one ? [] : ["Four reaction points share one link of 1 Gb/s, as a NIC of the paper's has four of them."]),
      "PFC is off, as the paper adds it later.",
    ],
    quantities: quantities(sources),
    statements: statements(sources),
    network: {
      clocks: ["wire", "sim"],
      trials: [
        {
          name: "qcn",
          file: `qcn/netfpga-${one ? "1-source" : "8-sources"}.yaml`,
          set: rtt === 100 ? [] : delays.map((link) => `topology.links.${link}.delay=${rtt / 2}us`),
        },
      ],
      observe,
      sim_seconds: 2,
    },
  };
}

export const NETFPGA_FIGURES: readonly Experiment[] = [
  figure(8, 1, 100),
  figure(9, 1, 500),
  figure(10, 1, 1000),
  figure(11, 8, 100),
  figure(12, 8, 500),
  figure(13, 8, 1000),
];
