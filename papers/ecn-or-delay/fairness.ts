/** Two flows from equal and unequal starts under TIMELY, its patched form and DCQCN: what their shares come to. */

import { inUnits, overMilliseconds, rates } from "../../src/result/measure.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  caseFirst,
  grid,
  namesOf,
  plot,
  quantity,
  type Runs,
  statement,
  studyOf,
} from "../engine/study.js";
import { DCQCN, ECN_OR_DELAY, PATCHED } from "./paper.js";

const kFile = "ecn-or-delay/two-flows.yaml";
const kEnd = 200; // ms

const kControls = {
  timely: { label: "TIMELY", set: [] },
  patched: { label: "patched TIMELY", set: PATCHED },
  dcqcn: { label: "DCQCN", set: DCQCN },
} as const;
type Control = keyof typeof kControls;
const kNames = namesOf(kControls);

/** Rates at the start, Gb/s. */
const kStarts = [
  [5, 5],
  [7, 3],
  [9, 1],
] as const;
type Start = (typeof kStarts)[number];

const trialName = (control: Control, [first]: Start) => `${control}-${first}`;

const kTrials: Trial[] = kNames.flatMap((control) =>
  kStarts.map((start) => ({
    name: trialName(control, start),
    file: kFile,
    set: [...kControls[control].set, ...start.map((gbps, i) => `topology.hosts.h${i + 1}.initial_rate=${gbps}Gbps`)],
  })),
);

/** Returns the runs of each start. */
const runsOf = (runs: Runs, control: Control) => {
  const own = kStarts.flatMap((start) => runs[trialName(control, start)] ?? []);
  return own.length === 0 ? undefined : own;
};

const jain = ({ result }: Evidence) => result.totals.jain ?? 0;
const first = ({ result: { flows } }: Evidence) => {
  const [one = 0, other = 0] = flows.map(({ goodput_bps }) => goodput_bps);
  return (100 * one) / (one + other);
};
const used = ({ result: { totals } }: Evidence) =>
  totals.goodput_limit_bps === undefined ? 0 : (100 * totals.goodput_bps) / totals.goodput_limit_bps;

export const ECN_OR_DELAY_FAIRNESS = studyOf<Runs>()({
  id: "ecn-or-delay-fairness",
  paper: ECN_OR_DELAY,
  place: "abstract",
  title: "shares of two flows, by how they began",
  setup:
    "Two flows of reliable WRITEs share a link of 10 Gb/s, once each from 5 and 5, 7 and 3, and 9 and 1 Gb/s: under TIMELY, its patched form, and DCQCN. 200 ms, of which the second half counts.",
  choices: [
    "Only the abstract was at hand. Topology, starts and limits are ours.",
    "Arbitrary unfairness: for some start Jain's index is 0.9 or less, and shares of the first flow differ by 10 points or more among starts.",
    "Fair share: Jain's index at least 0.99 for every start.",
    "DCQCN has the parameters of figure 14 of its paper, which are for 40 Gb/s: at 10 Gb/s they leave a part of the link unused.",
  ],
  quantities: grid(
    kNames,
    runsOf,
    (label, name) => `${kControls[name].label}: ${label}`,
  )(
    {
      least_jain: quantity("least Jain's index of all starts", "", (own: readonly Evidence[]) =>
        Math.min(...own.map(jain)),
      ),
      apart: quantity("shares of the first flow, most less least of all starts", "%", (own: readonly Evidence[]) => {
        const shares = own.map(first);
        return Math.max(...shares) - Math.min(...shares);
      }),
      used: quantity("of what headers leave, least of all starts", "%", (own: readonly Evidence[]) =>
        Math.min(...own.map(used)),
      ),
    },
    caseFirst,
  ),
  statements: [
    statement(
      "TIMELY can converge to stable regime with arbitrary unfairness",
      "abstract",
      "for some start Jain's index is at most 0.9, and where two flows end depends on where they began",
      [atMost("timely_least_jain", 0.9), atLeast("timely_apart", 10)],
    ),
    statement(
      "We propose simple fixes and tuning for ensuring that both protocols converge to and are stable at the fair share point.",
      "abstract",
      "with the patched form of TIMELY, and with DCQCN, Jain's index is at least 0.99 from every start",
      [atLeast("patched_least_jain", 0.99), atLeast("dcqcn_least_jain", 0.99)],
    ),
  ],
  plots: (runs) =>
    kNames.flatMap((control) => {
      const all = kStarts.flatMap((start) => {
        const run = runs[trialName(control, start)];
        return run === undefined ? [] : [{ start, run }];
      });
      return plot(
        `${kControls[control].label}: rates of both flows`,
        ["time, ms", 0, kEnd],
        ["rate, Gb/s", 0, 10.5],
        all.flatMap(({ start, run }) =>
          Object.values(rates(run.series)).map((one, i) => ({
            label: `from ${start[i]} of ${start.join(" and ")}`,
            ...overMilliseconds(inUnits(one, 1e9)),
          })),
        ),
        { levels: [{ label: "fair share", value: 5 }] },
      );
    }),
  network: { clocks: ["wire", "sim"], trials: kTrials, see: (runs) => runs, sim_seconds: 4 },
});
