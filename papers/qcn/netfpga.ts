/**
 * Figures 8 to 13 of Kabbani and Yasuda: queue and utilisation while the service rate of the output queue falls from 0.95 to 0.2
 * Gb/s and comes back, with 1 and 8 sources and round trips of 100, 500 and 1000 us.
 */

import { networkCounts } from "../../src/result/counts.js";
import {
  between,
  describe,
  firstTime,
  goodput,
  inUnits,
  lastingFrom,
  mean,
  movingMean,
  queue,
  rates,
  type Signal,
  total,
} from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import { jainIndex } from "../../src/result/statistics.js";
import { kEthernetOverhead, kHeaderBytes } from "../../src/wire/frame_size.js";
import type { Evidence } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  grid,
  namesOf,
  near,
  quantity,
  type Runs,
  statement,
  studyOf,
  within,
} from "../engine/study.js";
import { UNEQUAL_FOR_SECONDS } from "./causes.js";
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
/** Chance decides whom feedback meets where there are several. */
const kSeeds = 10;

/** Service rates in order: begin and end, s, and bit/s. */
const kPhases = {
  before: { label: "0.95 Gb/s, before", from: 0, to: 3, rate: 950e6 },
  reduced: { label: "0.2 Gb/s", from: 3, to: 6.7, rate: 200e6 },
  after: { label: "0.95 Gb/s, after", from: 6.7, to: 9.7, rate: 950e6 },
} as const;
type Phase = (typeof kPhases)[keyof typeof kPhases];
const kNames = namesOf(kPhases);

interface Seen {
  run: Evidence;
  /** KB; its highest in each interval, B. */
  length: Signal;
  peaks: Signal;
  /** Share of the service rate, %. */
  used: Signal;
  /** Rate of all sources together, bit/s. */
  sent: Signal;
}

const nearSetPoint = (kb: number) => kb >= kSetPoint / 2 && kb <= 1.5 * kSetPoint;

/** Returns the part of a phase after its transient. */
const steady = (signal: Signal, { from, to }: Phase) => between(signal, from + kTransient, to);
const lengths = ({ seen, phase }: { seen: Seen; phase: Phase }) => describe(steady(seen.length, phase));

const kQuantities = {
  ...grid(
    kNames,
    (seen: Seen, name) => ({ seen, phase: kPhases[name] }),
    (label, name) => `${label} (${kPhases[name].label})`,
  )({
    queue_mean: quantity("queue, mean", "KB", (one) => lengths(one)?.mean),
    queue_p1: quantity("queue, p1", "KB", (one) => lengths(one)?.p1),
    queue_p99: quantity("queue, p99", "KB", (one) => lengths(one)?.p99),
    queue_deviation: quantity("queue, standard deviation", "KB", (one) => lengths(one)?.deviation),
    utilisation: quantity("utilisation", "%", ({ seen, phase }) => mean(steady(seen.used, phase))),
    full: quantity("share of ms in which the buffer was full", "%", ({ seen, phase }) => {
      const tops = steady(seen.peaks, phase);
      return (100 * tops.filter((bytes) => bytes > kBuffer * 1000 - kFrame).length) / tops.length;
    }),
    settled: quantity(
      "queue within 50% of Q_eq from",
      "s",
      ({ seen: { length }, phase: { from, to } }) =>
        lastingFrom(movingMean(length, kWindow), nearSetPoint, from, to - kWindow / 2) - from,
    ),
  }),
  adapted: quantity("the sources' rates together stay within 20% of 0.2 Gb/s from", "s", ({ sent }: Seen) => {
    const { from, to, rate } = kPhases.reduced;
    const close = (bps: number) => Math.abs(bps / rate - 1) <= 0.2;
    return lastingFrom(movingMean(sent, kWindow), close, from + kWindow / 2, to - kWindow / 2) - from;
  }),
  recovery: quantity("utilisation back at 95% after the rate returned", "s", ({ used }: Seen) => {
    const { from } = kPhases.after;
    // The first means have times before the change in them.
    return firstTime(movingMean(used, kShortWindow), (percent) => percent >= 95, from + kShortWindow) - from;
  }),
  idle: quantity("link time lost after the rate returned", "s", ({ used, run }: Seen) => {
    const returned = between(used, kPhases.after.from, kPhases.after.to);
    return returned.reduce((sum, percent) => sum + Math.max(0, 1 - percent / 100), 0) * run.series.interval_s;
  }),
  drops: quantity("frames dropped, whole run", "frames", ({ run }: Seen) => networkCounts(run.result).drops),
};
const kJain = { jain: quantity("Jain's index of the sources, last second", "", ({ run }: Seen) => lastSecond(run)) };

