/** Figure 11 of the DCQCN paper: which parameters make two flows equal. Four sweeps by the equations, their corners as packets. */
import { DCQCN_STRAWMAN, type DcqcnModelParameters } from "../../src/models/dcqcn/index.js";
import { overMilliseconds } from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import {
  atLeast,
  atMost,
  byName,
  grid,
  less,
  MORE_OR_LESS,
  namesOf,
  quantity,
  statement,
  studyOf,
  trace,
} from "../engine/study.js";
import { ALPHA_RESET, equationsOf } from "./alpha.js";
import {
  AS_PACKETS,
  BY_CHANCE,
  CONVERGED,
  type Convergence,
  convergenceByModel,
  differencePlot,
  pairsOf,
  SEEDS,
  type Setting,
} from "./bottleneck.js";
import { SLOW_BY_EQUATIONS } from "./causes.js";
import { dcqcnFigure } from "./paper.js";

/** Parameters that are swept, and those that stay as they are meanwhile: read from the sentences about each sweep. */
const kSweeps = {
  bytes: (value: number) => ({ ...DCQCN_STRAWMAN, rpg_byte_reset: value }),
  timer: (value: number) => ({ ...DCQCN_STRAWMAN, rpg_byte_reset: 10e6, rpg_time_reset: value }),
  kmax: (value: number) => ({ ...DCQCN_STRAWMAN, kmax: value }),
  pmax: (value: number) => ({ ...DCQCN_STRAWMAN, kmax: 200e3, pmax: value }),
} as const satisfies Record<string, (value: number) => DcqcnModelParameters>;
type SweepName = keyof typeof kSweeps;

const kCutOff = "switch.ecn={kmin: 40KB, kmax: 40KB, pmax: 1}";
const kRed = (pmax: number) => `switch.ecn={kmin: 40KB, kmax: 200KB, pmax: ${pmax}}`;
const kControl = (timer: string, bytes: string) =>
  `congestion.parameters={dce_tcp_g: 960, rpg_time_reset: ${timer}, rpg_byte_reset: ${bytes}}`;
const kSlow = kControl("1.5ms", "150KB");

/** Ends of the sweeps. */
const kSettings = {
  strawman: { label: "strawman", changes: kSweeps.bytes(150e3), set: [kCutOff, kSlow] },
  bytes: {
    label: "(a) byte counter 10 MB",
    changes: kSweeps.bytes(10e6),
    set: [kCutOff, kControl("1.5ms", "10MB")],
  },
  timer: { label: "(b) and timer 55 us", changes: kSweeps.timer(55e3), set: [kCutOff, kControl("55us", "10MB")] },
  kmax: { label: "(c) Kmax 200 KB", changes: kSweeps.kmax(200e3), set: [kRed(1), kSlow] },
  pmax: { label: "(d) and Pmax 1%", changes: kSweeps.pmax(0.01), set: [kRed(0.01), kSlow] },
} satisfies Record<string, Setting & { label: string }>;
const kPairs = pairsOf(kSettings);
const kNames = namesOf(kSettings);

/** Values of each sweep that are drawn. */
const kDrawn: readonly { sweep: SweepName; title: string; values: readonly (readonly [string, number])[] }[] = [
  {
    sweep: "bytes",
    title: "(a) Byte counter, all else the strawman",
    values: [
      ["150 KB", 150e3],
      ["500 KB", 500e3],
      ["1 MB", 1e6],
      ["2 MB", 2e6],
      ["5 MB", 5e6],
      ["10 MB", 10e6],
    ],
  },
  {
    sweep: "timer",
    title: "(b) Timer, byte counter 10 MB",
    values: [
      ["1.5 ms", 1.5e6],
      ["1 ms", 1e6],
      ["500 us", 500e3],
      ["300 us", 300e3],
      ["150 us", 150e3],
      ["55 us", 55e3],
    ],
  },
  {
    sweep: "kmax",
    title: "(c) Kmax, all else the strawman",
    values: [
      ["40 KB", 40e3],
      ["60 KB", 60e3],
      ["100 KB", 100e3],
      ["140 KB", 140e3],
      ["200 KB", 200e3],
    ],
  },
  {
    sweep: "pmax",
    title: "(d) Pmax, Kmax 200 KB",
    values: [
      ["100%", 1],
      ["40%", 0.4],
      ["10%", 0.1],
      ["5%", 0.05],
      ["2%", 0.02],
      ["1%", 0.01],
    ],
  },
];

interface Seen {
  found: Readonly<Record<keyof typeof kSettings, Convergence>>;
  plots: readonly Plot[];
}

const left =
  (name: keyof Seen["found"], base: keyof Seen["found"]) =>
  ({ found }: Seen) =>
    found[name].left / found[base].left;

