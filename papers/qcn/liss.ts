/** Liss's observations of QCN in adapters and a switch: two ports of one adapter send to one port of another. */

import { networkCounts } from "../../src/result/counts.js";
import {
  between,
  describe,
  evenness,
  goodput,
  inUnits,
  lastingFrom,
  mean,
  movingMean,
  overMilliseconds,
  queue,
  rates,
  type Signal,
  total,
} from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import type { Evidence } from "../engine/experiment.js";
import { atLeast, atMost, byName, grid, namesOf, plot, quantity, statement, studyOf } from "../engine/study.js";
import { LISS } from "./papers.js";

const kQueue = "sw:r:3";
const kFile = "qcn/liss-two-ports.yaml";
/** Means by which rates are compared, and from when on the state is steady, s. */
const kWindow = 0.0005;
const kSteady = 0.05;
const kEnd = 0.2;
const kSetPoint = 26; // KB

const kRuns = {
  pfc: { trial: "pfc", label: "with PFC", set: [] },
  no_pfc: { trial: "no-pfc", label: "without PFC", set: ["switch.pfc.enabled=false"] },
  // All priorities are lossless then, and have headroom.
  pause: {
    trial: "pause",
    label: "with PAUSE of the link",
    set: [
      "switch.pfc.enabled=false",
      "switch.pfc.link_pause=true",
      "switch.buffer.priorities=8",
      "switch.buffer.total=8MB",
    ],
  },
} as const;
const kEach = namesOf(kRuns);
const kWhere = "slide Observations";

/** One run. */
interface Ports {
  run: Evidence;
  rates: readonly Signal[];
  /** KB */
  length: Signal;
}
type Seen = Readonly<Record<keyof typeof kRuns, Ports>>;

function portsOf(run: Evidence): Ports {
  return { run, rates: Object.values(rates(run.series)), length: inUnits(queue(run.series, kQueue), 1000) };
}

const nearSetPoint = (kb: number) => kb >= kSetPoint / 2 && kb <= 1.5 * kSetPoint;
const steadyLength = ({ length }: Ports) => between(length, kSteady, kEnd);
const kQuantities = grid(
  kEach,
  (seen: Seen, run) => seen[run],
  (label, run) => `${label}, ${kRuns[run].label}`,
)({
  settled: quantity(
    "queue stays within 50% of Q_eq from",
    "ms",
    ({ length }) => 1000 * lastingFrom(length, nearSetPoint, 0, kEnd),
  ),
  share: quantity("rates (means of 0.5 ms) stay within 10% of each other from", "ms", ({ rates: own }) => {
    const even = evenness(own.map((one) => movingMean(one, kWindow)));
    return 1000 * lastingFrom(even, (epsilon) => epsilon >= 0.9, kWindow / 2, kEnd);
  }),
  utilisation: quantity("link in use from 50 ms on", "%", ({ run: { series, result } }) => {
    const half = series.interval_s / 2;
    const limit = result.totals.goodput_limit_bps;
    if (typeof limit !== "number" || limit <= 0) return undefined;
    return (100 * mean(between(goodput(series), kSteady + half, kEnd + half))) / limit;
  }),
  empty: quantity("samples with an empty queue from 50 ms on", "%", (seen) => {
    const steady = steadyLength(seen);
    return (100 * steady.filter((kb) => kb === 0).length) / Math.max(1, steady.length);
  }),
  queue_mean: quantity("queue, mean from 50 ms on", "KB", (seen) => describe(steadyLength(seen))?.mean),
  queue_deviation: quantity(
    "queue, standard deviation from 50 ms on",
    "KB",
    (seen) => describe(steadyLength(seen))?.deviation,
  ),
  queue_max: quantity("queue, highest of the whole run", "KB", ({ run }) => longest(run, kQueue)),
  pauses: quantity("PFC or PAUSE frames from 50 ms on", "frames", ({ run: { series } }) => {
    const pauses = { time: series.time_s, values: total(Object.values(series.pauses ?? {})) };
    return between(pauses, kSteady, kEnd).reduce((sum, n) => sum + n, 0);
  }),
  drops: quantity("frames dropped in the whole run", "frames", ({ run }) => networkCounts(run.result).drops),
});

