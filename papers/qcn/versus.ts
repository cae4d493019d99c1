/** QCN and DCQCN on the same incast, held against what the QCN paper asks of any congestion control on Ethernet. */
import { networkCounts } from "../../src/result/counts.js";
import {
  between,
  describe,
  evenness,
  inUnits,
  lastingFrom,
  movingMean,
  overMilliseconds,
  queue,
  rates,
  type Signal,
} from "../../src/result/measure.js";
import type { Evidence } from "../engine/experiment.js";
import { atLeast, atMost, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { TWO_PAPERS, UNEQUAL_FOR_SECONDS } from "./causes.js";
import { longest } from "./liss.js";
import { NETFPGA } from "./papers.js";

const kQueue = "sw:h9:3";
const kFile = "qcn/incast-8to1.yaml";
const kWindow = 0.005;
const kSteady = 0.05;
const kEnd = 0.2;

const kAlgorithms = {
  qcn: { label: "QCN", feedback: "CNMs", set: [] },
  dcqcn: {
    label: "DCQCN",
    feedback: "CNPs",
    set: [
      "congestion.algorithm=dcqcn",
      "congestion.profile=paper-sigcomm15",
      "switch.qcn.enabled=false",
      "switch.ecn.enabled=true",
    ],
  },
} as const;
const kNames = namesOf(kAlgorithms);

function lengths({ series }: Evidence) {
  return describe(between(inUnits(queue(series, kQueue), 1000), kSteady, kEnd));
}

const kQuantities = grid(
  kNames,
  (runs: Runs, name) => runs[name],
  (label, name) => `${kAlgorithms[name].label}: ${label.replace("*", kAlgorithms[name].feedback)}`,
)({
  converged: quantity("slowest rate stays at half of the fastest (means of 5 ms) from", "ms", ({ series }) => {
    const even = evenness(Object.values(rates(series)).map((one) => movingMean(one, kWindow)));
    return 1000 * lastingFrom(even, (epsilon) => epsilon >= 0.5, kWindow / 2, kEnd);
  }),
  goodput: quantity("goodput from 50 ms on", "Gb/s", ({ result }) => result.totals.goodput_bps / 1e9),
  utilisation: quantity("of what headers leave", "%", ({ result: { totals } }) =>
    totals.goodput_limit_bps === undefined ? undefined : (100 * totals.goodput_bps) / totals.goodput_limit_bps,
  ),
  jain: quantity("Jain's index from 50 ms on", "", ({ result }) => result.totals.jain),
  queue_p50: quantity("queue, p50 from 50 ms on", "KB", (run) => lengths(run)?.p50),
  queue_p95: quantity("queue, p95", "KB", (run) => lengths(run)?.p95),
  queue_p99: quantity("queue, p99", "KB", (run) => lengths(run)?.p99),
  spread: quantity("queue, p99 / p50", "", (run) => {
    const { p50 = 0, p99 = 0 } = lengths(run) ?? {};
    return p50 > 0 ? p99 / p50 : Number.POSITIVE_INFINITY;
  }),
  queue_max: quantity("queue, highest of the whole run", "KB", (run) => longest(run, kQueue)),
  feedback: quantity("* per second, whole run", "1/s", ({ result: { flows, duration_s } }) => {
    return flows.reduce((sum, { cnp_handled, cnm_handled }) => sum + (cnm_handled ?? cnp_handled), 0) / duration_s;
  }),
  pauses: quantity("PFC frames, whole run", "frames", ({ result }) => networkCounts(result).pfc_sent),
  drops: quantity("frames dropped, whole run", "frames", ({ result }) => networkCounts(result).drops),
});

export const QCN_VERSUS_DCQCN = studyOf<Runs>()({
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
  quantities: kQuantities,
  statements: [
    statement(
      "Fair. When multiple flows share a link, they should obtain nearly the same share of the link's bandwidth.",
      "section 1, performance requirements",
      "Jain's index at least 0.95 from 50 ms on, with either",
      kNames.map((name) => atLeast(`jain_${name}`, 0.95)),
      "Flows of QCN take seconds to become equal, see qcn-shu-fig1.",
      UNEQUAL_FOR_SECONDS,
    ),
    statement(
      "Packets may not be dropped.",
      "section 1, Ethernet constraints",
      "no frame is dropped, with either",
      kNames.map((name) => atMost(`drops_${name}`, 0)),
    ),
    statement(
      "Stable. Buffer occupancy processes should not fluctuate.",
      "section 1, performance requirements",
      "from 50 ms on the queue's p99 is at most 4 times its median, with either",
      kNames.map((name) => atMost(`spread_${name}`, 4)),
      undefined,
      TWO_PAPERS,
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: kNames.map((name) => ({ name, file: kFile, set: kAlgorithms[name].set })),
    see: (runs) => runs,
    sim_seconds: 6,
  },
  plots: (runs) => {
    const parts = kNames.map((name) => ({ label: kAlgorithms[name].label, run: runs[name] as Evidence }));
    return [
      ...parts.map(({ label, run }) =>
        plot(
          `${label}: current rates of the 8 senders`,
          ["time, ms", 0, kEnd * 1000],
          ["rate, Gb/s", 0, 20],
          Object.values(rates(run.series)).map((one) => ({ label: "", ...overMilliseconds(inUnits(one, 1e9)) })),
          { levels: [{ label: "fair share", value: 5 }] },
        ),
      ),
      plot(
        "Queue length, highest of each ms (beyond 400 KB: only in the table)",
        ["time, ms", 0, kEnd * 1000],
        ["queue, KB", 0, 400],
        parts.map(({ label, run }) => ({ label, ...highest(run) })),
      ),
    ];
  },
});

/** Returns the highest of each ms, so that two noisy curves can be told apart. */
function highest({ series }: Evidence): { x: number[]; y: number[] } {
  const signal: Signal = { time: series.time_s, values: series.queues[kQueue]?.max_bytes ?? [] };
  const x = Array.from({ length: Math.round(kEnd * 1000) }, (_, i) => i);
  return { x, y: x.map((ms) => Math.max(0, ...between(signal, ms / 1000, (ms + 1) / 1000)) / 1000) };
}
