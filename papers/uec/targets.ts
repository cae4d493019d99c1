/** When the last flow is complete, in the validation runs of uet-htsim that are small: theirs and the target that they are held to. */

import type { Cause, Trial } from "../engine/experiment.js";
import { atMost, byName, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { SLOW_LINK_OF_THEIRS } from "./causes.js";
import { HTSIM, UEC_FILE } from "./papers.js";
import { lastCompletion } from "./runs.js";

/** Chance draws which host sends to which, and which path packets take, so permutations have several seeds. */
const kSeeds = [1, 2, 3, 4, 5] as const;
const kOnce = [1] as const;

interface Run {
  label: string;
  set: readonly string[];
  seeds: readonly number[];
  /** Times of uet-htsim, us: the target, and what it has recorded. */
  target: number;
  theirs: number;
}

const flow = (from: string, to: string) => `{from: ${from}, to: ${to}, bytes: 2MB, message: 2MB, priority: 0}`;

const kRuns = {
  one: { label: "one flow", set: [`traffic=[${flow("h1-1-1", "h4-1-2")}]`], seeds: kOnce, target: 190, theirs: 176.2 },
  both: {
    label: "two flows, one each way",
    set: [`traffic=[${flow("h1-1-1", "h4-1-2")}, ${flow("h4-1-2", "h1-1-1")}]`],
    seeds: kOnce,
    target: 190,
    theirs: 176.8,
  },
  incast: {
    label: "incast of 15",
    set: ["traffic=[{pattern: incast, to: h4-2-2, degree: 15, bytes: 2MB, message: 2MB, priority: 0}]"],
    seeds: kOnce,
    target: 2550,
    theirs: 2478.5,
  },
  permutation: { label: "permutation", set: [], seeds: kSeeds, target: 210, theirs: 194.0 },
  slow: {
    label: "permutation, a link at a quarter",
    set: [
      "changes=[{switch: a1_1, port: c1, priority: 0, rate: 25Gbps}, {switch: c1, port: a1_1, priority: 0, rate: 25Gbps}]",
    ],
    seeds: kSeeds,
    target: 210,
    theirs: 238.2,
  },
  single: {
    label: "permutation, one path for each flow",
    set: ["transport.spraying=none"],
    seeds: kSeeds,
    target: 1300,
    theirs: 527.8,
  },
} as const satisfies Record<string, Run>;
type Name = keyof typeof kRuns;
const kNames = Object.keys(kRuns) as Name[];

const trialName = (name: Name, seed: number) => `${name}-${seed}`;
const kTrials: Trial[] = kNames.flatMap((name) =>
  kRuns[name].seeds.map((seed) => ({
    name: trialName(name, seed),
    file: UEC_FILE,
    set: [...kRuns[name].set, `seed=${seed}`],
  })),
);

type Seen = Readonly<Record<Name, readonly number[]>>;
const see = (runs: Runs): Seen =>
  byName(kNames, (name) =>
    kRuns[name].seeds.flatMap((seed) => {
      const run = runs[trialName(name, seed)];
      return run === undefined ? [] : [lastCompletion(run)];
    }),
  );

const worst = (name: Name) =>
  quantity(`${kRuns[name].label}: last completion, longest of all seeds`, "us", (seen: Seen) =>
    seen[name].length === 0 ? undefined : Math.max(...seen[name]),
  );

const target = (name: Name, experiment: string, cause?: Cause) =>
  statement(
    `${experiment}, tailFCT ${kRuns[name].target}`,
    "validate_uec_sender.txt",
    `${kRuns[name].label}: all flows are complete, the last after at most ${kRuns[name].target} us; theirs after ${kRuns[name].theirs} us`,
    [atMost(name, kRuns[name].target)],
    undefined,
    cause,
  );

export const UEC_TARGETS = studyOf<Seen>()({
  id: "uec-targets",
  paper: HTSIM,
  place: "validation",
  title: "completion of the last flow in uet-htsim's small validation runs",
  setup:
    "16 hosts in a fat tree of 100 Gb/s with NSCC, trimming and REPS: one flow of 2 MB, one each way, 15 to one, and permutations, of which one has a link at a quarter of its rate and one a path for each flow.",
  choices: [
    "Theirs spray by a mixture of REPS and a bitmap of bad paths and acknowledge four packets at a time; Weir has REPS alone, for which each packet is acknowledged.",
    "Who sends to whom in permutations, and paths: drawn by five seeds, of which the longest counts. Theirs is one run.",
    "4096 bytes take 4178 bytes of a link with Ethernet's preamble, gap and FCS, and 4150 for 4086 bytes in theirs.",
    "The slow link is slow for data alone; theirs for acknowledgements too, and its queue and thresholds are a quarter.",
  ],
  quantities: byName(kNames, worst),
  statements: [
    target("one", "Single Connection"),
    target("both", "Bidirectional Connection"),
    target("incast", "Small 16 node incast"),
    target("permutation", "Small permutation (16 nodes)"),
    target("slow", "Small permutation, INC (16 nodes)", SLOW_LINK_OF_THEIRS),
    target("single", "Small permutation, single path."),
  ],
  plots: (seen) => [
    plot(
      "Completion of the last flow",
      ["run", 0.5, 6.5],
      ["us (logarithm to base 10)", 2, 3.6],
      [
        {
          label: "uet-htsim",
          x: kNames.map((_, i) => i + 1),
          y: kNames.map((name) => Math.log10(kRuns[name].theirs)),
        },
        {
          label: "Weir, longest of all seeds",
          x: kNames.map((_, i) => i + 1),
          y: kNames.map((name) => Math.log10(Math.max(...seen[name]))),
        },
      ],
      { x_names: kNames.map((name, i) => ({ x: i + 1, label: kRuns[name].label })) },
    ),
  ],
  network: { clocks: ["sim"], trials: kTrials, see, sim_seconds: 4 },
});
