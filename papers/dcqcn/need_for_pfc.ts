/**
 * Figure 18 of the DCQCN paper, section 6.2: the 10th percentile of users and of an incast of degree 8 without PFC, and with
 * thresholds that let PFC act before packets are marked.
 */

import { mean, sum } from "simple-statistics";
import { networkCounts } from "../../src/result/counts.js";
import type { Evidence } from "../engine/experiment.js";
import { atLeast, atMost, byName, caseFirst, grid, plot, quantity, statement, studyOf } from "../engine/study.js";
import { benchmark, kBenchmarkChoices, kWireChoice, shares, spinePauses } from "./benchmark.js";
import { STATIC_THRESHOLD } from "./causes.js";
import { dcqcnFigure } from "./paper.js";
import { higher, kLink, lower, repeats } from "./testbed.js";

const kDegree = 8;
const kWhere = "section 6.2";

const kStatic = ["switch.buffer.mode=static", "switch.buffer.threshold=24.47KB"];

const kConfigurations = [
  { name: "pfc", short: "PFC only", label: "PFC only", set: ["congestion.algorithm=none"] },
  {
    name: "long",
    short: "no PFC, 1/2",
    label: "DCQCN, no PFC, queues up to half of the buffer",
    set: ["switch.pfc.enabled=false", "switch.buffer.lossy_alpha=1"],
  },
  {
    name: "short",
    short: "no PFC, 1/65",
    label: "DCQCN, no PFC, queues up to 1/65 of the buffer",
    set: ["switch.pfc.enabled=false", "switch.buffer.lossy_alpha=0.015625"],
  },
  { name: "wrong", short: "wrong", label: "DCQCN, wrong thresholds", set: [...kStatic, "switch.ecn.kmin=120KB"] },
  {
    name: "wrong_pfc",
    short: "PFC, wrong",
    label: "PFC only, the same t_PFC",
    set: [...kStatic, "congestion.algorithm=none"],
  },
  { name: "dcqcn", short: "DCQCN", label: "DCQCN", set: [] },
] as const;
type Configuration = (typeof kConfigurations)[number]["name"];
const kWho = ["users", "incast"] as const;

type Seen = Readonly<Record<Configuration, ReturnType<typeof figures>>>;

const kNames = kConfigurations.map(({ name }) => name);

const ratio = (a: Configuration, b: Configuration) => (of: (name: Configuration) => number) => of(a) / of(b);

const kNoPfc =
  "How long a queue may grow without PFC, the paper does not say. Where it may take half of the buffer, which is the other limit in the table, nothing is lost, and these are the runs of DCQCN with PFC.";