const kStatements = [
  statement(
    "Figures 8 through 13 show that our implementation results closely match OMNeT++ results in all cases.",
    "section 4.2",
    "the paper's hardware and simulator as Weir's wire and sim: mean queue within 10% or 3.3 KB, utilisation within 2 points",
    [
      ...kNames.map((name) => near(`queue_mean_${name}`, "sim", 0.1, kSetPoint / 10)),
      ...kNames.map((name) => near(`utilisation_${name}`, "sim", 0, 2)),
    ],
  ),
  statement(
    "The goal of the CP is to maintain the buffer occupancy at a desired operating point, Q_eq",
    "section 2",
    "mean queue within 50% of 33 KB at each service rate, the first 0.5 s of it left out",
    kNames.map((name) => within(`queue_mean_${name}`, 0.5 * kSetPoint, 1.5 * kSetPoint)),
    "The more sources there are and the slower the queue is served, the more their increases weigh between two samples, and the more of the samples must tell to cut: the queue settles where they do, above Q_eq.",
  ),
  statement(
    "Stable. Buffer occupancy processes should not fluctuate.",
    "section 1",
    "at each service rate, the first 0.5 s of it left out, the queue's standard deviation is at most a quarter of Q_eq, it is longer than a frame for 99% of the time, and never full",
    kNames.flatMap((name) => [
      atMost(`queue_deviation_${name}`, kSetPoint / 4),
      atLeast(`queue_p1_${name}`, kFrame / 1000),
      atMost(`full_${name}`, 0),
    ]),
  ),
  statement(
    "Responsive. ... The algorithm needs to rapidly adapt source rates to these variations.",
    "section 1",
    "0.5 s after the service rate fell, the sources' rates together (mean of 0.1 s) stay within 20% of it; 0.5 s after it returned, utilisation (mean of 20 ms) is 95% again",
    [atMost("adapted", kTransient), atMost("recovery", kTransient)],
  ),
];
const kFair = statement(
  "Fair. When multiple flows share a link, they should obtain nearly the same share of the link's bandwidth.",
  "section 1",
  "Jain's index of what the sources got in the last second at least 0.95",
  [atLeast("jain", 0.95)],
  "The paper shows no rates. Shu et al. measure that two flows of QCN take more than 10 s to become equal; the phases here last 3 s.",
  UNEQUAL_FOR_SECONDS,
);

/** Wire bytes per byte of payload, in full packets. */
function frameShare({ hosts: [host] }: Evidence["scenario"]): number {
  const payload = host?.path_mtu ?? 1024;
  return (payload + kHeaderBytes + (host?.qcn.cn_tag ? kTag : 0) + kEthernetOverhead) / payload;
}

function see({ qcn }: Runs): Seen {
  const run = qcn as Evidence;
  const { series, scenario } = run;
  const length = queue(series, kQueue);
  const delivered = goodput(series);
  const share = frameShare(scenario);
  const rateAt = (time: number) =>
    Object.values(kPhases).find(({ from, to }) => time > from && time <= to)?.rate ?? kPhases.before.rate;
  return {
    run,
    length: inUnits(length, 1000),
    sent: { time: series.time_s, values: total(Object.values(rates(series)).map(({ values }) => values)) },
    peaks: { time: length.time, values: series.queues[kQueue]?.max_bytes ?? length.values },
    used: {
      time: delivered.time,
      values: delivered.values.map((bps, i) => (100 * bps * share) / rateAt(delivered.time[i] as number)),
    },
  };
}