export const LISS_CONVERGENCE = studyOf<Seen>()({
  id: "qcn-ofa-convergence",
  paper: LISS,
  place: "slides Initial Testing to Observations",
  title: "two ports of an adapter send to one port",
  setup:
    "Two senders at 40 Gb/s and one receiver behind one switch, with the defaults of 802.1Qau: Q_eq 26 KB, w 2, G_d 1/128, R_AI 5, R_HAI 50 Mb/s, byte counter 150 KB, timer 15 ms. Both start at line rate; once with PFC, once with PAUSE of the whole link, once without either.",
  choices: [
    "The slides print no link rate and no parameters. 40 Gb/s is that of ConnectX-3 and SX1036; the parameters are the standard's, which are meant for 10 Gb/s.",
    "What converged in under 2 ms is not said; here it is the queue. From when on the two rates are equal is measured too.",
    "The switch has 4 MB; with PAUSE, for which every priority has headroom, 8 MB.",
  ],
  quantities: kQuantities,
  statements: [
    statement(
      "Rapid convergence: Under 2ms",
      kWhere,
      "after 2 ms the queue stays within 50% of Q_eq",
      kEach.map((run) => atMost(`settled_${run}`, 2)),
      "The parameters of the adapters and the switch are not known.",
    ),
    statement(
      "Stable: Small oscillations",
      kWhere,
      "from 50 ms on the queue's standard deviation is at most half of Q_eq",
      kEach.map((run) => atMost(`queue_deviation_${run}`, kSetPoint / 2)),
    ),
    statement(
      "Negligible underflow; >99% utilization of congested link",
      kWhere,
      "from 50 ms on the link is in use for 99% or more of the time",
      kEach.map((run) => atLeast(`utilisation_${run}`, 99)),
    ),
    statement(
      "No overflows in steady state: No pause frames while enabling PFC/global-pause",
      kWhere,
      "no PFC frame from 50 ms on with PFC, and no PAUSE frame with PAUSE",
      [atMost("pauses_pfc", 0), atMost("pauses_pause", 0)],
    ),
    statement(
      "No overflows in steady state: No packet loss while disabling pause",
      kWhere,
      "no frame dropped in the run without PFC and PAUSE",
      [atMost("drops_no_pfc", 0)],
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: kEach.map((run) => ({ name: kRuns[run].trial, file: kFile, set: kRuns[run].set })),
    see: (runs) => byName(kEach, (run) => portsOf(runs[kRuns[run].trial] as Evidence)),
    sim_seconds: 4,
  },
  plots: (seen) =>
    kEach.flatMap((run) => {
      const { rates: own, length, run: evidence } = seen[run];
      const name = kRuns[run].label.replace("with", "With");
      return [
        ratePlot(`${name}: current rates`, own, evidence.scenario.flows.length),
        queuePlot(`${name}: queue length`, length),
      ];
    }),
});

/** Longest a queue is in the whole run, KB. */
export function longest({ series }: Evidence, queue: string): number {
  return (series.queues[queue]?.max_bytes ?? []).reduce((most, bytes) => Math.max(most, bytes), 0) / 1000;
}

function ratePlot(title: string, own: readonly Signal[], flows: number): Plot {
  return plot(
    title,
    ["time, ms", 0, kEnd * 1000],
    ["rate, Gb/s", 0, 42],
    own.map((one, i) => ({ label: `port ${i + 1}`, ...overMilliseconds(inUnits(one, 1e9)) })),
    { levels: [{ label: "fair share", value: 40 / flows }] },
  );
}

function queuePlot(title: string, length: Signal): Plot {
  return plot(title, ["time, ms", 0, kEnd * 1000], ["queue, KB"], [{ label: "", ...overMilliseconds(length) }], {
    levels: [{ label: "Q_eq 26 KB", value: kSetPoint }],
  });
}
