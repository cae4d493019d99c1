/**
 * Figures 4 and 9 of the DCQCN paper, sections 2.2 and 3.2: a flow that shares nothing but an uplink of T1 with the senders to a
 * congested receiver, while senders under T3 are added. Pauses spread back from T4 to T1; marks do not.
 */
import { mean } from "simple-statistics";
import { spread } from "../../src/result/statistics.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import {
  atLeast,
  grid,
  namesOf,
  plot,
  quantity,
  type Runs,
  type StatementsOn,
  statement,
  studyOf,
} from "../engine/study.js";
import { dcqcnFigure } from "./paper.js";
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
  transferRates,
  whiskers,
} from "./testbed.js";

const kFile = "dcqcn/victim.yaml";
const kVictim = "h1-5";
/** Throughput that "one might expect VS to get", Gb/s. */
const kExpected = 20;
const kDraws = 10;

/** Bytes of one of the paper's transfers, and the end of the warm-up, s. */
const kTransfer = 250e6;
const kWarmup = 0.02;
/** Time in which VS delivers that much with every draw of paths, after the warm-up. */
const kDuration = { pfc: "duration=600ms", dcqcn: "duration=200ms" } as const;

/** Senders under T3 that are added. */
const kCounts = [0, 1, 2] as const;
const kAdded = { 0: "[]", 1: "[h3-1]", 2: "[h3-1, h3-2]" } as const;

/** Hops by which pauses spread, from the congested port outwards; the paper's order. */
const kHops = {
  t4: { label: "T4", switches: ["t4"] },
  l34: { label: "L3 and L4", switches: ["l3", "l4"] },
  spines: { label: "S1 and S2", switches: ["s1", "s2"] },
  l12: { label: "L1 and L2", switches: ["l1", "l2"] },
  t1: { label: "T1", switches: ["t1"] },
} as const;
const kHopNames = namesOf(kHops);

interface Seen {
  /** A transfer of VS by number of senders under T3, of those that were run: medians of the median case, and all draws of paths, Gb/s. */
  pinned: ReadonlyMap<number, number>;
  drawn: ReadonlyMap<number, readonly number[]>;
  /** Runs without senders under T3, and with two. */
  alone: Evidence;
  crowded: Evidence;
}

const median = ({ drawn }: Seen, count: number) => {
  const rates = drawn.get(count);
  return rates && spread(rates).p50;
};
/** Time that these links were paused, of one run over another's; not known of a lab, nor where there was none. */
const pausedRatio = (from: RegExp, to: RegExp) => (seen: Seen) => {
  const [time, reference] = [seen.crowded, seen.alone].map((one) => timePaused(one, from, to));
  return time === undefined || reference === undefined || reference === 0 ? undefined : time / reference;
};

