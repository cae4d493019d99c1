/** An experiment of two trials that measures the goodput of its first flow, and runners that give it whatever a test wants. */

import type { SimOutcome } from "../../../src/clocks/sim/types.js";
import type { Result } from "../../../src/result/result.js";
import type { Runners } from "../../../src/study/point.js";
import { sampleResult, sampleSeries } from "../../../test/result/report/sample.js";
import type { Evidence, Experiment } from "../experiment.js";
import type { PaperOptions } from "../run.js";

export const fakeExperiment: Experiment = {
  id: "fake-fig1",
  paper: { name: "Fake", citation: "F. Ake: Of Nothing" },
  place: "figure 1",
  title: "goodput of <two> trials",
  setup: "Nothing is run.",
  choices: ["The paper leaves all open."],
  quantities: {
    fast: { label: "goodput, fast", unit: "Gb/s" },
    slow: { label: "goodput, slow", unit: "Gb/s" },
    never: { label: "what never happens", unit: "s" },
  },
  traces: {
    rate: { title: "Rate", x_label: "time, s", y_label: "rate, Gb/s", unit: "Gb/s", x_range: [0, 2] },
    unseen: { title: "Unseen", x_label: "time, s", y_label: "m", unit: "m", x_range: [0, 2] },
  },
  statements: [
    { quote: "It is fast.", where: "section 1", reading: "10 Gb/s or more", checks: [{ quantity: "fast", min: 10 }] },
    {
      quote: "It happens | soon.",
      where: "section 2",
      reading: "within 1 s",
      checks: [{ quantity: "never", max: 1 }],
      remark: "It never does.",
    },
    {
      quote: "Both agree.",
      where: "section 3",
      reading: "within 10%",
      checks: [{ quantity: "fast", near: { clock: "sim", within: 0.1, margin: 0 } }],
    },
    {
      quote: "It is beautiful.",
      where: "section 4",
      reading: "no number",
      checks: [],
      remark: "beauty is not measured",
    },
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [
      { name: "fast", file: "qcn/netfpga-1-source.yaml", set: [] },
      { name: "slow", file: "qcn/netfpga-1-source.yaml", set: ["duration=8s"] },
    ],
    observe: ({ fast, slow }) => ({
      values: { fast: gbps(fast as Evidence), slow: gbps(slow as Evidence), never: Number.POSITIVE_INFINITY },
      plots: [{ title: "Goodput <b>", x_label: "time, s", y_label: "Gb/s", curves: [curveOf(fast as Evidence)] }],
      traces: { rate: { x: [0, 1, 4], y: [2, 2, 2] } },
    }),
    sim_seconds: 2,
  },
  model: () => ({ values: { fast: 12 }, plots: [], traces: { rate: { x: [0, 2], y: [2, 4] } } }),
};

const gbps = ({ result }: Evidence) => (result.flows[0]?.goodput_bps ?? 0) / 1e9;
const curveOf = ({ series }: Evidence) => ({
  label: "first",
  x: series.time_s,
  y: Object.values(series.flows)[0]?.goodput_bps ?? [],
});

/** Outcome of two flows, with the differences given. */
export function fakeOutcome(differs: Partial<Result> = {}): SimOutcome {
  return {
    result: { ...sampleResult(2), ...differs },
    series: sampleSeries(2, 50),
    flowTable: [],
    performance: {
      cpu_s: 1,
      wall_s: 1,
      events: 1,
      hops: 1,
      hops_per_cpu_s: 1,
      threads: 1,
      round_ns: 1,
      rounds: 1,
      rss_bytes: 1,
    },
    complete: differs.until_s === undefined,
  };
}

export const fakeRunners: Runners = {
  model: { run: () => Promise.reject(new Error("papers have equations of their own")) },
  wire: { run: async () => fakeOutcome({ clock: "wire", scale: 10 }) },
  sim: {
    run: async (_scenario, { onProgress }) => {
      onProgress?.({ ...kHalf });
      return fakeOutcome({ clock: "sim", scale: 1 });
    },
  },
};

const kHalf = {
  ...{ done: 0.5, now_ns: 5, until_ns: 10, wall_s: 0, eta_s: 0 },
  ...{ events: 0, hops: 0, flows_started: 0, flows_ended: 0 },
};

export const invalid = (reason: string): Partial<Result> => ({
  fidelity: { ...sampleResult(1).fidelity, valid: false, reasons: [reason] },
});

export function paperOptions(directory: string, own: Partial<PaperOptions> = {}): PaperOptions {
  return { clocks: ["sim"], code: "0.0.0+test", directory, signal: new AbortController().signal, ...own };
}
