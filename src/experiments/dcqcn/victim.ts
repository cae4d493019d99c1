/**
 * Figures 4 and 9 of the DCQCN paper, sections 2.2 and 3.2: a flow that shares nothing but an uplink of T1 with the senders to a
 * congested receiver, while senders under T3 are added. Pauses spread back from T4 to T1; marks do not.
 */
import { mean } from "simple-statistics";
import { spread } from "../../result/statistics.js";
import type { Evidence, Experiment, Observation, Quantity, Statement, Trial } from "../experiment.js";
import { known } from "../measure.js";
import { DCQCN_PAPER } from "./paper.js";
import {
  change,
  equal,
  higher,
  kRates,
  kSettings,
  kStream,
  kStreams,
  kWords,
  little,
  lower,
  pauseFrames,
  printed,
  rateFrom,
  repeated,
  repeats,
  type Setting,
  timePaused,
  whiskers,
} from "./testbed.js";

const kFile = "dcqcn/victim.yaml";
const kVictim = "h1_5";
/** What "one might expect VS to get", Gb/s. */
const kExpected = 20;
const kDraws = 10;

/** Senders under T3 that are added. */
const kAdded = [
  { count: 0, hosts: "[]" },
  { count: 1, hosts: "[h3_1]" },
  { count: 2, hosts: "[h3_1, h3_2]" },
] as const;

/** Where pauses spread, from the congested port outwards; the paper's order. */
const kHops = [
  { name: "t4", label: "T4", switches: ["t4"] },
  { name: "l34", label: "L3 and L4", switches: ["l3", "l4"] },
  { name: "spines", label: "S1 and S2", switches: ["s1", "s2"] },
  { name: "l12", label: "L1 and L2", switches: ["l1", "l2"] },
  { name: "t1", label: "T1", switches: ["t1"] },
] as const;

const kQuantities: Record<string, Quantity> = {
  ...Object.fromEntries(
    kAdded.flatMap(({ count }): [string, Quantity][] => [
      [`pinned_${count}`, { label: `VS, paths of the median case, senders under T3: ${count}`, unit: "Gb/s" }],
      [`ecmp_${count}`, { label: `VS, median of ${kDraws} draws of paths, senders under T3: ${count}`, unit: "Gb/s" }],
    ]),
  ),
  ratio_pinned: { label: "VS with 2 senders under T3 / with none, paths of the median case", unit: "" },
  ratio_ecmp: { label: "VS with 2 senders under T3 / with none, medians of the draws", unit: "" },
  pinned_least: { label: "VS, paths of the median case, least", unit: "Gb/s" },
  pinned_change: { label: "VS, paths of the median case, change by senders under T3", unit: "%" },
  uplink_ratio: { label: "VS / mean of the senders on the same uplink, none under T3", unit: "" },
  ...Object.fromEntries(
    kHops.map(({ name, label }): [string, Quantity] => [
      `pauses_${name}`,
      { label: `PFC frames that ${label} sent, none under T3`, unit: "per s" },
    ]),
  ),
  spines_paused: { label: "S1 and S2, time paused with 2 senders under T3 / with none", unit: "" },
  senders_paused: { label: "hosts under T1, time paused with 2 senders under T3 / with none", unit: "" },
};

const kSpreading: Statement[] = [
  {
    quote: "However, we see that it only gets 10Gbps.",
    where: "section 2.2",
    reading: "VS, no senders under T3, paths of the median case",
    checks: [printed("pinned_0", 10)],
  },
  {
    quote:
      "As T4 is the bottleneck of H11-H14 incast, it ends up PAUSEing its incoming links. This in turn leads to L3 and L4 to pause their incoming links, and so forth. Eventually, L1 and L2 end up pausing T1's uplinks to them, and T1 is forced to PAUSE the senders.",
    where: "section 2.2",
    reading: "T4, L3 and L4, the spines, L1 and L2, and T1 send PFC frames, no senders under T3",
    checks: kHops.map(({ name }) => ({ quantity: `pauses_${name}`, min: 1 })),
  },
  {
    quote:
      "The flows on T1 that use these uplinks are equally affected by these PAUSES, regardless of their destinations",
    where: "section 2.2",
    reading: "VS gets as much as the two senders on its uplink, no senders under T3",
    checks: [equal("uplink_ratio", 1)],
  },
  {
    quote: "We see that the median throughput further falls from 10Gbps to 4.5Gbps",
    where: "section 2.2",
    reading: "VS without and with two senders under T3, paths of the median case",
    checks: [printed("pinned_0", 10), printed("pinned_2", 4.5)],
  },
  {
    quote: "The problem gets worse as we start senders H31 and H32 that also send to R.",
    where: "section 2.2",
    reading: "median over the draws of paths, two senders under T3 and none",
    checks: [lower("ratio_ecmp")],
  },
  {
    quote:
      "This happens because H31 and H32 compete with H11-H14 on L3 and L4, make them PAUSE S1 and S2 longer, and eventually make T1 PAUSE senders longer.",
    where: "section 2.2",
    reading: "time that S1, S2 and the hosts under T1 are paused, paths of the median case",
    checks: [higher("spines_paused"), higher("senders_paused")],
  },
];