const kQuantities = {
  ...grid(
    kCounts,
    (seen: Seen, count) => ({ pinned: seen.pinned.get(count), ecmp: median(seen, count) }),
    (label, count) => `VS, ${label}, senders under T3: ${count}`,
  )({
    pinned: quantity("paths of the median case", "Gb/s", ({ pinned }) => pinned),
    ecmp: quantity(`median of ${kDraws} draws of paths`, "Gb/s", ({ ecmp }) => ecmp),
  }),
  ratio_pinned: quantity(
    "VS with 2 senders under T3 / with none, paths of the median case",
    "",
    ({ pinned }: Seen) => (pinned.get(2) ?? 0) / (pinned.get(0) ?? 0),
  ),
  ratio_ecmp: quantity("VS with 2 senders under T3 / with none, medians of the draws", "", (seen: Seen) =>
    seen.drawn.size > 0 ? (median(seen, 2) ?? 0) / (median(seen, 0) ?? 0) : undefined,
  ),
  pinned_least: quantity("VS, paths of the median case, least", "Gb/s", ({ pinned }: Seen) =>
    Math.min(...pinned.values()),
  ),
  pinned_change: quantity("VS, paths of the median case, change by senders under T3", "%", ({ pinned }: Seen) =>
    change([...pinned.values()], pinned.get(0) ?? 0),
  ),
  pinned_loss: quantity(
    "VS, paths of the median case, loss by senders under T3",
    "%",
    ({ pinned }: Seen) => 100 * Math.max(0, 1 - Math.min(...pinned.values()) / (pinned.get(0) ?? 0)),
  ),
  uplink_ratio: quantity(
    "VS / mean of the senders on the same uplink, none under T3",
    "",
    ({ alone }: Seen) => rateFrom(alone, kVictim) / mean(["h1-1", "h1-2"].map((host) => rateFrom(alone, host))),
  ),
  ...grid(
    kHopNames,
    ({ alone }: Seen, name) => pauseFrames(alone, "pfc_sent", kHops[name].switches),
    (label, name) => label.replace("*", kHops[name].label),
  )({ pauses: quantity("PFC frames that * sent, none under T3", "per s", (frames) => frames) }),
  spines_paused: quantity(
    "S1 and S2, time paused with 2 senders under T3 / with none",
    "",
    pausedRatio(/^s\d$/, /^l[34]$/),
  ),
  senders_paused: quantity(
    "hosts under T1, time paused with 2 senders under T3 / with none",
    "",
    pausedRatio(/^h1-/, /^t1$/),
  ),
};

const kSpreading: StatementsOn<typeof kQuantities> = [
  statement(
    "However, we see that it only gets 10Gbps.",
    "section 2.2",
    "VS, no senders under T3, paths of the median case",
    [printed("pinned_0", 10)],
  ),
  statement(
    "As T4 is the bottleneck of H11-H14 incast, it ends up PAUSEing its incoming links. This in turn leads to L3 and L4 to pause their incoming links, and so forth. Eventually, L1 and L2 end up pausing T1's uplinks to them, and T1 is forced to PAUSE the senders.",
    "section 2.2",
    "T4, L3 and L4, the spines, L1 and L2, and T1 send PFC frames, no senders under T3",
    kHopNames.map((name) => atLeast(`pauses_${name}`, 1)),
  ),
  statement(
    "The flows on T1 that use these uplinks are equally affected by these PAUSES, regardless of their destinations",
    "section 2.2",
    "VS gets as much as the two senders on its uplink, no senders under T3",
    [equal("uplink_ratio", 1)],
  ),
  statement(
    "We see that the median throughput further falls from 10Gbps to 4.5Gbps",
    "section 2.2",
    "VS without and with two senders under T3, paths of the median case",
    [printed("pinned_0", 10), printed("pinned_2", 4.5)],
  ),
  statement(
    "The problem gets worse as we start senders H31 and H32 that also send to R.",
    "section 2.2",
    "median over the draws of paths, two senders under T3 and none",
    [lower("ratio_ecmp")],
  ),
  statement(
    "This happens because H31 and H32 compete with H11-H14 on L3 and L4, make them PAUSE S1 and S2 longer, and eventually make T1 PAUSE senders longer.",
    "section 2.2",
    "time that S1, S2 and the hosts under T1 are paused, paths of the median case",
    [higher("spines_paused"), higher("senders_paused")],
  ),
];

const kSolved: StatementsOn<typeof kQuantities> = [
  statement(
    "Figure 9 shows that DCQCN solves the victim flow problem depicted in Figure 4.",
    "section 3.2",
    "VS gets the 20 Gb/s that one might expect, or more, whatever sends under T3, paths of the median case",
    [atLeast("pinned_least", 0.9 * kExpected)],
  ),
  statement(
    "With DCQCN, the throughput of VS-VR flow does not change as we add senders under T3.",
    "section 3.2",
    "what VS loses is little, paths of the median case. It may gain: the two flows on its uplink are slowed from a quarter of R's link to a fifth and a sixth, which leaves it a fair share of 20, 24 and 26.7 Gb/s",
    [little("pinned_loss")],
  ),
];

