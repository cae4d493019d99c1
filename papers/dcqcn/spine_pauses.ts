/** Figure 15 of the DCQCN paper, section 6.2: PAUSE frames that reach the spines with an incast of degree 10. */
import type { Evidence } from "../engine/experiment.js";
import { atLeast, atMost, byName, namesOf, plot, quantity, statement, studyOf } from "../engine/study.js";
import { benchmarkGrid, kBenchmarkChoices, kSeeds, kWireChoice, nameAt, spinePauses } from "./benchmark.js";
import { dcqcnFigure } from "./paper.js";
import { kSettings, pauseFrames, repeats, type Setting } from "./testbed.js";

const kDegree = 10;
/** Seconds of a run of the paper. */
const kPaperRun = 120;

const kSeedNumbers = Array.from({ length: kSeeds }, (_, i) => i + 1);
const kEach = namesOf(kSettings);

/** All seeds. */
type Seen = Readonly<Record<Setting, readonly Evidence[]>>;

export const DCQCN_FIGURE_15 = studyOf<Seen>()({
  ...dcqcnFigure(15),
  title: "PAUSE frames at the spines",
  setup: "20 pairs of random hosts and an incast of degree 10 on the testbed, with PFC alone and with DCQCN and PFC.",
  choices: [
    ...kBenchmarkChoices,
    kWireChoice("both"),
    "The paper counts a run of two minutes; here it is frames per second. They are XOFF, refresh and XON; whether the paper counts XON is not said, and without it half of the frames go.",
  ],
  quantities: byName(kEach, (setting) =>
    quantity(`PFC frames received at S1 and S2, ${kSettings[setting].label}`, "per s", (runs: Seen) =>
      spinePauses(runs[setting]),
    ),
  ),
  statements: [
    statement(
      "For example, in a single run of the experiment with incast degree 10, the two spine switches together receive over 6 million PAUSE messages.",
      "section 6.2",
      "without DCQCN, 50,000 per second or more",
      [atLeast("pfc", 6e6 / kPaperRun)],
    ),
    statement(
      "In contrast, when DCQCN is used, the spine switches see just 3000 PAUSE messages",
      "section 6.2",
      "25 per second or fewer",
      [atMost("dcqcn", 3000 / kPaperRun)],
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: benchmarkGrid("traffic.1.degree", [kDegree], [], [kDegree]),
    see: (runs) => byName(kEach, (setting) => repeats(runs, nameAt(setting, kDegree))),
    sim_seconds: 20,
  },
  plots: (runs) => [
    plot(
      "PFC frames received at S1 and S2",
      ["run"],
      ["thousand per s"],
      kEach.map((setting) => ({
        label: kSettings[setting].label,
        kind: "bars",
        x: kSeedNumbers.slice(0, runs[setting].length),
        y: runs[setting].map((run) => pauseFrames(run, "pfc_received", ["s1", "s2"]) / 1000),
      })),
      {
        x_names: kSeedNumbers.map((seed) => ({ x: seed, label: `seed ${seed}` })),
        levels: [{ label: "paper, PFC", value: 6e6 / kPaperRun / 1000 }],
      },
    ),
  ],
});
