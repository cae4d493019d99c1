/**
 * K to 1 incast, section 6.1 of the DCQCN paper: total throughput and the longest queue for K = 1 to 19.
 *
 * Each K has its own trial, with K + 1 machines: those that send nothing make no difference. The switch has the paper's 6.2656 MB to
 * share and headroom for the ports that are there (8 x 22.4 KB each).
 */

import { between, inUnits, mean, overMilliseconds, queue } from "../../src/result/measure.js";
import type { Curve, Plot } from "../../src/result/report/plot.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  byName,
  grid,
  namesOf,
  plot,
  quantity,
  type Runs,
  statement,
  studyOf,
} from "../engine/study.js";
import { FIXED_POINT } from "./causes.js";
import { fluidRuns } from "./fluid.js";
import { LONGEST_QUEUE, TOTAL_THROUGHPUT } from "./incast_queue.js";
import { DCQCN_PAPER } from "./paper.js";

const kFile = "dcqcn/incast-20to1.yaml";
const kShared = 6265.6; // KB
const kHeadroom = 8 * 22.4; // KB for each port
const kLimit = { total: 39, queue: 100 }; // Gb/s, KB
/** The start from line rate is over, s. */
const kSteady = 0.05;
const kEnd = 0.15;

const kSenders = [1, 2, 4, 8, 12, 16, 19] as const;
/** Time scale of those that the wire runs, too. */
const kWire = new Map<number, number>([
  [2, 200],
  [8, 400],
]);

/** Variations that could explain the queue, each for a few K. */
const kVaried = {
  half: { label: "half R_AI", set: ["congestion.parameters.rpg_ai_rate=20"] },
  dequeue: { label: "marked on leaving", set: ["switch.ecn.mark=dequeue"] },
  pmax: { label: "Pmax 10%", set: ["switch.ecn.pmax=10%"] },
} as const;
type VariationName = keyof typeof kVaried;
const kVariations = namesOf(kVaried);
const kVariedSenders = [2, 8, 19] as const;

const trialName = (senders: number, variation?: VariationName) =>
  variation === undefined ? `k${senders}` : `k${senders}-${variation}`;

function trial(senders: number, variation?: VariationName): Trial {
  const scale = variation === undefined ? kWire.get(senders) : undefined;
  return {
    name: trialName(senders, variation),
    file: kFile,
    set: [
      "duration=150ms",
      "probes.interval=50us",
      `topology.hosts=${senders + 1}`,
      `switch.buffer.total=${(kShared + (senders + 1) * kHeadroom).toFixed(1)}KB`,
      `traffic.0.degree=${senders}`,
      `traffic.0.to=h${senders + 1}`,
      ...(scale === undefined ? [] : [`scale=${scale}`]),
      ...(variation === undefined ? [] : kVaried[variation].set),
    ],
    ...(scale === undefined && { clocks: ["sim"] }),
  };
}

const kTrials = kSenders.map((senders) => trial(senders));

/** Figures of one K: Gb/s, and KB. */
interface Figures {
  total: number;
  queue_mean: number;
  queue_max: number;
  queue_start: number;
}

interface Seen {
  runs: Runs;
  /** Figures by number of senders; those that were run. */
  own: ReadonlyMap<number, Figures>;
  varied: Readonly<Record<VariationName, readonly Figures[]>>;
}

const least = (all: Iterable<Figures>) => Math.min(...[...all].map(({ total }) => total));
const longest = (all: Iterable<Figures>) => Math.max(...[...all].map(({ queue_max }) => queue_max));

const trace = (figure: keyof Figures, title: string, y_label: string, unit: string) => ({
  title,
  x_label: "senders, K",
  y_label: `${y_label}, ${unit}`,
  unit,
  x_range: [1, 19] as const,
  of: (seen: Seen) => eachK(seen, figure),
});

const kExplained =
  "With 8 and 12 senders, where the model rests below Kmax, chance takes the queue there. What leads away from that, in the table: marking on leaving, which tells earlier, and half of R_AI do a part; with a Pmax of 10% instead of 1% the totals are as the paper says, and the queue nearly.";