export const DCQCN_FIGURE_11 = studyOf<Seen>()({
  ...dcqcnFigure(11),
  title: "sweeps of byte counter, timer, Kmax and Pmax for best convergence",
  setup:
    "One flow at 40 Gb/s, one that starts at 0, 200 ms. The strawman: B 150 KB, T 1.5 ms, Kmin = Kmax = 40 KB, Pmax 1, g 1/16. (a) B up to 10 MB; (b) T down to 55 us with B 10 MB; (c) Kmax up to 200 KB; (d) Pmax down to 1% with Kmax 200 KB.",
  choices: [
    "The paper's surfaces are drawn as families of curves, without the first 10 ms, as there.",
    "What stays as it is in each sweep is read from the sentences about it: the strawman in (a), (c) and (d), with B 10 MB in (b).",
    CONVERGED,
    AS_PACKETS,
    BY_CHANCE,
    MORE_OR_LESS,
  ],
  quantities: {
    ...grid(
      kNames,
      ({ found }: Seen, name) => found[name],
      (label, name) => `${label}, ${kSettings[name].label}`,
    )({
      apart: quantity("apart for", "ms", ({ apart }) => apart * 1000),
      left: quantity("difference left", "Gb/s", ({ left }) => left),
    }),
    slower_bytes: quantity("left with B 10 MB / with 150 KB", "", left("bytes", "strawman")),
    faster_timer: quantity("left with T 55 us / with 1.5 ms, B 10 MB", "", left("timer", "bytes")),
    wider: quantity("left with Kmax 200 KB / with 40 KB", "", left("kmax", "strawman")),
    flatter: quantity("left with Pmax 1% / with 100%, Kmax 200 KB", "", left("pmax", "kmax")),
  },
  statements: [
    statement(
      "Unfortunately we find that with these parameter values, the flows cannot converge (innermost edge of Figure 11(a)).",
      "section 5.2",
      "with the strawman flows do not converge, and the difference left is at least half of the link",
      [atLeast("apart_strawman", 200), atLeast("left_strawman", 20)],
    ),
    statement(
      "Figure 11(a) shows that slowing down byte counter helps, but it reduces convergence speed.",
      "section 5.2",
      "with B 10 MB less is left than with 150 KB, but flows do not converge in the first 100 ms",
      [less("slower_bytes"), atLeast("apart_bytes", 100)],
    ),
    statement(
      "Speeding up the timer (Figure 11(b)) is better.",
      "section 5.2",
      "with T 55 us less is left than with the slow byte counter alone, and flows converge",
      [less("faster_timer"), atMost("apart_timer", 199)],
    ),
    statement(
      "Another solution is to use a RED-like probabilistic packet marking scheme with a small Pmax [...] Figures 11(c) and 11(d) confirm this intuition.",
      "section 5.2",
      "less is left with Kmax 200 KB than with the cut-off at 40 KB, and less again with Pmax 1% than with 100%",
      [less("wider"), less("flatter")],
    ),
    statement(
      "In conclusion, to achieve fast convergence to fairness, we configure RED-ECN on switches with Kmax = 200KB and Pmax = 1%.",
      "section 5.2",
      "with the strawman's counters, Kmax 200 KB and Pmax 1%, flows converge in the first 100 ms",
      [atMost("apart_pmax", 100)],
      "By the equations Pmax 5 and 10% leave 1.2 and 1.3 Gb/s, 1 and 2% leave 12.8: what swings less converges more slowly. As packets without hyper increase, which the equations leave out (R_HAI = R_AI), they come near each other after 90.5 ms.",
      SLOW_BY_EQUATIONS,
    ),
  ],
  traces: byName(kNames, (name) => {
    const title = `Difference of throughputs, ${kSettings[name].label}`;
    return trace(title, ["time, ms", 10, 200], ["difference", "Gb/s"], ({ found }: Seen) =>
      overMilliseconds(found[name].difference),
    );
  }),
  plots: ({ plots }) => plots,
  network: {
    clocks: ["sim"],
    trials: kPairs.trials,
    seeds: SEEDS,
    see: (runs) => {
      const found = kPairs.asPackets(runs);
      const curves = kNames.map((name) => ({ label: kSettings[name].label, found: found[name] }));
      return { found, plots: [differencePlot("Ends of the sweeps", curves, 10)] };
    },
    typical: (all) => ({ ...(all[0] as Seen), found: kPairs.typical(all.map(({ found }) => found)) }),
    sim_seconds: 4,
  },
  model: (alternative) => ({
    found: kPairs.byModel(alternative),
    plots: kDrawn.map(({ sweep, title, values }) => {
      const curves = values.map(([label, value]) => {
        return { label, found: convergenceByModel({ ...kSweeps[sweep](value), ...equationsOf(alternative) }) };
      });
      return differencePlot(title, curves, 10);
    }),
  }),
  alternative: ALPHA_RESET,
});
