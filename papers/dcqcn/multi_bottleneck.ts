/**
 * Figure 20 of the DCQCN paper, section 7: f1 and f2 share an uplink, f2 and f3 a receiver. The flow with two bottlenecks under
 * marking that cuts off, as DCTCP has it, and under marking like RED.
 */
import { mean } from "simple-statistics";
import type { Evidence, Trial } from "../engine/experiment.js";
import { byName, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { dcqcnFigure } from "./paper.js";
import { higher, kRates, kStream, kWords, linkRates, lower, repeated, repeats, whiskers } from "./testbed.js";

const kFile = "dcqcn/multi-bottleneck.yaml";
const kSeeds = 5;
const kFlows = ["f1", "f2", "f3"] as const;
/** Max-min fair, Gb/s. */
const kFair = 20;
const kWhere = "section 7";

const kMarkings = {
  cut: { label: "all above 40 KB", set: ["switch.ecn.kmin=40KB", "switch.ecn.kmax=40KB", "switch.ecn.pmax=1"] },
  red: { label: "5 to 200 KB, 1%", set: [] },
} as const;
const kNames = namesOf(kMarkings);
type Marking = keyof typeof kMarkings;
type Flow = (typeof kFlows)[number];

/** Figures with one marking: rates in all runs and their mean, Gb/s, and CNPs to f1 / to f2. */
interface Marked {
  rates: Readonly<Record<Flow, readonly number[]>>;
  means: Readonly<Record<Flow, number>>;
  cnps: number;
}
type Seen = Readonly<Record<Marking, Marked>>;

export const DCQCN_FIGURE_20 = studyOf<Seen>()({
  ...dcqcnFigure(20),
  title: "a flow with two bottlenecks",
  setup:
    "On the testbed, f1 and f2 share an uplink of T1, f2 and f3 the link of R2. Marking of all packets above 40 KB, and from 5 to 200 KB with up to 1%, five seeds each.",
  choices: [
    kWords,
    kRates,
    "The threshold of the cut-off is not given here; it is that of section 5.2, 40 KB.",
    "A run takes 200 ms, of which 50 ms are warm-up. The wire has one seed.",
    "Flows are streams without acknowledgements, on both clocks.",
  ],
  quantities: {
    ...grid(
      kNames,
      (seen: Seen, name) => seen[name],
      (label, name) => `${label}, ${kMarkings[name].label}`,
    )({
      f1: quantity("f1", "Gb/s", ({ means }) => means.f1),
      f2: quantity("f2", "Gb/s", ({ means }) => means.f2),
      f3: quantity("f3", "Gb/s", ({ means }) => means.f3),
      lag: quantity("f2 / lower of f1 and f3", "", ({ means: { f1, f2, f3 } }) => f2 / Math.min(f1, f3)),
      cnps: quantity("CNPs to f1 / CNPs to f2", "", ({ cnps }) => cnps),
    }),
    gain: quantity("f2, 5 to 200 KB / all above 40 KB", "", ({ red, cut }) => red.means.f2 / cut.means.f2),
    cnp_shift: quantity(
      "CNPs to f1 / CNPs to f2, 5 to 200 KB / all above 40 KB",
      "",
      ({ red, cut }) => red.cnps / cut.cnps,
    ),
  },
  statements: [
    statement(
      'However, with common congestion control protocols like DCTCP, the flow with two bottleneck gets lower throughput because it has higher probability of getting congestion signal. DCQCN, if used with DCTCP-like "cut-off" marking (Kmin = Kmax, Pmax = 1, see Figure 5) has the same problem.',
      kWhere,
      "with the cut-off, f2 gets less than either of the others",
      [lower("lag_cut")],
    ),
    statement(
      "The problem can be mitigated (but not completely solved) using a less abrupt, RED-like marking scheme (see parameters in Table 14).",
      kWhere,
      "with marking from 5 to 200 KB, f2 gets more than with the cut-off, and still less than either of the others",
      [higher("gain"), lower("lag_red")],
    ),
    statement(
      "CNP generation is driven by a timer, so with RED-like packet marking, we increase the probability that the faster flow will get more CNPs.",
      kWhere,
      "CNPs to f1, the faster one, as a multiple of those to f2, are more than with the cut-off",
      [higher("cnp_shift")],
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: kNames.flatMap((name) =>
      repeated(name, { file: kFile, set: [...kMarkings[name].set, kStream] }, kSeeds).map(
        (trial, i): Trial => (i === 0 ? trial : { ...trial, clocks: ["sim"] }),
      ),
    ),
    see: (runs) => ({ cut: marked(runs, "cut"), red: marked(runs, "red") }),
    sim_seconds: 8,
  },
  plots: (seen) => [
    plot(
      "Throughput of the three flows",
      ["flow"],
      ["throughput, Gb/s", 0, 40],
      kNames.map((name) => {
        const { rates } = seen[name];
        return whiskers(
          kMarkings[name].label,
          kFlows.map((_, i) => i),
          kFlows.map((flow) => rates[flow]),
        );
      }),
      { x_names: kFlows.map((label, x) => ({ x, label })), levels: [{ label: "max-min fair", value: kFair }] },
    ),
  ],
});

function marked(all: Runs, marking: Marking): Marked {
  const runs = repeats(all, marking);
  const rates = byName(kFlows, (flow) => runs.map((run) => mean(linkRates(run, flow))));
  return {
    rates,
    means: byName(kFlows, (flow) => mean(rates[flow])),
    cnps: mean(runs.map((run) => cnpsOf(run, "f1") / Math.max(1, cnpsOf(run, "f2")))),
  };
}

function cnpsOf({ result }: Evidence, flow: string): number {
  return result.flows.find(({ id }) => id === flow)?.cnp_handled ?? 0;
}
