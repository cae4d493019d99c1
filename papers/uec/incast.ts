/** An incast and a permutation under NSCC, which SMaRTT became, and under the controls that its paper compares it with. */
import { between, describe, inUnits, queue } from "../../src/result/measure.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  byName,
  grid,
  namesOf,
  plot,
  quantity,
  type Runs,
  statement,
  studyOf,
} from "../engine/study.js";
import { SWIFT_BEGINS_LOW } from "./causes.js";
import { SMARTT, UEC_FILE } from "./papers.js";
import { lastCompletion } from "./runs.js";

/** Settings of RoCE NICs: DCQCN, PFC, one path for each flow, and go-back-N. */
const kRoce = [
  "congestion={algorithm: dcqcn, profile: hpcc-ns3}",
  "transport={type: rc}",
  "switch={buffer: {total: 12MB, headroom: 100KB, priorities: 1}, pfc: {priorities: [0]}, ecn: {kmin: 400KB, kmax: 1600KB, pmax: 20%, priorities: [0]}, scheduler: {strict: [6], weights: {0: 100}}}",
];
const kControls = {
  nscc: { label: "NSCC", set: [] },
  swift: { label: "Swift", set: ["congestion={algorithm: swift}"] },
  roce: { label: "DCQCN with PFC", set: kRoce },
} as const;
type Control = keyof typeof kControls;
const kNames = namesOf(kControls);

const kReceiver = "h4-2-2";
const kQueue = `e4_2:${kReceiver}:0`;
/** End of the incast without end, s. */
const kEnd = 8e-3;
const kSteady = 4e-3;
/** 0.75 base round-trip times at 100 Gb/s, KB as queues count a packet of 4178 bytes on the link: 4154. */
const kTarget = (0.75 * 14.02e-6 * 100e9 * 4154) / 4178 / 8 / 1000;

const incast = (bytes: string) =>
  `traffic=[{pattern: incast, to: ${kReceiver}, degree: 8, priority: 0, message: 2MB${bytes}}]`;
const kLoads = {
  incast: [incast(", bytes: 2MB")],
  permutation: [],
  endless: [incast(""), `duration=${kEnd}s`, `warmup=${kSteady}s`, `probes.queues=["${kQueue}"]`],
} as const;
type Load = keyof typeof kLoads;
const kLoadNames = namesOf(kLoads);

const trialName = (control: Control, load: Load) => `${control}-${load}`;
const kTrials: Trial[] = kNames.flatMap((control) =>
  kLoadNames.map((load) => ({
    name: trialName(control, load),
    file: UEC_FILE,
    set: [...kControls[control].set, ...kLoads[load]],
  })),
);

interface Figures {
  /** Last completions, us. */
  incast: number;
  permutation: number;
  jain: number;
  /** Mean, KB. */
  queue: number;
  used: number; // %
}
type Seen = Partial<Record<Control, Figures>>;

function figures(all: Readonly<Record<Load, Evidence>>): Figures {
  const { result, series } = all.endless;
  const { jain = 0, goodput_bps, goodput_limit_bps = Number.POSITIVE_INFINITY } = result.totals;
  const { mean = Number.NaN } = describe(between(inUnits(queue(series, kQueue), 1000), kSteady, kEnd)) ?? {};
  return {
    incast: lastCompletion(all.incast),
    permutation: lastCompletion(all.permutation),
    jain,
    queue: mean,
    used: (100 * goodput_bps) / goodput_limit_bps,
  };
}

const see = (runs: Runs): Seen =>
  byName(kNames, (control) => {
    const [one, two, three] = kLoadNames.map((load) => runs[trialName(control, load)]);
    if (one === undefined || two === undefined || three === undefined) return undefined;
    return figures({ incast: one, permutation: two, endless: three });
  }) as Seen;

/** Part by which NSCC's last completion is shorter, for the load of the two where that is most, %. */
const shorter = ({ nscc, ...others }: Seen, than: Exclude<Control, "nscc">) => {
  const other = others[than];
  if (nscc === undefined || other === undefined) return undefined;
  return 100 * (1 - Math.min(nscc.incast / other.incast, nscc.permutation / other.permutation));
};

export const UEC_INCAST = studyOf<Seen>()({
  id: "uec-smartt",
  paper: SMARTT,
  place: "abstract",
  title: "an incast and a permutation under NSCC, Swift and DCQCN",
  setup:
    "16 hosts in a fat tree of 100 Gb/s: 2 MB from eight of them to one, 2 MB from each to one other, and eight that send to one for 8 ms, of which the second half counts. NSCC and Swift with REPS and trimming, DCQCN with PFC, one path for each flow and go-back-N.",
  choices: [
    "Only the abstract was at hand. Topology, traffic and limits are ours. MPRDMA is not among Weir's controls.",
    "Up to 50%: of incast and permutation the one where the last completion is shortened most.",
    "Swift has its default parameters, with two hops more than they are for; DCQCN those of HPCC's simulator, with its marks at 100 Gb/s: from 400 to 1600 KB, up to 20%.",
    "Precise: the mean queue of the incast without end is within 15% of the target, 0.75 base round-trip times.",
  ],
  quantities: {
    ...grid(
      kNames,
      (seen: Seen, name) => seen[name],
      (label, name) => `${kControls[name].label}: ${label}`,
    )({
      incast: quantity("incast, last completion", "us", ({ incast }) => incast),
      permutation: quantity("permutation, last completion", "us", ({ permutation }) => permutation),
      jain: quantity("incast without end, Jain's index", "", ({ jain }) => jain),
      queue: quantity("incast without end, mean queue", "KB", ({ queue }) => queue),
      used: quantity("incast without end, of what headers leave", "%", ({ used }) => used),
    }),
    off: quantity("NSCC: mean queue off the target by", "%", ({ nscc }) =>
      nscc === undefined ? undefined : 100 * Math.abs(nscc.queue / kTarget - 1),
    ),
    than_swift: quantity("NSCC's last completion shorter than Swift's by up to", "%", (seen) => shorter(seen, "swift")),
    than_roce: quantity("NSCC's last completion shorter than DCQCN's by up to", "%", (seen) => shorter(seen, "roce")),
  },
  statements: [
    statement(
      "fast, fair and precise window adjustments",
      "abstract",
      "eight senders to one: Jain's index at least 0.95, the link in use to 99%, and the mean queue within 15% of the target",
      [atLeast("jain_nscc", 0.95), atLeast("used_nscc", 99), atMost("off", 15)],
    ),
    statement(
      "outperforms existing datacenter congestion control algorithms like Swift, RoCE, and MPRDMA by up to 50%",
      "abstract",
      "incast or permutation: the last completion is at least 50% shorter than with Swift, and than with DCQCN",
      [atLeast("than_swift", 50), atLeast("than_roce", 50)],
      "Swift's permutation takes so long because it begins with 10 packets; NSCC begins with 1.5 times what the network holds.",
      SWIFT_BEGINS_LOW,
    ),
  ],
  plots: (seen) => [
    plot(
      "Completion of the last flow",
      ["load", 0.5, 2.5],
      ["us", 0],
      kNames.flatMap((name) => {
        const one = seen[name];
        return one === undefined ? [] : { label: kControls[name].label, x: [1, 2], y: [one.incast, one.permutation] };
      }),
      {
        x_names: [
          { x: 1, label: "incast" },
          { x: 2, label: "permutation" },
        ],
      },
    ),
  ],
  network: { clocks: ["sim"], trials: kTrials, see, sim_seconds: 3 },
});
