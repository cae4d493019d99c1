/** Figure 11 of the DCQCN paper: which parameters make two flows equal. Four sweeps by the equations, their corners as packets. */
import { type DcqcnModelParameters, kSurfaces, type SurfaceName } from "../../models/dcqcn/index.js";
import type { Plot } from "../../report/plot.js";
import { type Experiment, type Observation, statement, type TraceValues } from "../experiment.js";
import { ALPHA_RESET, equationsOf } from "./alpha.js";
import {
  AS_PACKETS,
  BY_CHANCE,
  CONVERGED,
  type Convergence,
  convergenceAsPackets,
  convergenceByModel,
  kPairFile,
  kSeeds,
  typical,
} from "./bottleneck.js";
import { DCQCN_PAPER } from "./paper.js";
import { repeated } from "./testbed.js";

interface Setting {
  label: string;
  surface: SurfaceName;
  value: number;
  /** Overrides of convergence.yaml. */
  set: readonly string[];
}

const kCutOff = "switch.ecn={kmin: 40KB, kmax: 40KB, pmax: 1}";
const kRed = (pmax: number) => `switch.ecn={kmin: 40KB, kmax: 200KB, pmax: ${pmax}}`;
const kControl = (timer: string, bytes: string) =>
  `congestion.parameters={dce_tcp_g: 960, rpg_time_reset: ${timer}, rpg_byte_reset: ${bytes}}`;
const kSlow = kControl("1.5ms", "150KB");

/** Ends of the sweeps. */
const kSettings = {
  strawman: { label: "strawman", surface: "byte-counter", value: 150e3, set: [kCutOff, kSlow] },
  bytes: {
    label: "(a) byte counter 10 MB",
    surface: "byte-counter",
    value: 10e6,
    set: [kCutOff, kControl("1.5ms", "10MB")],
  },
  timer: { label: "(b) and timer 55 us", surface: "timer", value: 55e3, set: [kCutOff, kControl("55us", "10MB")] },
  kmax: { label: "(c) Kmax 200 KB", surface: "kmax", value: 200e3, set: [kRed(1), kSlow] },
  pmax: { label: "(d) and Pmax 1%", surface: "pmax", value: 0.01, set: [kRed(0.01), kSlow] },
} as const satisfies Record<string, Setting>;

type Name = keyof typeof kSettings;
const kNames = Object.keys(kSettings) as Name[];

