/**
 * Figure 19: how long the queue of an incast of 20 to 1 is, with DCQCN and with DCTCP.
 *
 * The DCTCP model is that of Alizadeh et al., SIGCOMM 2010, section 3.3: windows of N flows grow together until the queue has reached K, and
 * one packet of each later, so that it swings between Qmax - A and Qmax, growing evenly, with Qmax = K + N and A = sqrt(2 N (C RTT + K)) / 2
 * in packets (equations 3 to 8).
 */
import { runModel } from "../../models/dcqcn/index.js";
import type { Curve, Plot } from "../../report/plot.js";
import { kEthernetOverhead, kHeaderBytes } from "../../wire/frame_size.js";
import type { Evidence, Experiment, Observation, TraceValues, Trial } from "../experiment.js";
import { known } from "../measure.js";
import { loadTrial } from "../run.js";
import { distributionOf, kFile, kNs3Text, kPaper, lengthsOf, usedOf } from "./incast_queue.js";
import { DCQCN_PAPER } from "./paper.js";

const kThreshold = 160; // K of DCTCP, KB
const kRange = [0, 300] as const;

const kDcqcn: Trial = { name: "dcqcn", file: kFile, set: [] };
const kDctcp: Trial = {
  name: "dctcp",
  file: kFile,
  set: [
    "congestion.algorithm=dctcp",
    "transport.type=rc",
    "transport.window=16384",
    `switch.ecn.kmin=${kThreshold}KB`,
    `switch.ecn.kmax=${kThreshold}KB`,
    "switch.ecn.pmax=100%",
    "switch.pfc.enabled=false",
  ],
  clocks: ["sim"],
};
const kAlgorithms = [
  { name: "dcqcn", label: "DCQCN" },
  { name: "dctcp", label: "DCTCP" },
] as const;

const quantities = Object.fromEntries(
  kAlgorithms.flatMap(({ name, label }) => [
    [`p50_${name}`, { label: `${label}: queue, p50`, unit: "KB" }],
    [`p95_${name}`, { label: `${label}: queue, p95`, unit: "KB" }],
    [`p99_${name}`, { label: `${label}: queue, p99`, unit: "KB" }],
    [`max_${name}`, { label: `${label}: queue, longest`, unit: "KB" }],
    [`used_${name}`, { label: `${label}: goodput, of what headers leave`, unit: "%" }],
  ]),
);

function valuesOf(name: string, run: Evidence): Record<string, number | undefined> {
  const { p50, p95, p99, max } = lengthsOf(run);
  return {
    [`p50_${name}`]: p50,
    [`p95_${name}`]: p95,
    [`p99_${name}`]: p99,
    [`max_${name}`]: max,
    [`used_${name}`]: usedOf(run),
  };
}

function plotOf(curves: readonly Curve[]): Plot {
  return {
    title: "Length of the queue",
    x_label: "queue, KB",
    y_label: "part of the time",
    x_range: kRange,
    y_range: [0, 1],
    curves,
    levels: [{ label: "p95", value: 0.95 }],
    marks: [
      { label: "paper, DCQCN", x: kPaper.dcqcn.p95 },
      { label: "paper, DCTCP", x: kPaper.dctcp.p95 },
    ],
  };
}

function observe(runs: Readonly<Record<string, Evidence>>): Observation {
  const parts = kAlgorithms.flatMap(({ name, label }, color) => {
    const run = runs[name];
    return run === undefined ? [] : [{ name, label, color, run, cdf: distributionOf(run) }];
  });
  const values = known(Object.assign({}, ...parts.map(({ name, run }) => valuesOf(name, run))));
  const { p95_dcqcn, p95_dctcp } = values;
  return {
    values: {
      ...values,
      ...(p95_dcqcn !== undefined && p95_dctcp !== undefined && { ratio: p95_dcqcn / p95_dctcp }),
    },
    plots: [plotOf(parts.map(({ label, color, cdf }) => ({ label, color, ...cdf })))],
    traces: Object.fromEntries(parts.map(({ name, cdf }) => [`queue_${name}`, cdf])),
  };
}

/** Qmax and A of the DCTCP model, KB. */
export function dctcpModel(): { top: number; swing: number } {
  const { scenario } = loadTrial(kDctcp);
  const { rate, delay } = scenario.links[0] as { rate: number; delay: number };
  const mtu = scenario.hosts[0]?.path_mtu ?? 1024;
  const queued = (mtu + kHeaderBytes) / 1000;
  const onLink = (mtu + kHeaderBytes + kEthernetOverhead) * 8;
  const flows = scenario.flows.length;
  // A packet is sent twice, and four times on a cable with its acknowledgement, whose own bytes are left out.
  const pipe = (rate * ((4 * delay) / 1e9 + (2 * onLink) / rate)) / onLink;
  const threshold = kThreshold / queued;
  return { top: (threshold + flows) * queued, swing: (Math.sqrt(2 * flows * (pipe + threshold)) / 2) * queued };
}

