/** The queue in which N flows come to rest under patched TIMELY, and under DCQCN whose switch marks on entering or on leaving. */

import { between, describe, inUnits, queue } from "../../src/result/measure.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import { atLeast, atMost, byName, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { DCQCN, ECN_OR_DELAY, PATCHED } from "./paper.js";

const kFile = "ecn-or-delay/n-to-1.yaml";
const kQueue = "sw:h33:3";
const kSteady = 0.1;
const kEnd = 0.2;
const kLink = 10e9;

const kCounts = [2, 4, 8, 16, 32] as const;
type Count = (typeof kCounts)[number];

/** All mark in a line up to 10%, so that 32 flows have a fixed point below Kmax. */
const kMarks = [...DCQCN, "switch.ecn.pmax=10%"];
const kControls = {
  patched: { label: "patched TIMELY", set: PATCHED },
  entering: { label: "DCQCN, marked on entering", set: [...kMarks, "switch.ecn.mark=enqueue"] },
  leaving: { label: "DCQCN, marked on leaving", set: [...kMarks, "switch.ecn.mark=dequeue"] },
} as const;
type Control = keyof typeof kControls;
const kNames = namesOf(kControls);

const trialName = (control: Control, flows: Count) => `${control}-${flows}`;

const kTrials: Trial[] = kNames.flatMap((control) =>
  kCounts.map((flows) => ({
    name: trialName(control, flows),
    file: kFile,
    set: [
      ...kControls[control].set,
      `traffic.0.from=[${Array.from({ length: flows }, (_, i) => `h${i + 1}`).join(", ")}]`,
      `host.initial_rate=${10_000 / flows}Mbps`,
    ],
  })),
);

interface Figures {
  mean: number; // KB
  p99: number;
  used: number; // %
  jain: number;
}
type Seen = Readonly<Record<Control, ReadonlyMap<Count, Figures>>>;

function figures({ result: { totals }, series }: Evidence): Figures {
  const { mean = 0, p99 = 0 } = describe(between(inUnits(queue(series, kQueue), 1000), kSteady, kEnd)) ?? {};
  const { jain = 0, goodput_bps, goodput_limit_bps = Number.POSITIVE_INFINITY } = totals;
  return { mean, p99, jain, used: (100 * goodput_bps) / goodput_limit_bps };
}

const see = (runs: Runs): Seen =>
  byName(
    kNames,
    (control) =>
      new Map(
        kCounts.flatMap((flows) => {
          const run = runs[trialName(control, flows)];
          return run === undefined ? [] : [[flows, figures(run)] as const];
        }),
      ),
  );

/** Queue of the fixed point, KB: rates of C / N hold at RTT = t_low (1 + N delta / (beta C)), less what the path takes without one. */
const kRest = { t_low: 50e-6, delta: 10e6, beta: 0.008 };
const kGrowth = (kRest.t_low * kRest.delta) / (kRest.beta * kLink); // s for each flow
const kKilobytes = kLink / 8 / 1000; // a second of it

/** KB for each flow more, from 2 to 16. */
const slope = (seen: ReadonlyMap<Count, Figures>) => {
  const [few, many] = [seen.get(2), seen.get(16)];
  return few === undefined || many === undefined ? undefined : (many.mean - few.mean) / 14;
};

const curve = (seen: Seen, control: Control, figure: keyof Figures) => ({
  label: kControls[control].label,
  x: [...seen[control].keys()],
  y: [...seen[control].values()].map((one) => one[figure]),
});

