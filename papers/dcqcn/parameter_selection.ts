/** Words of sections 5.1 and 5.2 of the DCQCN paper without a figure: the fixed point, and how far parameters may be changed. */

import { excess } from "../../src/models/dcqcn/fixed_point.js";
import { dcqcnFixedPoint, dcqcnStability, DCQCN_PAPER as kTable14 } from "../../src/models/dcqcn/index.js";
import { inPackets } from "../../src/models/dcqcn/parameters.js";
import { overMilliseconds } from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import {
  atLeast,
  atMost,
  byName,
  grid,
  MORE_OR_LESS,
  more,
  namesOf,
  plot,
  quantity,
  statement,
  studyOf,
} from "../engine/study.js";
import { ALPHA_RESET } from "./alpha.js";
import {
  AS_PACKETS,
  BY_CHANCE,
  CONVERGED,
  type Convergence,
  differencePlot,
  type Incast,
  incastsOf,
  pairsOf,
  SEEDS,
  type Setting,
} from "./bottleneck.js";
import { CHANCE_OF_MARKS, FIXED_POINT } from "./causes.js";
import { DCQCN_PAPER } from "./paper.js";

/** Numbers of flows at the fixed point. */
const kCounts = [2, 4, 8, 10, 16, 64] as const;
type Count = (typeof kCounts)[number];
const kKmin = 5; // KB
/** One order of magnitude, as the nearest power of ten of a ratio. */
const kOrder = [Math.sqrt(10), 10 * Math.sqrt(10)] as const;
/** Added to the loop: four links are in it. */
const kLatency = [
  "topology.link.delay=13.5us",
  // Headroom for what is under way on such a link, and as much as before to share.
  "switch.buffer={total: 9.6256MB, headroom: 140KB, beta: 8}",
];

/** Two flows, from 40 Gb/s and 0. */
const kPairs = {
  table: { label: "table 14", changes: {}, set: [] },
  latency: { label: "50 us more latency", changes: { delay: 100e3 }, set: kLatency },
  alpha: { label: "tau' 110 us", changes: { dce_tcp_rtt: 110e3 }, set: ["congestion.parameters.dce_tcp_rtt=110us"] },
  half: { label: "R_AI 20 Mb/s", changes: { rpg_ai_rate: 20e6 }, set: ["congestion.parameters.rpg_ai_rate=20Mbps"] },
} as const satisfies Record<string, Setting & { label: string }>;
const kPairNames = namesOf(kPairs);
const kPairSettings = pairsOf(kPairs);

const kIncasts = {
  ...byFlows((flows) => ({ label: `${flows}:1`, flows, changes: {}, set: [] })),
  n32: { label: "32:1", flows: 32, changes: {}, set: [] },
  n32_half: { ...kPairs.half, label: "32:1, R_AI 20 Mb/s", flows: 32 },
};
const kIncastNames = namesOf(kIncasts);
const kIncastSettings = incastsOf(kIncasts);

/** One of something for each number of flows. */
function byFlows<Value>(make: (flows: Count) => Value): Record<`n${Count}`, Value> {
  return Object.fromEntries(kCounts.map((flows) => [`n${flows}`, make(flows)])) as Record<`n${Count}`, Value>;
}

interface Seen {
  pairs: Readonly<Record<keyof typeof kPairs, Convergence>>;
  incasts: Readonly<Record<keyof typeof kIncasts, Incast>>;
  /** Packets, %. */
  marked: Readonly<Record<Count, number>>;
  /** KB; null: there is no stable one. */
  queues: Readonly<Record<Count, number | null>>;
  /** Known by the equations alone: numbers of fixed points, and degrees. */
  solutions?: readonly number[];
  margin?: number | undefined;
}

const slower =
  (name: keyof Seen["pairs"]) =>
  ({ pairs }: Seen) =>
    pairs[name].apart / pairs.table.apart;
const isOfOrder = (queue: number | null) => queue !== null && queue >= kOrder[0] * kKmin && queue <= kOrder[1] * kKmin;

function incastPlot({ incasts }: Seen): Plot {
  return plot(
    "Queue, 32:1",
    ["time, ms", 50, 100],
    ["queue, KB", 0, 350],
    (["n32", "n32_half"] as const).map((name) => ({
      label: kIncasts[name].label,
      ...overMilliseconds(incasts[name].queue),
    })),
  );
}

