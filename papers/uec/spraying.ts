/** Completion of a permutation's last flow by the way that packets are spread: in a whole fabric, with slow links, with one that fails. */

import type { Trial } from "../engine/experiment.js";
import { atLeast, atMost, byName, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { TIMEOUT_FIRST } from "./causes.js";
import { REPS, UEC_FILE } from "./papers.js";
import { lastCompletion } from "./runs.js";

const kWays = { none: "ECMP", oblivious: "oblivious spraying", reps: "REPS" } as const;
type Way = keyof typeof kWays;
const kWayNames = Object.keys(kWays) as Way[];

/** All links of one aggregation switch to cores, both directions. */
const kSlow = [1, 2, 3, 4].flatMap((core) => [
  `{switch: a1_1, port: c${core}, priority: 0, rate: 25Gbps}`,
  `{switch: c${core}, port: a1_1, priority: 0, rate: 25Gbps}`,
]);
const kStates = {
  whole: { label: "whole", set: [] },
  slow: { label: "four links at a quarter", set: [`changes=[${kSlow.join(", ")}]`] },
  broken: {
    label: "a link fails",
    set: ["failures=[{link: a1_1 -- c1, at: 50us, reroute: 10ms}]"],
  },
} as const;
type State = keyof typeof kStates;
const kStateNames = Object.keys(kStates) as State[];

const trialName = (state: State, way: Way) => `${state}-${way}`;
const kTrials: Trial[] = kStateNames.flatMap((state) =>
  kWayNames.map((way) => ({
    name: trialName(state, way),
    file: UEC_FILE,
    set: ["topology.k=8", `transport.spraying=${way}`, ...kStates[state].set],
  })),
);

type Seen = Readonly<Record<State, Partial<Record<Way, number>>>>;
const see = (runs: Runs): Seen =>
  byName(kStateNames, (state) =>
    Object.fromEntries(
      kWayNames.flatMap((way) => {
        const run = runs[trialName(state, way)];
        return run === undefined ? [] : [[way, lastCompletion(run)]];
      }),
    ),
  );

const last = (state: State, way: Way) =>
  quantity(`${kWays[way]}, ${kStates[state].label}: last completion`, "us", (seen: Seen) => seen[state][way]);

/** Part by which it takes longer than in the whole fabric, %. */
const longer = (way: Way) =>
  quantity(`${kWays[way]}: longer with slow links by`, "%", ({ whole, slow }: Seen) => {
    const [before, after] = [whole[way], slow[way]];
    return before === undefined || after === undefined ? undefined : 100 * (after / before - 1);
  });

/** Part by which REPS's is shorter in the whole fabric, %. */
const shorter = (way: Way) =>
  quantity(`REPS: shorter than ${kWays[way]} by`, "%", ({ whole }: Seen) =>
    whole[way] === undefined || whole.reps === undefined ? undefined : 100 * (1 - whole.reps / whole[way]),
  );

const later = (way: Way) =>
  quantity(`${kWays[way]}: later with the failure by`, "us", ({ whole, broken }: Seen) => {
    const [before, after] = [whole[way], broken[way]];
    return before === undefined || after === undefined ? undefined : after - before;
  });

export const UEC_SPRAYING = studyOf<Seen>()({
  id: "uec-reps",
  paper: REPS,
  place: "abstract",
  title: "REPS, oblivious spraying and ECMP in a fabric that is whole, slow in part, or broken",
  setup:
    "128 hosts in a fat tree of 100 Gb/s with NSCC and trimming, 2 MB from each to one other: in the whole fabric, with the four links of one aggregation switch to cores at 25 Gb/s, and with one of these that fails after 50 us, which switches do not learn.",
  choices: [
    "Only the abstract was at hand. Topology, traffic and limits are ours; slow links are those of uet-htsim's validation runs.",
    "Struggle: the last flow takes at least 5% longer than with REPS.",
    "Adapts: slow links lengthen the last flow by less than a half as much as with oblivious spraying.",
    "Re-routes in less than 100 us: the last flow is complete less than 100 us later than without the failure.",
  ],
  quantities: {
    whole_none: last("whole", "none"),
    whole_oblivious: last("whole", "oblivious"),
    whole_reps: last("whole", "reps"),
    slow_oblivious: last("slow", "oblivious"),
    slow_reps: last("slow", "reps"),
    broken_none: last("broken", "none"),
    broken_oblivious: last("broken", "oblivious"),
    broken_reps: last("broken", "reps"),
    than_none: shorter("none"),
    than_oblivious: shorter("oblivious"),
    longer_oblivious: longer("oblivious"),
    longer_reps: longer("reps"),
    adapted: quantity("of what slow links add with oblivious spraying, with REPS", "%", ({ whole, slow }: Seen) => {
      const added = (way: Way) => (slow[way] ?? Number.NaN) - (whole[way] ?? Number.NaN);
      const share = (100 * added("reps")) / added("oblivious");
      return Number.isNaN(share) ? undefined : share;
    }),
    later_reps: later("reps"),
  },
  statements: [
    statement(
      "Equal Cost Multi-Path (ECMP) and oblivious packet spraying (OPS), struggle to maintain high network utilization",
      "abstract",
      "in the whole fabric the last flow is complete at least 5% sooner with REPS than with either",
      [atLeast("than_none", 5), atLeast("than_oblivious", 5)],
    ),
    statement(
      "REPS adapts to network conditions by caching good-performing paths.",
      "abstract",
      "slow links add less than half as much to the last completion with REPS as with oblivious spraying",
      [atMost("adapted", 50)],
    ),
    statement(
      "In case of a network failure, REPS re-routes traffic away from it in less than 100 microseconds.",
      "abstract",
      "the last flow is complete less than 100 us later than without the failure",
      [atMost("later_reps", 100)],
      "Nothing is trimmed on a dead link. So a flow hears of it by its local ACK timeout alone, 131 us here (65 us is the next that RoCEv2 has), and by two of them where the last of its acknowledgements is lost there, too.",
      TIMEOUT_FIRST,
    ),
  ],
  plots: (seen) => [
    plot(
      "Completion of the last flow",
      ["fabric", 0.5, 3.5],
      ["us (logarithm to base 10)", 2, 4],
      kWayNames.map((way) => {
        const all = kStateNames.map((state, i) => ({ x: i + 1, y: seen[state][way] ?? Number.NaN }));
        const found = all.filter(({ y }) => Number.isFinite(y));
        return { label: kWays[way], x: found.map(({ x }) => x), y: found.map(({ y }) => Math.log10(y)) };
      }),
      { x_names: kStateNames.map((state, i) => ({ x: i + 1, label: kStates[state].label })) },
    ),
  ],
  network: { clocks: ["sim"], trials: kTrials, see, sim_seconds: 8 },
});
