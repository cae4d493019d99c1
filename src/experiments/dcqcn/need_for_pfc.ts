/**
 * Figure 18 of the DCQCN paper, section 6.2: the 10th percentile of users and of an incast of degree 8 without PFC, and with
 * thresholds that let PFC act before packets are marked.
 */
import { mean, sum } from "simple-statistics";
import type { Evidence, Experiment, Observation, Quantity } from "../experiment.js";
import { benchmark, kBenchmarkChoices, shares, spinePauses } from "./benchmark.js";
import { DCQCN_PAPER } from "./paper.js";
import { higher, kLink, lower, repeats } from "./testbed.js";

const kDegree = 8;
const kWhere = "section 6.2";

const kStatic = ["switch.buffer.mode=static", "switch.buffer.threshold=24.47KB"];

const kConfigurations = [
  { name: "pfc", label: "PFC only", set: ["congestion.algorithm=none"] },
  {
    name: "long",
    label: "DCQCN, no PFC, queues up to half of the buffer",
    set: ["switch.pfc.enabled=false", "switch.buffer.lossy_alpha=1"],
  },
  {
    name: "short",
    label: "DCQCN, no PFC, queues up to 1/65 of the buffer",
    set: ["switch.pfc.enabled=false", "switch.buffer.lossy_alpha=0.015625"],
  },
  { name: "wrong", label: "DCQCN, wrong thresholds", set: [...kStatic, "switch.ecn.kmin=120KB"] },
  { name: "wrong_pfc", label: "PFC only, the same t_PFC", set: [...kStatic, "congestion.algorithm=none"] },
  { name: "dcqcn", label: "DCQCN", set: [] },
] as const;
type Configuration = (typeof kConfigurations)[number]["name"];

const kQuantities: Record<string, Quantity> = {
  ...Object.fromEntries(
    kConfigurations.flatMap(({ name, label }): [string, Quantity][] => [
      [`users_${name}`, { label: `users, 10th percentile, ${label}`, unit: "Gb/s" }],
      [`incast_${name}`, { label: `incast, 10th percentile, ${label}`, unit: "Gb/s" }],
      [`again_${name}`, { label: `packets sent again, ${label}`, unit: "%" }],
      [`marked_${name}`, { label: `marks per data packet, ${label}`, unit: "%" }],
      [`pauses_${name}`, { label: `PFC frames at S1 and S2, ${label}`, unit: "per s" }],
    ]),
  ),
  ...Object.fromEntries(
    (["users", "incast"] as const).flatMap((who): [string, Quantity][] => [
      [`${who}_long_dcqcn`, { label: `${who}, DCQCN without PFC (half) / with PFC`, unit: "" }],
      [`${who}_short_dcqcn`, { label: `${who}, DCQCN without PFC (1/65) / with PFC`, unit: "" }],
      [`${who}_wrong_pfc_only`, { label: `${who}, wrong thresholds / PFC only`, unit: "" }],
      [`${who}_wrong_dcqcn`, { label: `${who}, wrong thresholds / DCQCN`, unit: "" }],
    ]),
  ),
  marked_ratio: { label: "marks, wrong thresholds / DCQCN", unit: "" },
};

const kNoPfc =
  "How long a queue may grow without PFC, the paper does not say. By default it may take half of the buffer: nothing is lost, and these are the runs of DCQCN with PFC. At 1/65 of it, 107 to 116 KB, losses persist and both fall to nearly nothing, as in the paper.";

