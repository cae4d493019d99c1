/**
 * The paper's queue in an incast of 20 to 1 is a third as long as in its own fluid model, in ns-3 and here. Possible explanations
 * are varied, one thing at a time, with all else as in table 14.
 */
import type { Plot } from "../../src/result/report/plot.js";
import { atLeast, atMost, grid, plot, quantity, type Runs, statement, studyOf, within } from "../engine/study.js";
import { FIXED_POINT } from "./causes.js";
import {
  kFile,
  kNs3,
  kNs3Text,
  kPaper,
  type Lengths,
  LONGEST_QUEUE,
  lengthsOf,
  QUEUE_OF_DCQCN,
  TOTAL_THROUGHPUT,
  usedOf,
} from "./incast_queue.js";
import { DCQCN_PAPER } from "./paper.js";
import { kBase, kGroups, kVariations, type Variation } from "./queue_variations.js";

const kMost = 100; // KB
const kLine = { rate: 40, least: 39 }; // Gb/s
const kFigures = ["p50", "p95", "p99", "max"] as const;

interface Bar {
  short: string;
  lengths: Lengths;
}

/** Bars of those variations that were run. */
function barsOf(runs: Runs, variations: readonly Variation[]): Bar[] {
  return variations.flatMap(({ name, short }) => {
    const run = runs[name];
    return run === undefined ? [] : [{ short, lengths: lengthsOf(run) }];
  });
}

function plotOf(title: string, bars: readonly Bar[]): Plot {
  return plot(
    `${title}: length of the queue`,
    ["what is varied"],
    ["queue, KB", 0, 400],
    kFigures.map((figure) => ({
      label: figure,
      kind: "bars",
      x: bars.map((_, i) => i),
      y: bars.map(({ lengths }) => lengths[figure]),
    })),
    {
      x_names: bars.map(({ short }, i) => ({ x: i, label: short })),
      levels: [
        { label: "paper, p95", value: kPaper.dcqcn.p95 },
        { label: "paper, most", value: kMost },
      ],
    },
  );
}

const kFound = [
  "So the queue runs beyond Kmax and empty in turns, as in the paper's fluid model (dcqcn-fig19) and in both ns-3.",
  "Of what was varied, only a larger Pmax leads to the paper's figures: p95 91 KB, at most 119 KB and 99% of the link with 10%; 48 KB, 65 KB and 99.5% with 20%.",
  "All else leaves p95 of 20 senders above 155 KB: RED on an average and longer links make it longer; less R_AI, a slower timer, marking at the other end of the queue and short messages with gaps make it 7 to 21% shorter; hyper increase is never reached, and CNPs find an empty way back whatever their priority. One CNP per 5 us of the whole NIC (section 3.3) uses the link by 96%, and makes the queue longer: p95 315 KB. Even 4 senders have 112 KB.",
  "What the paper's switch really marked is not known.",
].join(" ");

export const DCQCN_QUEUE_20TO1 = studyOf<Runs>()({
  id: "dcqcn-queue-20to1",
  paper: DCQCN_PAPER,
  place: "section 6.1, figure 19",
  title: "what the length of the queue in an incast of 20 to 1 depends on",
  setup:
    "The incast of figure 19 under DCQCN, 20 senders to one over one switch at 40 Gb/s, with the parameters of table 14 and with one of them, or of the switch, the hosts or the traffic, changed in each run. The second half of 100 ms counts.",
  choices: [
    "Lengths beyond 400 KB are in the table only, not in the plots.",
    "The wire runs the base and the change that matters most; a run takes 40 s there.",
    "R_HAI, the lowest rate and the delay of the links are not printed in the paper: 200 Mb/s, 10 Mb/s, 1 us.",
    `${kNs3Text} Theirs and what Weir measures with their readings are in the last plot.`,
  ],
  quantities: grid(
    kVariations,
    (runs: Runs, { name }) => runs[name],
    (label, one) => `${one.label}: ${label}`,
  )({
    p50: quantity("queue, p50", "KB", (run) => lengthsOf(run).p50),
    p95: quantity("queue, p95", "KB", (run) => lengthsOf(run).p95),
    p99: quantity("queue, p99", "KB", (run) => lengthsOf(run).p99),
    max: quantity("queue, max", "KB", (run) => lengthsOf(run).max),
    used: quantity("goodput, of what headers leave", "%", usedOf),
  }),
  statements: [
    statement(
      QUEUE_OF_DCQCN,
      "section 6.3",
      "within 20% of it, with table 14",
      [within("p95_base", 0.8 * kPaper.dcqcn.p95, 1.2 * kPaper.dcqcn.p95)],
      kFound,
      FIXED_POINT,
    ),
    statement(
      LONGEST_QUEUE,
      "section 6.1",
      "the longest queue of the second half is at most 100 KB, with table 14; the paper has up to 19 senders",
      [atMost("max_base", kMost)],
      "With Pmax 20% it is. Before, all senders start at line rate, and the queue is longer than 6 MB, which PFC then holds; from a start at 2 Gb/s it is as long as later.",
      FIXED_POINT,
    ),
    statement(
      TOTAL_THROUGHPUT,
      "section 6.1",
      "headers and all, 39 of 40 Gb/s: 97.5% of what headers leave, with table 14",
      [atLeast("used_base", (100 * kLine.least) / kLine.rate)],
      "Whenever the queue is empty the link is. With Pmax of 5% or more it holds here too.",
      FIXED_POINT,
    ),
  ],
  plots: (runs) => {
    const others = kNs3.map(({ short, ...lengths }): Bar => ({ short, lengths }));
    return kGroups.flatMap(({ title, variations }, i) => {
      const bars = [...barsOf(runs, variations), ...(i === kGroups.length - 1 ? others : [])];
      return bars.length === 0 ? [] : [plotOf(title, [...barsOf(runs, [kBase]), ...bars])];
    });
  },
  network: {
    clocks: ["wire", "sim"],
    trials: kVariations.map(({ name, set, wire = false }) => ({
      name,
      file: kFile,
      set,
      ...(!wire && { clocks: ["sim"] as const }),
    })),
    see: (runs) => runs,
    sim_seconds: 10,
  },
});