function plots({ run: { scenario, series }, length, used }: Seen): Plot[] {
  const shared = {
    x_label: "time, s",
    x_range: [0, 9.7],
    marks: [
      { label: "0.2 Gb/s", x: 3 },
      { label: "0.95 Gb/s", x: 6.7 },
    ],
  } as const;
  return [
    {
      ...shared,
      title: "Queue size",
      y_label: "queue, KB",
      y_range: [0, 160],
      curves: [{ label: "", x: length.time, y: length.values }],
      levels: [
        { label: "Q_eq 33 KB", value: kSetPoint },
        { label: "buffer 150 KB", value: kBuffer },
      ],
    },
    {
      ...shared,
      title: "Utilisation of the service rate, mean of 20 ms",
      y_label: "utilisation, %",
      y_range: [0, 125],
      curves: [{ label: "", x: used.time, y: movingMean(used, kShortWindow).values, color: 2 }],
      levels: [{ label: "100%", value: 100 }],
    },
    {
      ...shared,
      title: scenario.flows.length > 1 ? "Current rate of each source" : "Current rate of the source",
      y_label: "rate, Mb/s",
      curves: Object.values(series.flows).map(({ rate_bps = [] }) => ({
        label: "",
        x: series.time_s,
        y: rate_bps.map((bps) => bps / 1e6),
      })),
    },
  ];
}

/** Evenness of what its sources got in the last second. */
function lastSecond({ series }: Evidence): number {
  const end = series.time_s.at(-1) ?? 0;
  const shares = Object.values(series.flows).map(({ goodput_bps = [] }) =>
    mean(between({ time: series.time_s, values: goodput_bps }, end - 1, end)),
  );
  return jainIndex(shares);
}

function figure(number: number, sources: 1 | 8, rtt: number) {
  const one = sources === 1;
  const delays = one ? [0] : [0, 1];
  const facts = {
    id: `qcn-netfpga-fig${number}`,
    paper: NETFPGA,
    place: `figure ${number}`,
    title: `queue and utilisation, ${one ? "1 source" : "8 sources"}, RTT ${rtt} us`,
    setup: `${one ? "One source" : "Eight sources on two NICs"} at 1 Gb/s, each with a MAC address of its own, and one output queue of 150 KB that is served at 0.95 Gb/s for 3 s, at 0.2 Gb/s for 3.7 s and at 0.95 Gb/s for 3 s. Q_eq 33 KB, W 2, G_d 1/128, AI 0.5 and HAI 5 Mb/s, timer 25 ms, byte counter 150 KB. Round trip between sources and switch ${rtt} us.`,
    choices: [
      "The paper's figures are pictures; no numbers are printed, and where the change comes on their axis of time is not said. Here it comes after 3 s.",
      "The rates count headers, preamble and gap of the frames; the payload of a packet is 1,024 bytes. The paper does not say what its generators send.",
      "The round trip is that of the delay line, between a source and the switch; what lies behind the switch adds 2 us.",
      ...(one
        ? []
        : [
            "Four reaction points share one link of 1 Gb/s, as a NIC of the paper's has four of them.",
            `Chance decides which source feedback meets: in virtual time ${kSeeds} seeds run, and medians are judged.`,
          ]),
      "PFC is off, as the paper adds it later.",
    ],
    plots,
    network: {
      clocks: ["wire", "sim"] as const,
      trials: [
        {
          name: "qcn",
          file: `qcn/netfpga-${one ? "1-source" : "8-sources"}.yaml`,
          set: rtt === 100 ? [] : delays.map((link) => `topology.links.${link}.delay=${rtt / 2}us`),
        },
      ],
      ...(!one && { seeds: kSeeds }),
      see,
      sim_seconds: 2,
    },
  };
  const study = studyOf<Seen>();
  return one
    ? study({ ...facts, quantities: kQuantities, statements: kStatements })
    : study({ ...facts, quantities: { ...kQuantities, ...kJain }, statements: [...kStatements, kFair] });
}

export const NETFPGA_FIGURES = [
  figure(8, 1, 100),
  figure(9, 1, 500),
  figure(10, 1, 1000),
  figure(11, 8, 100),
  figure(12, 8, 500),
  figure(13, 8, 1000),
];
