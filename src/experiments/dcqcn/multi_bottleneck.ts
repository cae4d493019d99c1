/**
 * Figure 20 of the DCQCN paper, section 7: f1 and f2 share an uplink, f2 and f3 a receiver. The flow with two bottlenecks under
 * marking that cuts off, as DCTCP has it, and under marking like RED.
 */
import { mean } from "simple-statistics";
import type { Evidence, Experiment, Observation, Quantity, Trial } from "../experiment.js";
import { DCQCN_PAPER } from "./paper.js";
import { higher, kRates, kStream, kWords, linkRates, lower, repeated, repeats, whiskers } from "./testbed.js";

const kFile = "dcqcn/multi-bottleneck.yaml";
const kSeeds = 5;
const kFlows = ["f1", "f2", "f3"] as const;
/** Max-min fair, Gb/s. */
const kFair = 20;
const kWhere = "section 7";

const kMarkings = [
  { name: "cut", label: "all above 40 KB", set: ["switch.ecn.kmin=40KB", "switch.ecn.kmax=40KB", "switch.ecn.pmax=1"] },
  { name: "red", label: "5 to 200 KB, 1%", set: [] },
] as const;
type Marking = (typeof kMarkings)[number]["name"];

const kQuantities: Record<string, Quantity> = {
  ...Object.fromEntries(
    kMarkings.flatMap(({ name, label }): [string, Quantity][] => [
      ...kFlows.map((flow): [string, Quantity] => [`${flow}_${name}`, { label: `${flow}, ${label}`, unit: "Gb/s" }]),
      [`lag_${name}`, { label: `f2 / lower of f1 and f3, ${label}`, unit: "" }],
      [`cnps_${name}`, { label: `CNPs to f1 / CNPs to f2, ${label}`, unit: "" }],
    ]),
  ),
  gain: { label: "f2, 5 to 200 KB / all above 40 KB", unit: "" },
  cnp_shift: { label: "CNPs to f1 / CNPs to f2, 5 to 200 KB / all above 40 KB", unit: "" },
};

export const DCQCN_FIGURE_20: Experiment = {
  id: "dcqcn-fig20",
  paper: DCQCN_PAPER,
  place: "figure 20",
  title: "a flow with two bottlenecks",
  setup:
    "On the testbed, f1 and f2 share an uplink of T1, f2 and f3 the link of R2. Marking of all packets above 40 KB, and from 5 to 200 KB with up to 1%, five seeds each.",
  choices: [
    kWords,
    kRates,
    "The threshold of the cut-off is not given here; it is that of section 5.2, 40 KB.",
    "A run takes 200 ms, of which 50 ms are warm-up. The wire has one seed.",
    "Flows are streams without acknowledgements, as labs have no others.",
  ],
  quantities: kQuantities,
  statements: [
    {
      quote:
        'However, with common congestion control protocols like DCTCP, the flow with two bottleneck gets lower throughput because it has higher probability of getting congestion signal. DCQCN, if used with DCTCP-like "cut-off" marking (Kmin = Kmax, Pmax = 1, see Figure 5) has the same problem.',
      where: kWhere,
      reading: "with the cut-off, f2 gets less than either of the others",
      checks: [lower("lag_cut")],
    },
    {
      quote:
        "The problem can be mitigated (but not completely solved) using a less abrupt, RED-like marking scheme (see parameters in Table 14).",
      where: kWhere,
      reading:
        "with marking from 5 to 200 KB, f2 gets more than with the cut-off, and still less than either of the others",
      checks: [higher("gain"), lower("lag_red")],
    },
    {
      quote:
        "CNP generation is driven by a timer, so with RED-like packet marking, we increase the probability that the faster flow will get more CNPs.",
      where: kWhere,
      reading: "CNPs to f1, the faster one, as a multiple of those to f2, are more than with the cut-off",
      checks: [higher("cnp_shift")],
    },
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: kMarkings.flatMap(({ name, set }) =>
      repeated(name, { file: kFile, set: [...set, kStream] }, kSeeds).map(
        (trial, i): Trial => (i === 0 ? trial : { ...trial, clocks: ["sim"] }),
      ),
    ),
    observe,
    sim_seconds: 8,
  },
};

function observe(runs: Readonly<Record<string, Evidence>>): Observation {
  const rates = (marking: Marking) =>
    kFlows.map((flow) => repeats(runs, marking).map((run) => mean(linkRates(run, flow))));
  const means = (marking: Marking) => rates(marking).map((of) => mean(of)) as [number, number, number];
  const lag = ([f1, f2, f3]: readonly [number, number, number]) => f2 / Math.min(f1, f3);
  const cnps = (marking: Marking) =>
    mean(repeats(runs, marking).map((run) => cnpsOf(run, "f1") / Math.max(1, cnpsOf(run, "f2"))));
  const each = kMarkings.flatMap(({ name }): [string, number][] => [
    ...means(name).map((rate, i): [string, number] => [`${kFlows[i]}_${name}`, rate]),
    [`lag_${name}`, lag(means(name))],
    [`cnps_${name}`, cnps(name)],
  ]);
  const places = kFlows.map((_, i) => i);
  return {
    values: {
      ...Object.fromEntries(each),
      gain: means("red")[1] / means("cut")[1],
      cnp_shift: cnps("red") / cnps("cut"),
    },
    plots: [
      {
        title: "Throughput of the three flows",
        x_label: "flow",
        y_label: "throughput, Gb/s",
        x_names: kFlows.map((label, x) => ({ x, label })),
        y_range: [0, 40],
        curves: kMarkings.map(({ name, label }) => whiskers(label, places, rates(name))),
        levels: [{ label: "max-min fair", value: kFair }],
      },
    ],
  };
}

function cnpsOf({ result }: Evidence, flow: string): number {
  return result.flows.find(({ id }) => id === flow)?.cnp_handled ?? 0;
}
