/**
 * Words of section 5.2 of the DCQCN paper on R_AI and F without a figure: how far a target rate rises at a time, and after how
 * many steps of fast recovery it begins to. Two flows that are to become equal, by the equations and as packets.
 */
import type { Plot } from "../../src/result/report/plot.js";
import { atLeast, atMost, byName, grid, namesOf, plot, quantity, statement, studyOf } from "../engine/study.js";
import { ALPHA_RESET } from "./alpha.js";
import { AS_PACKETS, BY_CHANCE, CONVERGED, type Convergence, differencePlot, pairsOf, SEEDS } from "./bottleneck.js";
import { REST_OF_EQUATIONS } from "./causes.js";
import { DCQCN_PAPER } from "./paper.js";

const kWhere = "section 5.2";
/** Mb/s; of table 2 40. */
const kIncreases = [10, 20, 40, 80, 160] as const;
/** Steps in place of table 2's 5. */
const kSteps = [1, 2, 5, 10, 20] as const;

const kLabels = { increase: "R_AI", steps: "F" } as const;
type Sweep = keyof typeof kLabels;
/** The end of a sweep that rises further or sooner, and the other. */
const kEnds = { increase: [160, 10], steps: [1, 20] } as const;

const kSettings = {
  ...byName(
    kIncreases.map((value) => `increase_${value}` as const),
    (name) => {
      const value = Number(name.split("_")[1]);
      return {
        label: `R_AI ${value} Mb/s`,
        changes: { rpg_ai_rate: value * 1e6 },
        set: [`congestion.parameters.rpg_ai_rate=${value}Mbps`],
      };
    },
  ),
  ...byName(
    kSteps.map((value) => `steps_${value}` as const),
    (name) => {
      const value = Number(name.split("_")[1]);
      return {
        label: `F ${value}`,
        changes: { rpg_threshold: value },
        set: [`congestion.parameters.rpg_threshold=${value}`],
      };
    },
  ),
};
const kPairs = pairsOf(kSettings);
const kNames = namesOf(kSettings);

type Seen = Readonly<Record<keyof typeof kSettings, Convergence>>;

const at = (seen: Seen, sweep: Sweep, value: number) => seen[`${sweep}_${value}` as keyof Seen];
const ratio = (of: "apart" | "oscillation") => (seen: Seen, sweep: Sweep) => {
  const [eager, slow] = kEnds[sweep];
  return at(seen, sweep, eager)[of] / at(seen, sweep, slow)[of];
};
/** The values of table 2 over the best of all. */
const toBest = (of: "apart" | "oscillation") => (seen: Seen) =>
  seen.increase_40[of] / Math.min(...kNames.map((name) => seen[name][of]));

const kAtRest =
  "By the equations two flows come to rest: less than 0.1% is left, of their way there, but with R_AI 10 Mb/s, where they are still under way. As packets, marks come by chance, and rates never rest.";

const tradeOff = <One extends Sweep>(sweep: One) =>
  statement(
    `We also analyzed impact of [...] ${kLabels[sweep]}. They both offer trade-off between convergence speed and throughput oscillations.`,
    kWhere,
    `from ${kLabels[sweep]} ${kEnds[sweep][1]} to ${kEnds[sweep][0]} flows come near in 90% of the time or less, and oscillate at least 10% more`,
    [atMost(`faster_${sweep}`, 0.9), atLeast(`restless_${sweep}`, 1.1)],
    kAtRest,
    { model: REST_OF_EQUATIONS },
  );

function bars(title: string, label: string, of: (found: Convergence) => number, seen: Seen): Plot {
  const x_names = kNames.map((name, x) => ({ x, label: kSettings[name].label }));
  const x = x_names.map((one) => one.x);
  return plot(title, [""], [label], [{ label: "", kind: "bars", x, y: kNames.map((name) => of(seen[name])) }], {
    x_names,
  });
}

export const DCQCN_INCREASE = studyOf<Seen>()({
  id: "dcqcn-increase",
  paper: DCQCN_PAPER,
  place: kWhere,
  title: "R_AI and F: convergence speed and throughput oscillations",
  setup:
    "Table 14 with R_AI of 10, 20, 40, 80 and 160 Mb/s, and with F of 1, 2, 5, 10 and 20: two flows that begin at 40 Gb/s and 0, 200 ms. The paper's values are 40 Mb/s and 5.",
  choices: [
    "Of both the paper says that they were analysed and offer a trade-off, not over which values; the sweeps here are ours.",
    CONVERGED,
    "Oscillation is the standard deviation of a flow's throughput by means of 1 ms from 150 to 200 ms, as a share of the mean; mean of both flows.",
    AS_PACKETS,
    BY_CHANCE,
  ],
  quantities: {
    ...grid(
      kNames,
      (seen: Seen, name) => seen[name],
      (label, name) => `${label}, ${kSettings[name].label}`,
    )({
      apart: quantity("apart for", "ms", ({ apart }) => apart * 1000),
      left: quantity("difference left", "Gb/s", ({ left }) => left),
      oscillation: quantity("oscillation", "%", ({ oscillation }) => oscillation),
    }),
    ...grid(
      namesOf(kLabels),
      (seen: Seen, sweep) => ({ seen, sweep }),
      (label, sweep) => label.replace("*", `${kLabels[sweep]} ${kEnds[sweep].join(" / ")}`),
    )({
      faster: quantity("apart for, *", "", ({ seen, sweep }) => ratio("apart")(seen, sweep)),
      restless: quantity("oscillation, *", "", ({ seen, sweep }) => ratio("oscillation")(seen, sweep)),
    }),
    best_apart: quantity("apart for, table 2 / least of all", "", toBest("apart")),
    best_oscillation: quantity("oscillation, table 2 / least of all", "", toBest("oscillation")),
  },
  statements: [
    tradeOff("increase"),
    tradeOff("steps"),
    statement(
      "The current values are an acceptable compromise.",
      kWhere,
      "with R_AI 40 Mb/s and F 5 flows are apart at most twice as long as with the fastest of these settings, and oscillate at most twice as much as with the calmest",
      [atMost("best_apart", 2), atMost("best_oscillation", 2)],
      kAtRest,
      { model: REST_OF_EQUATIONS },
    ),
  ],
  plots: (seen) => [
    bars("Time until flows are near", "time, ms", ({ apart }) => apart * 1000, seen),
    bars("Oscillation", "deviation of the throughput, %", ({ oscillation }) => oscillation, seen),
    differencePlot(
      "Difference of two flows, one from 40 Gb/s and one from 0",
      (["increase_10", "increase_40", "increase_160", "steps_1", "steps_20"] as const).map((name) => ({
        label: kSettings[name].label,
        found: seen[name],
      })),
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: kPairs.trials,
    seeds: SEEDS,
    see: (runs) => kPairs.asPackets(runs),
    typical: kPairs.typical,
    sim_seconds: 6,
  },
  model: (alternative) => kPairs.byModel(alternative),
  alternative: ALPHA_RESET,
});