function asPackets(pairs: Seen["pairs"], incasts: Seen["incasts"]): Seen {
  return {
    pairs,
    incasts,
    marked: byName(kCounts, (flows) => incasts[`n${flows}`].marked),
    queues: byName(kCounts, (flows) => incasts[`n${flows}`].mean),
  };
}

/** Counts how often decreases come to outweigh increases, or the other way round, from p = 1e-12 to 1. */
function fixedPoints(flows: number): number {
  const parameters = inPackets(kTable14);
  const steps = 10_000;
  const signs = Array.from({ length: steps + 1 }, (_, i) =>
    Math.sign(excess(parameters, 10 ** (-12 * (1 - i / steps)), parameters.capacity / flows)),
  );
  return signs.filter((sign, i) => i > 0 && sign !== signs[i - 1]).length;
}

export const DCQCN_SECTION_5 = studyOf<Seen>()({
  id: "dcqcn-section5.2",
  paper: DCQCN_PAPER,
  place: "sections 5.1 and 5.2",
  title: "fixed point, and other latency, tau' and R_AI",
  setup:
    "Table 14. Two flows that begin at 40 Gb/s and 0, 200 ms; 2, 4, 8, 10, 16, 32 and 64 that all begin at 40 Gb/s, 100 ms, of which the second half counts. By the equations p and stable queue are those of the fixed point, as packets what is measured.",
  choices: [
    CONVERGED,
    "The additional latency is one of the control loop: tau* of 100 us, and as packets 12.5 us on each of the four links that data and CNP take.",
    "Starved is a queue that is so often empty that the link is used less than 99.5%, which no longer rounds to 100%.",
    AS_PACKETS,
    BY_CHANCE,
    MORE_OR_LESS,
  ],
  quantities: {
    ...grid(
      kCounts,
      ({ marked, queues }: Seen, flows) => ({ marked: marked[flows], queue: queues[flows] }),
      (label, flows) => `${label}, ${flows} flows`,
    )({
      marked: quantity("p", "%", ({ marked }) => marked),
      queue: quantity("stable queue", "KB", ({ queue }) => queue ?? undefined),
    }),
    most_marked: quantity("p, most of these", "%", ({ marked }) => Math.max(...Object.values(marked))),
    of_order: quantity(
      "numbers of flows with 15.8 to 158 KB",
      "",
      ({ queues }) => Object.values(queues).filter(isOfOrder).length,
    ),
    least_solutions: quantity("fixed points, fewest", "", ({ solutions }) => solutions && Math.min(...solutions)),
    most_solutions: quantity("fixed points, most", "", ({ solutions }) => solutions && Math.max(...solutions)),
    ...grid(
      kPairNames,
      ({ pairs }: Seen, name) => pairs[name],
      (label, name) => `${label}, ${kPairs[name].label}`,
    )({
      apart: quantity("apart for", "ms", ({ apart }) => apart * 1000),
      left: quantity("difference left", "Gb/s", ({ left }) => left),
    }),
    alpha_slower: quantity("apart with tau' 110 us / with 55 us", "", slower("alpha")),
    half_slower: quantity("apart with R_AI 20 Mb/s / with 40 Mb/s", "", slower("half")),
    margin: quantity("phase margin with 50 us more latency, 2 flows", "degrees", ({ margin }) => margin),
    ...grid(
      kIncastNames,
      ({ incasts }: Seen, name) => incasts[name],
      (label, name) => `${label}, ${kIncasts[name].label}`,
    )({ utilisation: quantity("utilisation", "%", ({ utilisation }) => utilisation) }),
  },
  statements: [
    statement(
      "By setting the LHS of Equations (6)-(9) to zero, we see that the fluid model has a unique fixed point when satisfying Equation (10). [...] The solution of p is unique.",
      "section 5.1",
      "over 10,000 values of p from 1e-12 to 1 the equations change sign once, with each number of flows",
      [atLeast("least_solutions", 1), atMost("most_solutions", 1)],
    ),
    statement(
      "We verified that for reasonable settings, p is less than 1%.",
      "section 5.1",
      "with 2, 4, 8, 10, 16 and 64 flows",
      [atMost("most_marked", 1)],
      "By the equations it is less than 1% with up to 10 flows. As packets it is with up to 4: from 8 on the scatter of the queue takes it beyond Kmax, where everything is marked.",
      FIXED_POINT,
    ),
    statement(
      "Fluid model predicts that the stable queue length is usually one order of magnitude larger than 5KB Kmin.",
      "section 5.2",
      "with at least 4 of 2, 4, 8, 10, 16 and 64 flows it is sqrt(10) to 10 sqrt(10) times Kmin, 15.8 to 158 KB",
      [atLeast("of_order", 4)],
      "With 2, 4 and 8 flows it is; with 10 flows it is 36 times Kmin, and with 16 and 64, which need a p above Pmax, equation 5 has no stable queue.",
      FIXED_POINT,
    ),
    statement(
      "We set Kmin = 5KB since we found it sufficient to maintain 100% throughput.",
      "section 5.2",
      "the two flows of 2:1 use the link at least 99.5%",
      [atLeast("utilisation_n2", 99.5)],
      "At rest the equations have 27.7 KB of queue, always. As packets it is empty in 19% of the samples.",
      { sim: CHANCE_OF_MARKS },
    ),
    statement(
      "We have verified that flows converge fast and stably even when an additional 50us latency is added.",
      "section 5.2",
      "from 40 Gb/s and 0 they come near in the first 100 ms, and at most 4 Gb/s are left",
      [atMost("apart_latency", 100), atMost("left_latency", 4)],
    ),
    statement(
      "DCQCN is generally insensitive to tau' value: 110us (twice as default) barely slows down convergence.",
      "section 5.2",
      "flows are apart at most 10% longer",
      [atMost("alpha_slower", 1.1)],
      "As packets the first flow is alone before, and its alpha is the larger the slower it decays. In the equations both begin with an alpha of 1.",
      { sim: CHANCE_OF_MARKS },
    ),
    statement(
      "Halving R_AI reduces the convergence speed,",
      "section 5.2",
      "with 20 Mb/s flows are apart longer than with 40 Mb/s",
      [more("half_slower")],
    ),
    statement(
      "but it ensures no buffer starvation with 32:1 incast.",
      "section 5.2",
      "with R_AI 20 Mb/s, 32 flows use the link at least 99.5%",
      [atLeast("utilisation_n32_half", 99.5)],
      "32 flows rest at a p of 3.2%, above Pmax also with half of R_AI. With the same slope carried on (Kmax 1955 KB, Pmax 10%) the equations have the link used 100%.",
      FIXED_POINT,
    ),
  ],
  plots: (seen) => [
    differencePlot(
      "Difference of two flows, one from 40 Gb/s and one from 0",
      kPairNames.map((name) => ({ label: kPairs[name].label, found: seen.pairs[name] })),
    ),
    incastPlot(seen),
  ],
  network: {
    clocks: ["sim"],
    trials: [...kPairSettings.trials, ...kIncastSettings.trials],
    seeds: SEEDS,
    see: (runs) => asPackets(kPairSettings.asPackets(runs), kIncastSettings.asPackets(runs)),
    typical: (all) =>
      asPackets(
        kPairSettings.typical(all.map(({ pairs }) => pairs)),
        kIncastSettings.typical(all.map(({ incasts }) => incasts)),
      ),
    sim_seconds: 12,
  },
  model: (alternative) => {
    const points = byName(kCounts, (flows) => dcqcnFixedPoint(kTable14, flows));
    return {
      pairs: kPairSettings.byModel(alternative),
      incasts: kIncastSettings.byModel(alternative),
      marked: byName(kCounts, (flows) => 100 * points[flows].p),
      queues: byName(kCounts, (flows) => {
        const { queue_bytes } = points[flows];
        return queue_bytes === null ? null : queue_bytes / 1000;
      }),
      solutions: kCounts.map((flows) => fixedPoints(flows)),
      margin: dcqcnStability({ ...kTable14, ...kPairs.latency.changes }, 2).phase_margin_deg ?? undefined,
    };
  },
  alternative: ALPHA_RESET,
});
