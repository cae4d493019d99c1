/** What sections 5.1 and 5.2 of the DCQCN paper say without a figure: the fixed point, and how far parameters may be changed. */

import { excess } from "../../models/dcqcn/fixed_point.js";
import {
  type DcqcnModelParameters,
  dcqcnFixedPoint,
  dcqcnStability,
  DCQCN_PAPER as kTable14,
} from "../../models/dcqcn/index.js";
import { inPackets } from "../../models/dcqcn/parameters.js";
import type { Plot } from "../../report/plot.js";
import { type Experiment, type Observation, type Quantity, statement } from "../experiment.js";
import { known } from "../measure.js";
import { ALPHA_RESET, equationsOf } from "./alpha.js";
import {
  AS_PACKETS,
  BY_CHANCE,
  CONVERGED,
  type Convergence,
  convergenceAsPackets,
  convergenceByModel,
  type Incast,
  incastAsPackets,
  incastByModel,
  kIncastFile,
  kPairFile,
  kSeeds,
  senders,
  typical,
} from "./bottleneck.js";
import { DCQCN_PAPER } from "./paper.js";
import { repeated } from "./testbed.js";

/** Numbers of flows at the fixed point. */
const kCounts = [2, 4, 8, 10, 16, 64] as const;
const kKmin = 5; // KB
/** One order of magnitude, as the nearest power of ten of a ratio. */
const kOrder = [Math.sqrt(10), 10 * Math.sqrt(10)] as const;
/** Added to the loop: four links are in it. */
const kLatency = [
  "topology.link.delay=13.5us",
  // Headroom for what is under way on such a link, and as much as before to share.
  "switch.buffer={total: 9.6256MB, headroom: 140KB, beta: 8}",
];

interface Setting {
  label: string;
  changes: Partial<DcqcnModelParameters>;
  set: readonly string[];
}

/** Two flows, from 40 Gb/s and 0. */
const kPairs = {
  table: { label: "table 14", changes: {}, set: [] },
  latency: { label: "50 us more latency", changes: { delay: 100e3 }, set: kLatency },
  alpha: { label: "tau' 110 us", changes: { dce_tcp_rtt: 110e3 }, set: ["congestion.parameters.dce_tcp_rtt=110us"] },
  half: { label: "R_AI 20 Mb/s", changes: { rpg_ai_rate: 20e6 }, set: ["congestion.parameters.rpg_ai_rate=20Mbps"] },
} as const satisfies Record<string, Setting>;
type Pair = keyof typeof kPairs;
const kPairNames = Object.keys(kPairs) as Pair[];

const kIncasts: Readonly<Record<string, Setting & { flows: number }>> = {
  ...Object.fromEntries(
    kCounts.map((flows) => [`n${flows}`, { label: `${flows}:1`, flows, changes: {}, set: [senders(flows)] }]),
  ),
  n32: { label: "32:1", flows: 32, changes: {}, set: [senders(32)] },
  n32_half: {
    label: "32:1, R_AI 20 Mb/s",
    flows: 32,
    changes: kPairs.half.changes,
    set: [senders(32), ...kPairs.half.set],
  },
};
const kIncastNames = Object.keys(kIncasts);

const kQuantities: Record<string, Quantity> = {
  ...Object.fromEntries(
    kCounts.flatMap((flows): [string, Quantity][] => [
      [`marked_${flows}`, { label: `p, ${flows} flows`, unit: "%" }],
      [`queue_${flows}`, { label: `stable queue, ${flows} flows`, unit: "KB" }],
    ]),
  ),
  most_marked: { label: "p, most of these", unit: "%" },
  of_order: { label: "numbers of flows with 15.8 to 158 KB", unit: "" },
  least_solutions: { label: "fixed points, fewest", unit: "" },
  most_solutions: { label: "fixed points, most", unit: "" },
  ...Object.fromEntries(
    kPairNames.flatMap((name): [string, Quantity][] => [
      [`apart_${name}`, { label: `apart for, ${kPairs[name].label}`, unit: "ms" }],
      [`left_${name}`, { label: `difference left, ${kPairs[name].label}`, unit: "Gb/s" }],
    ]),
  ),
  alpha_slower: { label: "apart with tau' 110 us / with 55 us", unit: "" },
  half_slower: { label: "apart with R_AI 20 Mb/s / with 40 Mb/s", unit: "" },
  margin: { label: "phase margin with 50 us more latency, 2 flows", unit: "degrees" },
  ...Object.fromEntries(
    kIncastNames.map((name): [string, Quantity] => [
      `utilisation_${name}`,
      { label: `utilisation, ${kIncasts[name]?.label}`, unit: "%" },
    ]),
  ),
};