export const DCQCN_FIGURE_18 = studyOf<Seen>()({
  ...dcqcnFigure(18),
  title: "need for PFC, and for correct thresholds",
  setup: `20 pairs of random hosts and an incast of degree ${kDegree} on the testbed, five seeds each: with PFC alone, DCQCN alone, DCQCN and PFC with wrong thresholds, and both as they should be.`,
  choices: [
    ...kBenchmarkChoices,
    kWireChoice("all six"),
    "Without PFC a queue may take lossy_alpha times what is free of the buffer: with 1 half of it, with 1/64 one part of 65. The paper does not say what its switches allow, so there are both.",
    "Wrong thresholds are a static t_PFC of 24.47 KB and t_ECN of 120 KB. The paper calls Kmin t_ECN; Kmax and Pmax stay 200 KB and 1%.",
    "PFC alone with the same static t_PFC is not in the paper: it shows what that t_PFC does by itself.",
  ],
  quantities: {
    ...grid(
      kConfigurations,
      (seen: Seen, { name }) => seen[name],
      (label, one) => `${label}, ${one.label}`,
    )({
      users: quantity("users, 10th percentile", "Gb/s", ({ users }) => users),
      incast: quantity("incast, 10th percentile", "Gb/s", ({ incast }) => incast),
      again: quantity("packets sent again", "%", ({ again }) => again),
      marked: quantity("marks per data packet", "%", ({ marked }) => marked),
      pauses: quantity("PFC frames at S1 and S2", "per s", ({ pauses }) => pauses),
    }),
    ...grid(
      kWho,
      (seen: Seen, who) => (name: Configuration) => seen[name][who],
      (label, who) => `${who}, ${label}`,
    )(
      {
        long_dcqcn: quantity("DCQCN without PFC (half) / with PFC", "", ratio("long", "dcqcn")),
        short_dcqcn: quantity("DCQCN without PFC (1/65) / with PFC", "", ratio("short", "dcqcn")),
        wrong_pfc_only: quantity("wrong thresholds / PFC only", "", ratio("wrong", "pfc")),
        wrong_dcqcn: quantity("wrong thresholds / DCQCN", "", ratio("wrong", "dcqcn")),
      },
      caseFirst,
    ),
    marked_ratio: quantity("marks, wrong thresholds / DCQCN", "", ({ wrong, dcqcn }) => wrong.marked / dcqcn.marked),
  },
  statements: [
    statement(
      "Without PFC, packet losses are common, and this leads to poor performance.",
      kWhere,
      "DCQCN without PFC, with a limit at which queues lose packets (1/65 of the buffer, 107 to 116 KB): 1% of all packets are sent again or more, and users and incast get less than with PFC",
      [atLeast("again_short", 1), lower("users_short_dcqcn"), lower("incast_short_dcqcn")],
      kNoPfc,
    ),
    statement(
      "In fact, the 10th percentile incast throughput is zero - indicating that some of the flows are simply unable to recover from persistent packet losses.",
      kWhere,
      "DCQCN without PFC, with the same limit: 1% of 40 Gb/s / 8 or less",
      [atMost("incast_short", (0.01 * kLink) / kDegree)],
      kNoPfc,
    ),
    statement(
      "With these thresholds, PFC may be triggered before ECN - thus preventing the full benefit of DCQCN. We see that this is indeed the case.",
      kWhere,
      "with wrong thresholds spines receive PFC frames, and packets are marked half as often as with the right ones, or less",
      [atLeast("pauses_wrong", 1), atMost("marked_ratio", 0.5)],
    ),
    statement(
      "The tail throughput of both user and incast traffic is better than what it would be without DCQCN (i.e. with PFC only), but worse than what it would be with DCQCN.",
      kWhere,
      "10th percentiles with wrong thresholds, and those of the other two",
      [
        higher("users_wrong_pfc_only"),
        higher("incast_wrong_pfc_only"),
        lower("users_wrong_dcqcn"),
        lower("incast_wrong_dcqcn"),
      ],
      "The incast fares as with PFC alone. Next to no packet is marked, so DCQCN has no part in it: PFC alone with the same static t_PFC gives the same. What helps the users is that a low t_PFC keeps queues short.",
      STATIC_THRESHOLD,
    ),
  ],
  plots: (seen) => [
    plot(
      "10th percentile of throughput, incast of degree 8",
      [""],
      ["throughput, Gb/s"],
      kWho.map((who) => ({
        label: who,
        kind: "bars",
        x: kConfigurations.map((_, x) => x),
        y: kConfigurations.map(({ name }) => seen[name][who]),
      })),
      {
        x_names: kConfigurations.map(({ short }, x) => ({ x, label: short })),
        levels: [{ label: "40 Gb/s / 8", value: kLink / kDegree }],
      },
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: kConfigurations.flatMap(({ name, set }) => benchmark(name, [`traffic.1.degree=${kDegree}`, ...set], true)),
    see: (runs) => byName(kNames, (name) => figures(repeats(runs, name))),
    sim_seconds: 52,
  },
});

/** Means over the seeds: Gb/s, % of all data packets, frames per second. */
function figures(runs: readonly Evidence[]) {
  const { users_p10, incast_p10 } = shares(runs);
  const packets = (of: (run: Evidence) => number) =>
    mean(runs.map((run) => (100 * of(run)) / sum(run.result.flows.map((flow) => flow.packets))));
  return {
    users: users_p10,
    incast: incast_p10,
    again: packets(({ result }) => result.transport?.retransmitted ?? 0),
    marked: packets(({ result }) => networkCounts(result).ecn_marked),
    pauses: spinePauses(runs),
  };
}