function experiment(
  figure: number,
  setting: Setting,
  title: string,
  seeds: number,
  statements: StatementsOn<typeof kQuantities>,
) {
  const { label, set } = kSettings[setting];
  return studyOf<Seen>()({
    ...dcqcnFigure(figure),
    title,
    setup: `H11 to H14 under T1 send to R under T4, VS under T1 to VR under T2, and none, one or two hosts under T3 to R, with ${setting === "pfc" ? "PFC alone" : "DCQCN and PFC"}. Paths are those of the paper's median case (two of H11 to H14 on each uplink of T1), and ${kDraws} draws by ECMP.`,
    choices: [
      kWords,
      kRates,
      `The paper shows the median of 250 transfers of 250 MB. Here a run has one: the first 250 MB that VS delivers after 20 ms of warm-up, and ${kDraws} draws of paths have as many. ECMP keeps the path of a connection, so that more transfers of one draw would say the same again.`,
      "The wire has the paths of the median case, without senders under T3 and with two, for 100 ms: what VS delivers in 80 ms of it counts for a transfer.",
      kStreams,
    ],
    quantities: kQuantities,
    statements,
    network: {
      clocks: ["wire", "sim"],
      trials: kCounts.flatMap((count) =>
        trials(count, [...set, `traffic.2.from=${kAdded[count]}`], kDuration[setting], seeds),
      ),
      see,
      sim_seconds: setting === "pfc" ? 92 : 33,
    },
    plots: ({ pinned, drawn }) => [
      plot(
        "Throughput of VS",
        ["senders under T3"],
        ["throughput, Gb/s", 0, 35],
        [
          {
            label: `${label}, the median case`,
            x: [...pinned.keys()],
            y: [...pinned.values()],
            kind: "bars",
            color: 1,
          },
          ...(drawn.size > 0
            ? [{ ...whiskers(`${label}, draws of paths`, [...drawn.keys()], [...drawn.values()]), color: 0 }]
            : []),
        ],
        {
          x_names: kCounts.map((count) => ({ x: count, label: String(count) })),
          levels: [{ label: "expected", value: kExpected }],
        },
      ),
    ],
  });
}

function trials(count: number, set: readonly string[], duration: string, seeds: number): Trial[] {
  const pinned = { file: kFile, set: [...set, kStream] };
  const drawn = { file: kFile, set: [...set, duration, "topology.routes=[]"], clocks: ["sim"] } as const;
  return [
    // A transfer would take the wire minutes.
    ...(count === 1 ? [] : repeated(`lab-${count}`, { ...pinned, clocks: ["wire"] }, 1)),
    ...repeated(`pinned-${count}`, { file: kFile, set: [...pinned.set, duration], clocks: ["sim"] }, seeds),
    ...repeated(`ecmp-${count}`, drawn, kDraws),
  ];
}

function see(runs: Runs): Seen {
  const pinned = (count: number) => [...repeats(runs, `pinned-${count}`), ...repeats(runs, `lab-${count}`)];
  const byCount = (of: (count: number) => readonly Evidence[]) =>
    kCounts.map((count) => [count, of(count).map(transferOfVictim)] as const).filter(([, rates]) => rates.length > 0);
  return {
    pinned: new Map(byCount(pinned).map(([count, rates]) => [count, spread(rates).p50])),
    drawn: new Map(byCount((count) => repeats(runs, `ecmp-${count}`))),
    alone: pinned(0)[0] as Evidence,
    crowded: pinned(2)[0] as Evidence,
  };
}

/** Rate of the first transfer; if the run is too short for one, that of what there is, which is less of the same. */
function transferOfVictim(run: Evidence): number {
  return transferRates(run, kVictim, kTransfer, kWarmup)[0] ?? rateFrom(run, kVictim);
}

export const DCQCN_FIGURE_4 = experiment(4, "pfc", "a victim of PFC's spreading pauses", 1, kSpreading);
export const DCQCN_FIGURE_9 = experiment(9, "dcqcn", "the victim flow with DCQCN", 5, kSolved);