type Pairs = Readonly<Record<Pair, Convergence>>;
type Incasts = Readonly<Record<string, Incast>>;

/** What both clocks measure in the same way, and p and queue by number of flows, where there are any. */
function observation(
  pairs: Pairs,
  incasts: Incasts,
  marked: readonly number[],
  queues: readonly (number | null)[],
): Observation {
  const apart = (name: Pair) => pairs[name].apart;
  const lengths = queues.map((queue) => queue ?? undefined);
  const ofOrder = lengths.filter((queue = 0) => queue >= kOrder[0] * kKmin && queue <= kOrder[1] * kKmin);
  return {
    values: known({
      ...Object.fromEntries(kCounts.map((flows, i) => [`marked_${flows}`, marked[i]])),
      ...Object.fromEntries(kCounts.map((flows, i) => [`queue_${flows}`, lengths[i]])),
      most_marked: Math.max(...marked),
      of_order: ofOrder.length,
      ...Object.fromEntries(
        kPairNames.flatMap((name) => [
          [`apart_${name}`, apart(name) * 1000],
          [`left_${name}`, pairs[name].left],
        ]),
      ),
      alpha_slower: apart("alpha") / apart("table"),
      half_slower: apart("half") / apart("table"),
      ...Object.fromEntries(kIncastNames.map((name) => [`utilisation_${name}`, (incasts[name] as Incast).utilisation])),
    }),
    plots: [pairPlot(pairs), incastPlot(incasts)],
  };
}

function pairPlot(pairs: Pairs): Plot {
  return {
    title: "Difference of two flows, one from 40 Gb/s and one from 0",
    x_label: "time, ms",
    y_label: "difference, Gb/s",
    x_range: [0, 200],
    y_range: [0, 42],
    curves: kPairNames.map((name) => {
      const { time, values } = pairs[name].difference;
      return { label: kPairs[name].label, x: time.map((at) => at * 1000), y: values };
    }),
  };
}

function incastPlot(incasts: Incasts): Plot {
  return {
    title: "Queue, 32:1",
    x_label: "time, ms",
    y_label: "queue, KB",
    x_range: [50, 100],
    y_range: [0, 350],
    curves: ["n32", "n32_half"].map((name) => {
      const { time, values } = (incasts[name] as Incast).queue;
      return { label: kIncasts[name]?.label ?? "", x: time.map((at) => at * 1000), y: values };
    }),
  };
}

/** How often decreases come to outweigh increases, or the other way round, from p = 1e-12 to 1. */
function fixedPoints(flows: number): number {
  const parameters = inPackets(kTable14);
  const steps = 10_000;
  const signs = Array.from({ length: steps + 1 }, (_, i) =>
    Math.sign(excess(parameters, 10 ** (-12 * (1 - i / steps)), parameters.capacity / flows)),
  );
  return signs.filter((sign, i) => i > 0 && sign !== signs[i - 1]).length;
}