export const DCQCN_SECTION_6_1 = studyOf<Seen>()({
  id: "dcqcn-section6.1",
  paper: DCQCN_PAPER,
  place: "section 6.1",
  title: "total throughput and queue of K to 1 incast",
  setup:
    "K greedy senders and one receiver on one switch, 40 Gb/s, parameters of figure 14, K = 1, 2, 4, 8, 12, 16, 19. All start at line rate; 150 ms, of which the last 100 count.",
  choices: [
    "Throughput counts headers, FCS, preamble and gap, as the link's 40 Gb/s do: goodput is 92.6% of it.",
    "Always: for every K, in the mean of 100 ms.",
    "Never: from 50 ms on. K senders that begin at line rate send 250 KB each before the first CNP of 50 us later can slow them, so no queue could stay below 100 KB at the start; its length then is in the table.",
    "The wire has K = 2 and 8. The model has all; at K = 16 and 19 it has no fixed point, and swings. It knows no PFC, so its start is longer.",
  ],
  quantities: {
    least_total: quantity("total throughput, least of all K", "Gb/s", ({ own }) => least(own.values())),
    longest_queue: quantity("longest queue from 50 ms on, of all K", "KB", ({ own }) => longest(own.values())),
    ...grid(
      kSenders,
      ({ own }: Seen, senders) => own.get(senders),
      (label, senders) => `K = ${senders}: ${label}`,
    )({
      total: quantity("total throughput from 50 ms on", "Gb/s", ({ total }) => total),
      queue_mean: quantity("queue from 50 ms on, mean", "KB", ({ queue_mean }) => queue_mean),
      queue_max: quantity("queue from 50 ms on, longest", "KB", ({ queue_max }) => queue_max),
      queue_start: quantity("queue of the whole run, longest", "KB", ({ queue_start }) => queue_start),
    }),
    ...grid(
      kVariations,
      ({ varied }: Seen, name) => (varied[name].length === 0 ? undefined : varied[name]),
      (label, name) => `K = 2, 8, 19, ${kVaried[name].label}: ${label}`,
    )({
      least_total: quantity("total, least", "Gb/s", least),
      longest_queue: quantity("longest queue", "KB", longest),
    }),
  },
  statements: [
    statement(
      TOTAL_THROUGHPUT,
      "section 6.1",
      "39 Gb/s or more of the link for every K that was run",
      [atLeast("least_total", kLimit.total)],
      kExplained,
      FIXED_POINT,
    ),
    statement(
      LONGEST_QUEUE,
      "section 6.1",
      "from 50 ms on, at most 100 KB for every K that was run",
      [atMost("longest_queue", kLimit.queue)],
      kExplained,
      FIXED_POINT,
    ),
  ],
  traces: {
    total: trace("total", "Total throughput", "throughput", "Gb/s"),
    queue_mean: trace("queue_mean", "Queue from 50 ms on, mean", "queue", "KB"),
    queue_max: trace("queue_max", "Queue from 50 ms on, longest", "queue", "KB"),
  },
  plots: (seen) => [
    plotByK("Total throughput from 50 ms on", "throughput, Gb/s", [30, 42], { label: "39 Gb/s", value: kLimit.total }, [
      { label: "", ...eachK(seen, "total") },
    ]),
    plotByK("Queue from 50 ms on", "queue, KB", [0, 300], { label: "100 KB", value: kLimit.queue }, [
      { label: "longest", ...eachK(seen, "queue_max") },
      { label: "mean", ...eachK(seen, "queue_mean") },
    ]),
    queueOverTime(seen),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [...kTrials, ...kVariations.flatMap((name) => kVariedSenders.map((senders) => trial(senders, name)))],
    see,
    sim_seconds: 8,
  },
  model: async () => see(await fluidRuns(kTrials)),
});

function see(runs: Runs): Seen {
  const of = (senders: number, variation?: VariationName) => {
    const run = runs[trialName(senders, variation)];
    return run === undefined ? [] : [figures(senders, run)];
  };
  return {
    runs,
    own: new Map(kSenders.flatMap((senders) => of(senders).map((one) => [senders, one] as const))),
    varied: byName(kVariations, (name) => kVariedSenders.flatMap((senders) => of(senders, name))),
  };
}

function eachK({ own }: Seen, figure: keyof Figures) {
  return { x: [...own.keys()], y: [...own.values()].map((one) => one[figure]) };
}

function figures(senders: number, { result, series }: Evidence): Figures {
  const name = queueName(senders);
  const peaks = { time: series.time_s, values: series.queues[name]?.max_bytes ?? [] };
  const highest = (values: readonly number[]) => values.reduce((most, bytes) => Math.max(most, bytes), 0) / 1000;
  return {
    total: result.flows.reduce((sum, { wire_bps }) => sum + wire_bps, 0) / 1e9,
    queue_mean: mean(between(queue(series, name), kSteady, kEnd)) / 1000,
    queue_max: highest(between(peaks, kSteady + series.interval_s / 2, kEnd)),
    queue_start: highest(peaks.values),
  };
}

const queueName = (senders: number) => `sw:h${senders + 1}:3`;

function plotByK(
  title: string,
  y_label: string,
  y_range: readonly [number, number],
  level: { label: string; value: number },
  curves: readonly Curve[],
): Plot {
  return plot(title, ["senders, K", 0, 20], [y_label, ...y_range], curves, {
    x_names: kSenders.map((senders) => ({ x: senders, label: String(senders) })),
    levels: [level],
  });
}

function queueOverTime({ runs }: Seen): Plot {
  const curves = kVariedSenders.flatMap((senders, color): Curve[] => {
    const run = runs[trialName(senders)];
    if (run === undefined) return [];
    const length = inUnits(queue(run.series, queueName(senders)), 1000);
    return [{ label: `K = ${senders}`, color, ...overMilliseconds(length) }];
  });
  return plot(
    "Queue over time, 20 ms of the run",
    ["time, ms", kSteady * 1000, kSteady * 1000 + 20],
    ["queue, KB", 0, 300],
    curves,
    { levels: [{ label: "100 KB", value: kLimit.queue }] },
  );
}