export const ECN_OR_DELAY_QUEUE = studyOf<Seen>()({
  id: "ecn-or-delay-queue",
  paper: ECN_OR_DELAY,
  place: "abstract",
  title: "queue and use of a link by the number of flows",
  setup:
    "2, 4, 8, 16 and 32 flows of reliable WRITEs to one host, 10 Gb/s, each from its fair share: under patched TIMELY, and under DCQCN with marks on entering the queue and on leaving it. 200 ms, of which the second half counts.",
  choices: [
    "Only the abstract was at hand. Topology, numbers of flows and limits are ours.",
    "The limitation: who hears of delay alone has equal shares by a queue that grows with the number of flows; by the equation of the fixed point, t_low N delta / (beta C) of delay, 7.8 KB for each flow.",
    "The way that switches mark: on leaving, so that a mark tells of the queue as it is then, whatever it was when the packet came.",
    "DCQCN has the parameters of figure 14 of its paper with Pmax 10%: with 1% 16 and more flows have no fixed point below Kmax. DCQCN whose marks hold a queue at one length (by a PI controller) is not among Weir's.",
  ],
  quantities: {
    growth: quantity("patched TIMELY: queue for each flow more, from 2 to 16", "KB", ({ patched }) => slope(patched)),
    expected: quantity("that of the equation", "KB", ({ patched }) =>
      patched.size === 0 ? undefined : kGrowth * kKilobytes,
    ),
    off: quantity("difference of the two", "%", ({ patched }) => {
      const found = slope(patched);
      return found === undefined ? undefined : 100 * Math.abs(found / (kGrowth * kKilobytes) - 1);
    }),
    patched_jain: quantity("patched TIMELY: least Jain's index", "", ({ patched }) =>
      Math.min(...[...patched.values()].map((one) => one.jain)),
    ),
    entering_used: quantity(
      "DCQCN, marked on entering: use of the link, 32 flows",
      "%",
      ({ entering }) => entering.get(32)?.used,
    ),
    leaving_used: quantity(
      "DCQCN, marked on leaving: use of the link, 32 flows",
      "%",
      ({ leaving }) => leaving.get(32)?.used,
    ),
    entering_p99: quantity(
      "DCQCN, marked on entering: queue, p99, 32 flows",
      "KB",
      ({ entering }) => entering.get(32)?.p99,
    ),
    leaving_p99: quantity(
      "DCQCN, marked on leaving: queue, p99, 32 flows",
      "KB",
      ({ leaving }) => leaving.get(32)?.p99,
    ),
    gained: quantity("use of the link, on leaving less on entering, 32 flows", "%", ({ entering, leaving }) => {
      const [before, after] = [entering.get(32), leaving.get(32)];
      return before === undefined || after === undefined ? undefined : after.used - before.used;
    }),
    shorter: quantity("p99 of the queue, on leaving / on entering, 32 flows", "", ({ entering, leaving }) => {
      const [before, after] = [entering.get(32), leaving.get(32)];
      return before === undefined || after === undefined ? undefined : after.p99 / before.p99;
    }),
  },
  statements: [
    statement(
      "a fundamental limitation of end-to-end delay-based protocols, that we derive",
      "abstract",
      "patched TIMELY has equal shares (Jain's index at least 0.99), and its queue grows by what the equation says for each flow, to 5%",
      [atLeast("patched_jain", 0.99), atMost("off", 5)],
    ),
    statement(
      "We argue that ECN is a better congestion signal, due to the way modern switches mark packets",
      "abstract",
      "with 32 flows of DCQCN marks on leaving use 5% more of the link than marks on entering, with a p99 of the queue that is at most as long",
      [atLeast("gained", 5), atMost("shorter", 1)],
    ),
  ],
  plots: (seen) => [
    plot(
      "Queue, mean",
      ["flows", 0, 33],
      ["queue, KB", 0, 320],
      kNames.map((control) => curve(seen, control, "mean")),
    ),
    plot(
      "Queue, p99",
      ["flows", 0, 33],
      ["queue, KB", 0, 520],
      kNames.map((control) => curve(seen, control, "p99")),
    ),
    plot(
      "Use of the link",
      ["flows", 0, 33],
      ["of what headers leave, %", 60, 101],
      kNames.map((control) => curve(seen, control, "used")),
    ),
  ],
  network: { clocks: ["sim"], trials: kTrials, see, sim_seconds: 8 },
});