export const DCQCN_SECTION_5: Experiment = {
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
  ],
  quantities: kQuantities,
  statements: [
    statement(
      "By setting the LHS of Equations (6)-(9) to zero, we see that the fluid model has a unique fixed point when satisfying Equation (10). [...] The solution of p is unique.",
      "section 5.1",
      "over 10,000 values of p from 1e-12 to 1 the equations change sign once, with each number of flows",
      [
        { quantity: "least_solutions", min: 1 },
        { quantity: "most_solutions", max: 1 },
      ],
    ),
    statement(
      "We verified that for reasonable settings, p is less than 1%.",
      "section 5.1",
      "with 2, 4, 8, 10, 16 and 64 flows",
      [{ quantity: "most_marked", max: 1 }],
      "By the equations it is less than 1% with up to 10 flows. As packets it is with up to 4: from 8 on the scatter of the queue takes it beyond Kmax, where everything is marked.",
    ),
    statement(
      "Fluid model predicts that the stable queue length is usually one order of magnitude larger than 5KB Kmin.",
      "section 5.2",
      "with at least 4 of 2, 4, 8, 10, 16 and 64 flows it is sqrt(10) to 10 sqrt(10) times Kmin, 15.8 to 158 KB",
      [{ quantity: "of_order", min: 4 }],
      "With 2, 4 and 8 flows it is; with 10 flows it is 36 times Kmin, and with 16 and 64, which need a p above Pmax, equation 5 has no stable queue.",
    ),
    statement(
      "We set Kmin = 5KB since we found it sufficient to maintain 100% throughput.",
      "section 5.2",
      "the two flows of 2:1 use the link at least 99.5%",
      [{ quantity: "utilisation_n2", min: 99.5 }],
      "At rest the equations have 27.7 KB of queue, always. As packets it is empty in 19% of the samples.",
    ),
    statement(
      "We have verified that flows converge fast and stably even when an additional 50us latency is added.",
      "section 5.2",
      "from 40 Gb/s and 0 they come near in the first 100 ms, and at most 4 Gb/s are left",
      [
        { quantity: "apart_latency", max: 100 },
        { quantity: "left_latency", max: 4 },
      ],
    ),
    statement(
      "DCQCN is generally insensitive to tau' value: 110us (twice as default) barely slows down convergence.",
      "section 5.2",
      "flows are apart at most 10% longer",
      [{ quantity: "alpha_slower", max: 1.1 }],
      "As packets the first flow is alone before, and its alpha is the larger the slower it decays. Of five seeds each, flows are apart for 38 to 66 ms with 55 us, and for 51 to 74 with 110.",
    ),
    statement(
      "Halving R_AI reduces the convergence speed,",
      "section 5.2",
      "with 20 Mb/s flows are apart longer than with 40 Mb/s",
      [{ quantity: "half_slower", min: 1.01 }],
    ),
    statement(
      "but it ensures no buffer starvation with 32:1 incast.",
      "section 5.2",
      "with R_AI 20 Mb/s, 32 flows use the link at least 99.5%",
      [{ quantity: "utilisation_n32_half", min: 99.5 }],
      "32 flows rest at a p of 3.2%, above Pmax also with half of R_AI; equation 5 as printed has no queue for that, and the queue swings about Kmax and runs empty. With the same slope carried on (Kmax 1955 KB, Pmax 10%) the equations have the link used 100%.",
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: [
      ...kPairNames.flatMap((name) => repeated(name, { file: kPairFile, set: kPairs[name].set }, kSeeds)),
      ...Object.entries(kIncasts).flatMap(([name, { set }]) => repeated(name, { file: kIncastFile, set }, kSeeds)),
    ],
    observe: (runs) => {
      const pairs = Object.fromEntries(
        kPairNames.map((name) => [name, typical(runs, name, convergenceAsPackets)]),
      ) as Record<Pair, Convergence>;
      const incasts = Object.fromEntries(kIncastNames.map((name) => [name, typical(runs, name, incastAsPackets)]));
      const each = kCounts.map((flows) => incasts[`n${flows}`] as Incast);
      return observation(
        pairs,
        incasts,
        each.map(({ marked }) => marked),
        each.map(({ mean }) => mean),
      );
    },
    sim_seconds: 60,
  },
  model: (alternative) => {
    const alpha = equationsOf(alternative);
    const pairs = Object.fromEntries(
      kPairNames.map((name) => [name, convergenceByModel({ ...kPairs[name].changes, ...alpha })]),
    ) as Record<Pair, Convergence>;
    const incasts = Object.fromEntries(
      Object.entries(kIncasts).map(([name, { flows, changes }]) => [
        name,
        incastByModel(flows, { ...changes, ...alpha }),
      ]),
    );
    const points = kCounts.map((flows) => dcqcnFixedPoint(kTable14, flows));
    const counts = kCounts.map((flows) => fixedPoints(flows));
    const found = observation(
      pairs,
      incasts,
      points.map(({ p }) => 100 * p),
      points.map(({ queue_bytes }) => (queue_bytes === null ? null : queue_bytes / 1000)),
    );
    const margin = dcqcnStability({ ...kTable14, ...kPairs.latency.changes }, 2).phase_margin_deg;
    return {
      ...found,
      values: known({
        ...found.values,
        least_solutions: Math.min(...counts),
        most_solutions: Math.max(...counts),
        margin: margin ?? undefined,
      }),
    };
  },
  alternative: ALPHA_RESET,
};
