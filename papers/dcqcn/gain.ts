/** Figure 12 of the DCQCN paper: what g does to the length of the queue, with 2 and 16 flows, by the equations and as packets. */

import { overMilliseconds } from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import {
  atLeast,
  atMost,
  byName,
  grid,
  less,
  MORE_OR_LESS,
  more,
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
} from "./bottleneck.js";
import { ALPHA_AT_START, CHANCE_OF_MARKS, FIXED_POINT, G_MOVES_NO_MEAN } from "./causes.js";
import { dcqcnFigure } from "./paper.js";

/** g = 1 / it. */
const kGains = [16, 64, 256, 1024] as const;
const kFlows = [2, 16] as const;
type Gain = (typeof kGains)[number];
type Flows = (typeof kFlows)[number];

const key = (flows: Flows, gain: Gain) => `${flows}_${gain}` as const;
const kCases = kFlows.flatMap((flows) => kGains.map((gain) => ({ flows, gain, name: key(flows, gain) })));
const kNames = kCases.map(({ name }) => name);
/** dce_tcp_g is 1024 (1 - g). */
const setting = (gain: number) => ({
  changes: { g: 1 / gain },
  set: [`congestion.parameters.dce_tcp_g=${1024 - 1024 / gain}`],
});
const kIncasts = incastsOf(
  byName(kNames, (name) => {
    const [flows, gain] = name.split("_").map(Number) as [number, number];
    return { flows, ...setting(gain) };
  }),
  (name) => `incast-${name}`,
);
const kPairs = pairsOf(
  byName(kGains.map(String) as `${Gain}`[], (gain) => setting(Number(gain))),
  (gain) => `two-${gain}`,
);

interface Seen {
  incasts: Readonly<Record<`${Flows}_${Gain}`, Incast>>;
  convergences: Readonly<Record<`${Gain}`, Convergence>>;
}

const ofGains = (of: "mean" | "deviation") => (at: (gain: Gain) => Incast) => at(256)[of] / at(16)[of];

function queuePlot(flows: Flows, { incasts }: Seen): Plot {
  return plot(
    `Queue, ${flows}:1`,
    ["time, ms", 0, 100],
    ["queue, KB", 0, flows === 2 ? 110 : 300],
    kGains.map((gain) => ({ label: `g 1/${gain}`, ...overMilliseconds(incasts[key(flows, gain)].queue) })),
  );
}

export const DCQCN_FIGURE_12 = studyOf<Seen>()({
  ...dcqcnFigure(12),
  title: "g for the best queue length and stability",
  setup:
    "Table 14 with g of 1/16, 1/64, 1/256 and 1/1024: 2 and 16 flows that all begin at 40 Gb/s, 100 ms; and two flows that begin at 40 Gb/s and 0, 200 ms.",
  choices: [
    "The paper says what it sees, not where; figures here are those of the second half of the 100 ms.",
    "Starved is a queue that is so often empty that the link is used less than 99.5%, which no longer rounds to 100%.",
    CONVERGED,
    AS_PACKETS,
    BY_CHANCE,
    MORE_OR_LESS,
  ],
  quantities: {
    ...grid(
      kCases,
      ({ incasts }: Seen, { name }) => incasts[name],
      (label, { flows, gain }) => `${label}, ${flows}:1, g 1/${gain}`,
    )({
      mean: quantity("queue, mean", "KB", ({ mean }) => mean),
      deviation: quantity("queue, standard deviation", "KB", ({ deviation }) => deviation),
      highest: quantity("queue, highest after 10 ms", "KB", ({ highest }) => highest),
      empty: quantity("queue empty", "%", ({ empty }) => empty),
      utilisation: quantity("utilisation", "%", ({ utilisation }) => utilisation),
    }),
    ...grid(
      kGains,
      ({ convergences }: Seen, gain) => convergences[gain],
      (label, gain) => `${label}, g 1/${gain}`,
    )({ apart: quantity("apart for", "ms", ({ apart }) => apart * 1000) }),
    ...grid(
      kFlows,
      ({ incasts }: Seen, flows) =>
        (gain: Gain) =>
          incasts[key(flows, gain)],
      (label, flows) => `${label} with g 1/256 / with 1/16, ${flows}:1`,
    )({
      shorter: quantity("mean queue", "", ofGains("mean")),
      calmer: quantity("deviation", "", ofGains("deviation")),
    }),
    slower: quantity(
      "apart with g 1/256 / with 1/16",
      "",
      ({ convergences: { 256: small, 16: large } }) => small.apart / large.apart,
    ),
  },
  statements: [
    statement(
      "We tested different g from 2:1 incast (Figure 12) and found smaller g leads to lower queue length",
      "section 5.2",
      "2:1: the mean of the queue is less with g 1/256 than with 1/16",
      [less("shorter_2")],
      "g is not among what the fixed point depends on: by the equations the queue rests at 27.7 KB with any g, and swings about that with 1/16. The words fit its swings: after the first 10 ms it is at most 67 KB long with 1/16, 91 with 1/64, 28 with 1/256.",
      G_MOVES_NO_MEAN,
    ),
    statement(
      "and lower variation.",
      "section 5.2",
      "2:1: the standard deviation of the queue is less with g 1/256 than with 1/16",
      [less("calmer_2")],
      "As packets it is chance, which packets are marked and when, that makes the queue vary by its own length; what g does is hardly seen beside it.",
      { sim: CHANCE_OF_MARKS },
    ),
    statement(
      "Lower g leads to slightly slower convergence",
      "section 5.2",
      "from 40 Gb/s and 0 flows are apart longer with g 1/256 than with 1/16, but at most twice as long",
      [more("slower"), atMost("slower", 2)],
      "With a small g the first alpha of 1 lasts, and the flow from 40 Gb/s is cut the more for it. If its alpha is 0 at the start, as it is where that flow was alone before, the equations have flows apart for 41.5 ms with 1/16, 49.5 with 1/256 and 129.5 with 1/1024.",
      { sim: CHANCE_OF_MARKS, model: ALPHA_AT_START },
    ),
    statement(
      "in current settings, there is no buffer starvation with 16:1 incast (Figure 12).",
      "section 5.2",
      "16:1: with g 1/256 the link is used at least 99.5%",
      [atLeast("utilisation_16_256", 99.5)],
      "With the same slope carried on (Kmax 1955 KB, Pmax 10%) the equations have the link used 100%, and 98.3% is simulated.",
      FIXED_POINT,
    ),
  ],
  plots: (seen) => [
    ...kFlows.map((flows) => queuePlot(flows, seen)),
    differencePlot(
      "Difference of two flows, one from 40 Gb/s and one from 0",
      kGains.map((gain) => ({ label: `g 1/${gain}`, found: seen.convergences[gain] })),
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: [...kIncasts.trials, ...kPairs.trials],
    seeds: SEEDS,
    see: (runs) => ({ incasts: kIncasts.asPackets(runs), convergences: kPairs.asPackets(runs) }),
    typical: (all) => ({
      incasts: kIncasts.typical(all.map(({ incasts }) => incasts)),
      convergences: kPairs.typical(all.map(({ convergences }) => convergences)),
    }),
    sim_seconds: 9,
  },
  model: (alternative) => ({ incasts: kIncasts.byModel(alternative), convergences: kPairs.byModel(alternative) }),
  alternative: ALPHA_RESET,
});
