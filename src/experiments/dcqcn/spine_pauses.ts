/** Figure 15 of the DCQCN paper, section 6.2: PAUSE frames that reach the spines with an incast of degree 10. */
import type { Evidence, Experiment } from "../experiment.js";
import { benchmarkGrid, kBenchmarkChoices, kSeeds, nameAt, spinePauses } from "./benchmark.js";
import { DCQCN_PAPER } from "./paper.js";
import { kSettings, pauseFrames, repeats, type Setting } from "./testbed.js";

const kDegree = 10;
/** Seconds of a run of the paper. */
const kPaperRun = 120;

const kEach = Object.keys(kSettings) as Setting[];

export const DCQCN_FIGURE_15: Experiment = {
  id: "dcqcn-fig15",
  paper: DCQCN_PAPER,
  place: "figure 15",
  title: "PAUSE frames at the spines",
  setup: "20 pairs of random hosts and an incast of degree 10 on the testbed, with PFC alone and with DCQCN and PFC.",
  choices: [
    ...kBenchmarkChoices,
    "The paper counts a run of two minutes; here it is frames per second. They are XOFF, refresh and XON; whether the paper counts XON is not said, and without it half of the frames go.",
  ],
  quantities: Object.fromEntries(
    kEach.map((setting) => [
      setting,
      { label: `PFC frames received at S1 and S2, ${kSettings[setting].label}`, unit: "per s" },
    ]),
  ),
  statements: [
    {
      quote:
        "For example, in a single run of the experiment with incast degree 10, the two spine switches together receive over 6 million PAUSE messages.",
      where: "section 6.2",
      reading: "without DCQCN, 50,000 per second or more",
      checks: [{ quantity: "pfc", min: 6e6 / kPaperRun }],
    },
    {
      quote: "In contrast, when DCQCN is used, the spine switches see just 3000 PAUSE messages",
      where: "section 6.2",
      reading: "25 per second or fewer",
      checks: [{ quantity: "dcqcn", max: 3000 / kPaperRun }],
    },
  ],
  network: {
    clocks: ["sim"],
    trials: benchmarkGrid("traffic.1.degree", [kDegree], []),
    observe,
    sim_seconds: 20,
  },
};

function observe(runs: Readonly<Record<string, Evidence>>) {
  const of = (setting: Setting) => repeats(runs, nameAt(setting, kDegree));
  const seeds = Array.from({ length: kSeeds }, (_, i) => i + 1);
  return {
    values: Object.fromEntries(kEach.map((setting) => [setting, spinePauses(of(setting))])),
    plots: [
      {
        title: "PFC frames received at S1 and S2",
        x_label: "run",
        y_label: "thousand per s",
        x_names: seeds.map((seed) => ({ x: seed, label: `seed ${seed}` })),
        curves: kEach.map((setting) => ({
          label: kSettings[setting].label,
          kind: "bars" as const,
          x: seeds,
          y: of(setting).map((run) => pauseFrames(run, "pfc_received", ["s1", "s2"]) / 1000),
        })),
        levels: [{ label: "paper, PFC", value: 6e6 / kPaperRun / 1000 }],
      },
    ],
  };
}