async function model(): Promise<Observation> {
  const { scenario } = loadTrial(kDcqcn);
  const { result, series } = await runModel(scenario, { signal: new AbortController().signal });
  const cdf = distributionOf({ result, series });
  const { top, swing } = dctcpModel();
  const sawtooth: TraceValues = { x: [0, top - swing, top, kRange[1]], y: [0, 0, 1, 1] };
  const at = (part: number) => top - swing + part * swing;
  const { p95 } = lengthsOf({ result });
  return {
    values: {
      ...known(valuesOf("dcqcn", { result, series, scenario })),
      p50_dctcp: at(0.5),
      p95_dctcp: at(0.95),
      p99_dctcp: at(0.99),
      max_dctcp: top,
      ratio: p95 / at(0.95),
    },
    plots: [
      plotOf([
        { label: "DCQCN", ...cdf },
        { label: "DCTCP", ...sawtooth },
      ]),
    ],
    traces: { queue_dcqcn: cdf, queue_dctcp: sawtooth },
  };
}

const kFluid =
  "At rest 20 flows need p = 1.6% (packets of 1,024 bytes; 2.1% of 1,500 bytes), and marking jumps from Pmax = 1% to 100% at Kmax: the fluid model has no length of the queue at its fixed point (null), and swings about Kmax.";

export const DCQCN_FIGURE_19: Experiment = {
  id: "dcqcn-fig19",
  paper: DCQCN_PAPER,
  place: "figure 19",
  title: "queue length CDF in an incast of 20 to 1, DCQCN and DCTCP",
  setup:
    "20 senders and one receiver on one switch, all links 40 Gb/s, greedy flows for 100 ms; the length of the receiver's queue over the second half. DCQCN with table 14; DCTCP with a threshold of 160 KB and RFC 8257's parameters.",
  choices: [
    "The paper does not say how long it ran, how often the switch was read, nor how large its messages were: here 100 ms, every moment counts, 4 MB.",
    "DCTCP runs in the simulator only, over reliable connections at line rate: without the bursts of an operating system's TCP, which the paper has in mind. PFC is off for it, as for TCP.",
    "Packets have 1,024 bytes of payload.",
    "The model's DCTCP is the analysis of the DCTCP paper: between K + N - A and K + N packets.",
    `${kNs3Text} examples/paper/dcqcn/reference has their distributions, to be laid over these by --reference.`,
  ],
  quantities: {
    ...quantities,
    ratio: { label: "queue p95, DCQCN / DCTCP", unit: "" },
  },
  statements: [
    {
      quote: "With this setup, the queue length with DCQCN is significantly shorter than that with DCTCP (Figure 19).",
      where: "section 6.3",
      reading: "the 95th percentile with DCQCN is at most three quarters of that with DCTCP",
      checks: [{ quantity: "ratio", max: 0.75 }],
      remark:
        "The median is, by far. But with DCQCN the queue is not steady: simulated, it is empty for 23% of the time and beyond Kmax = 200 KB for 12%. dcqcn-queue-20to1 looks for the reason.",
    },
    {
      quote: "For example, the 95th-percentile queue length is 76.6KB with DCQCN",
      where: "section 6.3",
      reading: "within 20% of it",
      checks: [{ quantity: "p95_dcqcn", min: 0.8 * kPaper.dcqcn.p95, max: 1.2 * kPaper.dcqcn.p95 }],
      remark: `Nor is it in the paper's own model, nor in ns-3: 231.6 to 324.9 KB. ${kFluid}`,
    },
    {
      quote: "and 162.9KB with DCTCP.",
      where: "section 6.3",
      reading: "within 20% of it",
      checks: [{ quantity: "p95_dctcp", min: 0.8 * kPaper.dctcp.p95, max: 1.2 * kPaper.dctcp.p95 }],
    },
    {
      quote: "These numbers align well with DCQCN fluid model",
      where: "section 6.3",
      reading: "p95 within 20% of that of the fluid model",
      checks: [{ quantity: "p95_dcqcn", near: { clock: "model", within: 0.2, margin: 0 } }],
      remark: `Weir's packets and the paper's equations agree better with each other than either does with 76.6 KB. ${kFluid}`,
    },
    {
      quote: "and DCTCP model [2].",
      where: "section 6.3",
      reading: "p95 and the longest queue within 10% of those of the DCTCP paper's analysis",
      checks: [
        { quantity: "p95_dctcp", near: { clock: "model", within: 0.1, margin: 0 } },
        { quantity: "max_dctcp", near: { clock: "model", within: 0.1, margin: 0 } },
      ],
    },
  ],
  traces: {
    queue_dcqcn: {
      title: "Length of the queue with DCQCN",
      x_label: "queue, KB",
      y_label: "part of the time",
      unit: "",
      x_range: kRange,
    },
    queue_dctcp: {
      title: "Length of the queue with DCTCP",
      x_label: "queue, KB",
      y_label: "part of the time",
      unit: "",
      x_range: kRange,
    },
  },
  network: { clocks: ["wire", "sim"], trials: [kDcqcn, kDctcp], observe, sim_seconds: 1 },
  model,
};
