/** Whole iterations of training by PFC alone and under four congestion controls. */
import { networkCounts } from "../../src/result/counts.js";
import { median } from "../../src/result/statistics.js";
import type { Trial } from "../engine/experiment.js";
import { atMost, byName, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { INITIAL_WINDOW } from "./causes.js";
import { CLUSTER, COMMON_CHOICES, CONTROLS, type Control, KHAN, SCHEMES, SEEDS } from "./paper.js";

const kWorkloads = {
  resnet: { label: "ResNet-50", file: "resnet-50.txt", seeds: SEEDS.slice(0, 1) },
  dlrm: { label: "DLRM", file: "dlrm.txt", seeds: SEEDS },
} as const;
type Workload = keyof typeof kWorkloads;
const kWorkloadNames = namesOf(kWorkloads);
const kControlNames = namesOf(CONTROLS);

const trialName = (workload: Workload, control: Control, seed: number) => `${workload}-${control}-${seed}`;
const kTrials: Trial[] = kWorkloadNames.flatMap((workload) =>
  kControlNames.flatMap((control) =>
    kWorkloads[workload].seeds.map((seed) => ({
      name: trialName(workload, control, seed),
      file: CLUSTER,
      set: [
        `traffic=[{id: job, pattern: graph, file: ${kWorkloads[workload].file}}]`,
        ...CONTROLS[control].set,
        `seed=${seed}`,
      ],
    })),
  ),
);

interface Figures {
  /** Of the iteration, ms; Infinity: it has not ended. */
  time: number;
  /** Calculation of a rank in it, ms. */
  calculation: number;
  pauses: number;
}
type OfControls = Partial<Record<Control, Figures>>;
type Seen = Readonly<Record<Workload, OfControls>>;

function typical(runs: Runs, workload: Workload, control: Control): Figures | undefined {
  const found = kWorkloads[workload].seeds.flatMap((seed) => {
    const run = runs[trialName(workload, control, seed)];
    const [graph] = run?.result.graphs ?? [];
    if (run === undefined || graph === undefined) return [];
    const time = 1e3 * (graph.time_s ?? Number.POSITIVE_INFINITY);
    return [{ time, calculation: 1e3 * graph.calculation_s, pauses: networkCounts(run.result).pfc_sent }];
  });
  if (found.length === 0) return undefined;
  const of = (name: keyof Figures) => median(found.map((one) => one[name]));
  return { time: of("time"), calculation: of("calculation"), pauses: of("pauses") };
}

const see = (runs: Runs): Seen =>
  byName(
    kWorkloadNames,
    (workload): OfControls =>
      Object.fromEntries(
        kControlNames.flatMap((control) => {
          const found = typical(runs, workload, control);
          return found === undefined ? [] : [[control, found]];
        }),
      ),
  );

/** Part by which an iteration differs from that with PFC alone, %, whichever is shorter. */
const differs = (control: Control) => (seen: OfControls) => {
  const [alone, under] = [seen.none?.time, seen[control]?.time];
  return alone === undefined || under === undefined ? undefined : 100 * Math.abs(under / alone - 1);
};

const kLittle = 10; // %

export const TRAINING_ITERATIONS = studyOf<Seen>()({
  id: "training-iterations",
  paper: KHAN,
  place: "abstract",
  title: "iterations of ResNet-50 and DLRM under four congestion controls and by PFC alone",
  setup:
    "128 GPUs in 16 servers. One iteration each of ResNet-50, whose gradients all GPUs all-reduce while they calculate those of the layers before, and of DLRM, which also has an all-to-all of embeddings forward and one backward: with PFC alone and with DCQCN, DCTCP, TIMELY and HPCC.",
  choices: [
    ...COMMON_CHOICES,
    "Workloads are ours: ResNet-50 has its layers' parameters in two bytes each, and times of 32 images at 100 TFLOP/s; sizes and times of DLRM are of its kind of network, and bounded by how long the runs may take; with all-to-alls and all-reduces of twice the size, and calculations a third longer (seed 1), TIMELY is beyond the limit, too. Collectives are one ring of all GPUs, and messages to all at once.",
    `Little impact: an iteration takes at most ${kLittle}% more or less than with PFC alone, which is what "more" and "less" are read as wherever chance decides.`,
  ],
  quantities: grid(
    kWorkloadNames,
    (seen: Seen, workload) => seen[workload],
    (label, workload) => `${kWorkloads[workload].label}: ${label}`,
  )({
    time: quantity("iteration with PFC alone", "ms", ({ none }) => none?.time),
    calculation: quantity("calculation", "ms", ({ none }) => none?.calculation),
    dcqcn: quantity("DCQCN differs by", "%", differs("dcqcn")),
    dctcp: quantity("DCTCP differs by", "%", differs("dctcp")),
    timely: quantity("TIMELY differs by", "%", differs("timely")),
    hpcc: quantity("HPCC differs by", "%", differs("hpcc")),
    pauses_none: quantity("PFC frames with PFC alone", "", ({ none }) => none?.pauses),
    pauses_dcqcn: quantity("PFC frames with DCQCN", "", ({ dcqcn }) => dcqcn?.pauses),
    pauses_dctcp: quantity("PFC frames with DCTCP", "", ({ dctcp }) => dctcp?.pauses),
    pauses_timely: quantity("PFC frames with TIMELY", "", ({ timely }) => timely?.pauses),
    pauses_hpcc: quantity("PFC frames with HPCC", "", ({ hpcc }) => hpcc?.pauses),
  }),
  statements: [
    statement(
      "previously proposed RoCE congestion control schemes have little impact on the end-to-end performance of training workloads",
      "abstract",
      `each iteration takes at most ${kLittle}% more or less than with PFC alone`,
      kWorkloadNames.flatMap((workload) =>
        SCHEMES.map((control) => atMost(`${control}_${workload}` as const, kLittle)),
      ),
      "Without all-to-all nothing is congested, and no control has much to do. DCTCP alone is beyond the limit, with DLRM: its windows grow too slowly to fill the link.",
      INITIAL_WINDOW,
    ),
  ],
  plots: (seen) => [
    plot(
      "Iteration",
      ["workload", 0.5, kWorkloadNames.length + 0.5],
      ["ms"],
      kControlNames.map((control) => ({
        label: CONTROLS[control].label,
        kind: "bars",
        x: kWorkloadNames.map((_, i) => i + 1),
        y: kWorkloadNames.map((workload) => seen[workload][control]?.time ?? null),
      })),
      { x_names: kWorkloadNames.map((workload, i) => ({ x: i + 1, label: kWorkloads[workload].label })) },
    ),
  ],
  network: { clocks: ["sim"], trials: kTrials, see, sim_seconds: 90 },
});