export const DCQCN_FIGURE_18: Experiment = {
  id: "dcqcn-fig18",
  paper: DCQCN_PAPER,
  place: "figure 18",
  title: "need for PFC, and for correct thresholds",
  setup: `20 pairs of random hosts and an incast of degree ${kDegree} on the testbed, five seeds each: with PFC alone, DCQCN alone, DCQCN and PFC with wrong thresholds, and both as they should be.`,
  choices: [
    ...kBenchmarkChoices,
    "Without PFC a queue may take lossy_alpha times what is free of the buffer: with 1 half of it, with 1/64 one part of 65. The paper does not say what its switches allow, so there are both.",
    "Wrong thresholds are a static t_PFC of 24.47 KB and t_ECN of 120 KB. The paper calls Kmin t_ECN; Kmax and Pmax stay 200 KB and 1%.",
    "PFC alone with the same static t_PFC is not in the paper: it shows what that t_PFC does by itself.",
  ],
  quantities: kQuantities,
  statements: [
    {
      quote: "Without PFC, packet losses are common, and this leads to poor performance.",
      where: kWhere,
      reading:
        "DCQCN without PFC, for both limits of a queue: 1% of all packets are sent again or more, and users and incast get less than with PFC",
      checks: (["long", "short"] as const).flatMap((limit) => [
        { quantity: `again_${limit}`, min: 1 },
        lower(`users_${limit}_dcqcn`),
        lower(`incast_${limit}_dcqcn`),
      ]),
      remark: kNoPfc,
    },
    {
      quote:
        "In fact, the 10th percentile incast throughput is zero - indicating that some of the flows are simply unable to recover from persistent packet losses.",
      where: kWhere,
      reading: "DCQCN without PFC, for both limits of a queue: 1% of 40 Gb/s / 8 or less",
      checks: (["long", "short"] as const).map((limit) => ({
        quantity: `incast_${limit}`,
        max: (0.01 * kLink) / kDegree,
      })),
      remark: kNoPfc,
    },
    {
      quote:
        "With these thresholds, PFC may be triggered before ECN - thus preventing the full benefit of DCQCN. We see that this is indeed the case.",
      where: kWhere,
      reading:
        "with wrong thresholds spines receive PFC frames, and packets are marked half as often as with the right ones, or less",
      checks: [
        { quantity: "pauses_wrong", min: 1 },
        { quantity: "marked_ratio", max: 0.5 },
      ],
    },
    {
      quote:
        "The tail throughput of both user and incast traffic is better than what it would be without DCQCN (i.e. with PFC only), but worse than what it would be with DCQCN.",
      where: kWhere,
      reading: "10th percentiles with wrong thresholds, and those of the other two",
      checks: [
        higher("users_wrong_pfc_only"),
        higher("incast_wrong_pfc_only"),
        lower("users_wrong_dcqcn"),
        lower("incast_wrong_dcqcn"),
      ],
      remark:
        "The incast fares as with PFC alone. Next to no packet is marked, so DCQCN has no part in it: PFC alone with the same static t_PFC gives the same. What helps the users is that a low t_PFC keeps queues short.",
    },
  ],
  network: {
    clocks: ["sim"],
    trials: kConfigurations.flatMap(({ name, set }) => benchmark(name, [`traffic.1.degree=${kDegree}`, ...set])),
    observe,
    sim_seconds: 52,
  },
};

function observe(runs: Readonly<Record<string, Evidence>>): Observation {
  const found = new Map(kConfigurations.map(({ name }) => [name, figures(repeats(runs, name))]));
  const of = (name: Configuration) => found.get(name) as ReturnType<typeof figures>;
  const ratio = (who: "users" | "incast", a: Configuration, b: Configuration) => of(a)[who] / of(b)[who];
  const values = kConfigurations.flatMap(({ name }) =>
    Object.entries(of(name)).map(([what, value]): [string, number] => [`${what}_${name}`, value]),
  );
  const ratios = (["users", "incast"] as const).flatMap((who): [string, number][] => [
    [`${who}_long_dcqcn`, ratio(who, "long", "dcqcn")],
    [`${who}_short_dcqcn`, ratio(who, "short", "dcqcn")],
    [`${who}_wrong_pfc_only`, ratio(who, "wrong", "pfc")],
    [`${who}_wrong_dcqcn`, ratio(who, "wrong", "dcqcn")],
  ]);
  const places = kConfigurations.map((_, i) => i);
  return {
    values: {
      ...Object.fromEntries([...values, ...ratios]),
      marked_ratio: of("wrong").marked / of("dcqcn").marked,
    },
    plots: [
      {
        title: "10th percentile of throughput, incast of degree 8",
        x_label: "",
        y_label: "throughput, Gb/s",
        x_names: places.map((x) => ({
          x,
          label: ["PFC only", "no PFC, 1/2", "no PFC, 1/65", "wrong", "PFC, wrong", "DCQCN"][x] as string,
        })),
        curves: (["users", "incast"] as const).map((who) => ({
          label: who,
          kind: "bars" as const,
          x: places,
          y: kConfigurations.map(({ name }) => of(name)[who]),
        })),
        levels: [{ label: "40 Gb/s / 8", value: kLink / kDegree }],
      },
    ],
  };
}

/** Means over the seeds: Gb/s, % of all data packets, frames per second. */
function figures(runs: readonly Evidence[]) {
  const { users_p10, incast_p10 } = shares(runs);
  const packets = (of: (run: Evidence) => number) =>
    mean(runs.map((run) => (100 * of(run)) / sum(run.result.flows.map((flow) => flow.packets))));
  return {
    users: users_p10,
    incast: incast_p10,
    again: packets(({ result }) => result.transport?.retransmitted ?? 0),
    marked: packets(({ result }) => sum(Object.values(result.switches).map(({ ecn_marked }) => ecn_marked))),
    pauses: spinePauses(runs),
  };
}