const kSolved: Statement[] = [
  {
    quote: "Figure 9 shows that DCQCN solves the victim flow problem depicted in Figure 4.",
    where: "section 3.2",
    reading: "VS gets the 20 Gb/s that one might expect, or more, whatever sends under T3, paths of the median case",
    checks: [{ quantity: "pinned_least", min: 0.9 * kExpected }],
  },
  {
    quote: "With DCQCN, the throughput of VS-VR flow does not change as we add senders under T3.",
    where: "section 3.2",
    reading: "a change of VS, either way, is little, paths of the median case",
    checks: [little("pinned_change")],
    remark:
      "It rises, as a fair share does: the two flows on VS's uplink are slowed from a quarter of R's link to a fifth and a sixth, which leaves 20, 24 and 26.7 Gb/s.",
  },
];

function experiment(
  figure: number,
  setting: Setting,
  title: string,
  seeds: number,
  statements: Statement[],
): Experiment {
  const { label, set } = kSettings[setting];
  return {
    id: `dcqcn-fig${figure}`,
    paper: DCQCN_PAPER,
    place: `figure ${figure}`,
    title,
    setup: `H11 to H14 under T1 send to R under T4, VS under T1 to VR under T2, and none, one or two hosts under T3 to R, with ${setting === "pfc" ? "PFC alone" : "DCQCN and PFC"}. Paths are those of the paper's median case (two of H11 to H14 on each uplink of T1), and ${kDraws} draws by ECMP.`,
    choices: [
      kWords,
      kRates,
      "The paper shows the median of 250 transfers of 250 MB; here of runs, 80 ms after 20 ms of warm-up.",
      "The wire has the paths of the median case, without senders under T3 and with two.",
      kStreams,
    ],
    quantities: kQuantities,
    statements,
    network: {
      clocks: ["wire", "sim"],
      trials: kAdded.flatMap(({ count, hosts }) => trials(count, [...set, `traffic.2.from=${hosts}`], seeds)),
      observe: (runs) => observe(runs, label),
      sim_seconds: setting === "pfc" ? 24 : 19,
    },
  };
}

function trials(count: number, set: readonly string[], seeds: number): Trial[] {
  const pinned = repeated(`pinned-${count}`, { file: kFile, set: [...set, kStream] }, seeds);
  const drawn = { file: kFile, set: [...set, "topology.routes=[]"], clocks: ["sim"] } as const;
  return [
    ...pinned.map((trial, i): Trial => (i === 0 && count !== 1 ? trial : { ...trial, clocks: ["sim"] })),
    ...repeated(`ecmp-${count}`, drawn, kDraws),
  ];
}

function observe(runs: Readonly<Record<string, Evidence>>, label: string): Observation {
  const victims = (kind: "pinned" | "ecmp", count: number) =>
    repeats(runs, `${kind}-${count}`).map((run) => rateFrom(run, kVictim));
  const shown = kAdded.filter(({ count }) => victims("pinned", count).length > 0).map(({ count }) => count);
  const pinned = new Map(shown.map((count) => [count, mean(victims("pinned", count))]));
  const drawn = shown.map((count) => victims("ecmp", count));
  const medians = new Map(
    shown.flatMap((count, i) => ((drawn[i]?.length ?? 0) > 0 ? [[count, spread(drawn[i] ?? []).p50]] : [])),
  ) as Map<number, number>;
  const alone = repeats(runs, "pinned-0")[0] as Evidence;
  const crowded = repeats(runs, "pinned-2")[0] as Evidence;
  const rates = [...pinned.values()];
  return {
    values: known({
      ...Object.fromEntries(shown.map((count) => [`pinned_${count}`, pinned.get(count)])),
      ...Object.fromEntries(shown.map((count) => [`ecmp_${count}`, medians.get(count)])),
      ratio_pinned: ratio(pinned),
      ratio_ecmp: medians.size > 0 ? ratio(medians) : undefined,
      pinned_least: Math.min(...rates),
      pinned_change: change(rates, pinned.get(0) ?? 0),
      uplink_ratio: rateFrom(alone, kVictim) / mean(["h1_1", "h1_2"].map((host) => rateFrom(alone, host))),
      ...Object.fromEntries(
        kHops.map(({ name, switches }) => [`pauses_${name}`, pauseFrames(alone, "pfc_sent", switches)]),
      ),
      spines_paused: pausedRatio(crowded, alone, /^s\d$/, /^l[34]$/),
      senders_paused: pausedRatio(crowded, alone, /^h1_/, /^t1$/),
    }),
    plots: [
      {
        title: "Throughput of VS",
        x_label: "senders under T3",
        y_label: "throughput, Gb/s",
        x_names: kAdded.map(({ count }) => ({ x: count, label: String(count) })),
        y_range: [0, 35],
        curves: [
          { label: `${label}, the median case`, x: shown, y: rates, kind: "bars", color: 1 },
          ...(medians.size > 0 ? [{ ...whiskers(`${label}, draws of paths`, shown, drawn), color: 0 }] : []),
        ],
        levels: [{ label: "expected", value: kExpected }],
      },
    ],
  };
}

const ratio = (rates: ReadonlyMap<number, number>) => (rates.get(2) ?? 0) / (rates.get(0) ?? 0);

/** Time that these links were paused, of one run over another's; not known of a lab, nor where there was none. */
function pausedRatio(run: Evidence, other: Evidence, from: RegExp, to: RegExp): number | undefined {
  const [time, reference] = [run, other].map((one) => timePaused(one, from, to));
  return time === undefined || reference === undefined || reference === 0 ? undefined : time / reference;
}

export const DCQCN_FIGURE_4 = experiment(4, "pfc", "a victim of PFC's spreading pauses", 1, kSpreading);
export const DCQCN_FIGURE_9 = experiment(9, "dcqcn", "the victim flow with DCQCN", 5, kSolved);