/** Values of each sweep that are drawn. */
const kDrawn: readonly { surface: SurfaceName; title: string; values: readonly (readonly [string, number])[] }[] = [
  {
    surface: "byte-counter",
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
    surface: "timer",
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
    surface: "kmax",
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
    surface: "pmax",
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

function parametersOf({ surface, value }: Pick<Setting, "surface" | "value">): DcqcnModelParameters {
  const { base, parameter } = kSurfaces[surface];
  return { ...base, [parameter]: value };
}

function observation(found: Readonly<Record<Name, Convergence>>, plots: readonly Plot[]): Observation {
  const left = (name: Name) => found[name].left;
  return {
    values: {
      ...Object.fromEntries(
        kNames.flatMap((name) => [
          [`apart_${name}`, found[name].apart * 1000],
          [`left_${name}`, found[name].left],
        ]),
      ),
      slower_bytes: left("bytes") / left("strawman"),
      faster_timer: left("timer") / left("bytes"),
      wider: left("kmax") / left("strawman"),
      flatter: left("pmax") / left("kmax"),
    },
    plots,
    traces: Object.fromEntries(kNames.map((name) => [name, inMilliseconds(found[name])])),
  };
}

function inMilliseconds({ difference }: Convergence): TraceValues {
  return { x: difference.time.map((time) => time * 1000), y: difference.values };
}

function drawing(title: string, curves: readonly { label: string; found: Convergence }[]): Plot {
  return {
    title,
    x_label: "time, ms",
    y_label: "difference, Gb/s",
    x_range: [10, 200],
    y_range: [0, 42],
    curves: curves.map(({ label, found }) => ({ label, ...inMilliseconds(found) })),
  };
}

export const DCQCN_FIGURE_11: Experiment = {
  id: "dcqcn-fig11",
  paper: DCQCN_PAPER,
  place: "figure 11",
  title: "sweeps of byte counter, timer, Kmax and Pmax for best convergence",
  setup:
    "One flow at 40 Gb/s, one that starts at 0, 200 ms. The strawman: B 150 KB, T 1.5 ms, Kmin = Kmax = 40 KB, Pmax 1, g 1/16. (a) B up to 10 MB; (b) T down to 55 us with B 10 MB; (c) Kmax up to 200 KB; (d) Pmax down to 1% with Kmax 200 KB.",
  choices: [
    "The paper's surfaces are drawn as families of curves, without the first 10 ms, as there.",
    "What stays as it is in each sweep is read from the sentences about it: the strawman in (a), (c) and (d), with B 10 MB in (b).",
    CONVERGED,
    AS_PACKETS,
    BY_CHANCE,
  ],
  quantities: {
    ...Object.fromEntries(
      kNames.flatMap((name) => [
        [`apart_${name}`, { label: `apart for, ${kSettings[name].label}`, unit: "ms" }],
        [`left_${name}`, { label: `difference left, ${kSettings[name].label}`, unit: "Gb/s" }],
      ]),
    ),
    slower_bytes: { label: "left with B 10 MB / with 150 KB", unit: "" },
    faster_timer: { label: "left with T 55 us / with 1.5 ms, B 10 MB", unit: "" },
    wider: { label: "left with Kmax 200 KB / with 40 KB", unit: "" },
    flatter: { label: "left with Pmax 1% / with 100%, Kmax 200 KB", unit: "" },
  },
  statements: [
    statement(
      "Unfortunately we find that with these parameter values, the flows cannot converge (innermost edge of Figure 11(a)).",
      "section 5.2",
      "with the strawman flows do not converge, and the difference left is at least half of the link",
      [
        { quantity: "apart_strawman", min: 200 },
        { quantity: "left_strawman", min: 20 },
      ],
    ),
    statement(
      "Figure 11(a) shows that slowing down byte counter helps, but it reduces convergence speed.",
      "section 5.2",
      "with B 10 MB less is left than with 150 KB, but flows do not converge in the first 100 ms",
      [
        { quantity: "slower_bytes", max: 0.99 },
        { quantity: "apart_bytes", min: 100 },
      ],
    ),
    statement(
      "Speeding up the timer (Figure 11(b)) is better.",
      "section 5.2",
      "with T 55 us less is left than with the slow byte counter alone, and flows converge",
      [
        { quantity: "faster_timer", max: 0.99 },
        { quantity: "apart_timer", max: 199 },
      ],
    ),
    statement(
      "Another solution is to use a RED-like probabilistic packet marking scheme with a small Pmax [...] Figures 11(c) and 11(d) confirm this intuition.",
      "section 5.2",
      "less is left with Kmax 200 KB than with the cut-off at 40 KB, and less again with Pmax 1% than with 100%",
      [
        { quantity: "wider", max: 0.99 },
        { quantity: "flatter", max: 0.99 },
      ],
    ),
    statement(
      "In conclusion, to achieve fast convergence to fairness, we configure RED-ECN on switches with Kmax = 200KB and Pmax = 1%.",
      "section 5.2",
      "with the strawman's counters, Kmax 200 KB and Pmax 1%, flows converge in the first 100 ms",
      [{ quantity: "apart_pmax", max: 100 }],
      "By the equations Pmax 5 and 10% leave 1.2 and 1.3 Gb/s, 1 and 2% leave 12.8: what swings less converges more slowly. As packets they come near each other after 100.5 ms, in the median of five seeds, and without hyper increase, which the equations leave out (R_HAI = R_AI), after 90.5 ms.",
    ),
  ],
  traces: Object.fromEntries(
    kNames.map((name) => [
      name,
      {
        title: `Difference of throughputs, ${kSettings[name].label}`,
        x_label: "time, ms",
        y_label: "difference, Gb/s",
        unit: "Gb/s",
        x_range: [10, 200] as const,
      },
    ]),
  ),
  network: {
    clocks: ["sim"],
    trials: kNames.flatMap((name) => repeated(name, { file: kPairFile, set: kSettings[name].set }, kSeeds)),
    observe: (runs) => {
      const found = Object.fromEntries(
        kNames.map((name) => [name, typical(runs, name, convergenceAsPackets)]),
      ) as Record<Name, Convergence>;
      const curves = kNames.map((name) => ({ label: kSettings[name].label, found: found[name] }));
      return observation(found, [drawing("Ends of the sweeps", curves)]);
    },
    sim_seconds: 16,
  },
  model: (alternative) => {
    const at = (setting: Pick<Setting, "surface" | "value">) =>
      convergenceByModel({ ...parametersOf(setting), ...equationsOf(alternative) });
    const found = Object.fromEntries(kNames.map((name) => [name, at(kSettings[name])])) as Record<Name, Convergence>;
    const plots = kDrawn.map(({ surface, title, values }) =>
      drawing(
        title,
        values.map(([label, value]) => ({ label, found: at({ surface, value }) })),
      ),
    );
    return observation(found, plots);
  },
  alternative: ALPHA_RESET,
};
