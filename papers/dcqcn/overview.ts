/** Mellanox's overview of DC-QCN: what its phases do to a rate, and what a flow makes of bandwidth that frees up. */
import {
  between,
  describe,
  firstTime,
  inUnits,
  mean,
  movingMean,
  overMilliseconds,
  total,
} from "../../src/result/measure.js";
import type { Evidence, Paper } from "../engine/experiment.js";
import {
  atLeast,
  byName,
  grid,
  less,
  MORE_OR_LESS,
  namesOf,
  plot,
  quantity,
  statement,
  studyOf,
  within,
} from "../engine/study.js";
import { kFile, kLink, sendingRate, throughput } from "./two_senders.js";

export const OVERVIEW: Paper = {
  name: "Mellanox overview",
  citation: "Mellanox: Understanding DC-QCN Algorithm for RoCE Congestion Control, version 8",
};

/**
 * Times when the second flow comes, from when on both are looked at, when it goes, and the end, s. With SIGCOMM's values alpha
 * forgets within 14 ms to 1/e, and it begins at 1: after 120 ms nothing of that is left.
 */
const kComes = 0.005;
const kShared = 0.125;
const kGoes = 0.165;
const kEnd = 0.185;
/** Time in which the first flow is looked at alone, s. */
const kAlone = 0.01;
/** Width of the means that throughput is seen by, s. */
const kWidth = 0.0005;
const kTimes = [
  `duration=${kEnd * 1000}ms`,
  `warmup=${kShared * 1000}ms`,
  `traffic.1.start=${kComes * 1000}ms`,
  `traffic.1.stop=${kGoes * 1000}ms`,
  "probes.interval=1us",
  "congestion.profile=mellanox-overview",
];

/** Values are not printed: those of the firmware, and those that the SIGCOMM paper has for the same letters. Rates in Mb/s. */
const kValues = {
  firmware: { label: "firmware's values", threshold: 1, ai: 5, hai: 50, set: [] },
  sigcomm: {
    label: "SIGCOMM's values",
    threshold: 5,
    ai: 40,
    hai: 200,
    set: [
      "rpg_time_reset=55us",
      "rpg_byte_reset=10MB",
      "rpg_threshold=5",
      "rpg_ai_rate=40Mbps",
      "rpg_hai_rate=200Mbps",
      "dce_tcp_g=1020",
      "dce_tcp_rtt=55us",
      "rate_reduce_monitor_period=50us",
      "initial_alpha_value=1024",
      "min_time_between_cnps=50us",
    ].map((one) => `congestion.parameters.${one}`),
  },
} as const;
const kNames = namesOf(kValues);
type Values = (typeof kValues)[keyof typeof kValues];

/** A change of a flow's rate while both share, in Mb/s, as samples 1 us apart show it. */
interface Change {
  /** Increases since the last cut, this one included; 0: a cut. */
  position: number;
  /** Change of the rate. */
  by: number;
  /** Distance from the rate to the target rate, before it. */
  distance: number;
  /** Distance from the rate before it to the target rate after it. */
  stored: number;
}

/** The increases behind the first cut that is seen, and the cuts. */
function changesOf(run: Evidence, flow: string): Change[] {
  const { time_s: time, flows } = run.series;
  const { rate_bps = [], target_rate_bps = [] } = flows[flow] ?? {};
  const found: Change[] = [];
  let position = -1;
  for (let k = 1; k < time.length; k++) {
    const at = time[k] as number;
    if (at < kShared || at > kGoes) continue;
    const [before, now] = [rate_bps[k - 1] as number, rate_bps[k] as number];
    if (now === before) continue;
    if (now < before) position = 0;
    else if (position >= 0) position++;
    if (position < 0) continue;
    const [aim, stored] = [target_rate_bps[k - 1] as number, target_rate_bps[k] as number];
    found.push({
      position,
      by: (now - before) / 1e6,
      distance: (aim - before) / 1e6,
      stored: (stored - before) / 1e6,
    });
  }
  return found;
}

/** Rates are whole bit/s in samples, and a cut may come within 1 us of an increase. */
const kNoise = 0.001;
const kNearlyAll = 99;

function share(all: readonly Change[], met: (one: Change) => boolean): number | undefined {
  return all.length === 0 ? undefined : (100 * all.filter(met).length) / all.length;
}

interface Phases {
  values: Values;
  run: Evidence;
  cuts: readonly Change[];
  recovery: readonly Change[];
  additive: readonly Change[];
  hyper: readonly Change[];
}

function phasesOf(values: Values, run: Evidence): Phases {
  const changes = ["first", "second"].flatMap((flow) => changesOf(run, flow));
  const { threshold } = values;
  const from = (least: number, most: number) => changes.filter(({ position }) => position >= least && position <= most);
  return {
    values,
    run,
    cuts: from(0, 0),
    recovery: from(1, threshold),
    additive: from(threshold + 1, 2 * threshold),
    hyper: from(2 * threshold + 1, Number.POSITIVE_INFINITY),
  };
}

/** Both flows' alpha, and in what share of its slots CNPs came: its slots are so short that they have one at most. */
function alphas({ run }: Phases): { alpha: number; slots: number } {
  const { series, scenario, result } = run;
  const own = ["first", "second"].map((flow) =>
    mean(between({ time: series.time_s, values: series.flows[flow]?.alpha ?? [] }, kShared, kGoes)),
  );
  const cnps = between({ time: series.time_s, values: total(Object.values(series.cnps ?? {})) }, kShared, kGoes);
  const slot = (scenario.congestion.parameters as { dce_tcp_rtt: number }).dce_tcp_rtt / 1e9;
  const slots = (result.flows.length * (kGoes - kShared)) / slot;
  return { alpha: mean(own), slots: cnps.reduce((sum, n) => sum + n, 0) / slots };
}

/** Means of the first flow's throughput while it shares the link, and in the end, Gb/s. */
const shared = ({ run }: Phases) => mean(between(throughput(run, "first"), kShared, kGoes));
const freed = ({ run }: Phases) => mean(between(throughput(run, "first"), kEnd - kAlone, kEnd));

/** Mean of what the increase at a position of its phase adds. */
function gain(all: readonly Change[], position: number): number {
  return mean(all.filter((one) => one.position === position).map(({ by }) => by));
}

type Seen = Readonly<Record<keyof typeof kValues, Phases>>;

export const OVERVIEW_PHASES = studyOf<Seen>()({
  id: "dcqcn-overview-phases",
  paper: OVERVIEW,
  place: "The DC-QCN Algorithm",
  title: "what alpha, cuts and the three phases of increase do",
  setup:
    "Two senders and a receiver on one switch, 40 Gb/s, profile mellanox-overview; the second sends from 5 to 165 ms of 185. Once with the firmware's values, once with those of the SIGCOMM paper, in slots of 50 us; rates are sampled each microsecond, and looked at from 125 to 165 ms.",
  choices: [
    "The overview prints no values, so none of its words is about how much or how soon: most statements ask whether what runs does what is written, seen from outside, in samples.",
    `Every is read as ${kNearlyAll}%: a cut and an increase, or two increases, may come within one sample.`,
    "Slots of alpha are so short that each has one CNP at most; both flows' are taken together, as CNPs are counted by receiver.",
    MORE_OR_LESS,
    "Thresholds are those of the SIGCOMM paper: 5 KB, 200 KB, 1%.",
  ],
  quantities: grid(
    kNames,
    (seen: Seen, name) => seen[name],
    (label, name) => `${kValues[name].label}: ${label}`,
  )({
    alpha: quantity("alpha, mean", "", (seen) => alphas(seen).alpha),
    slots: quantity("share of slots in which a CNP came", "", (seen) => alphas(seen).slots),
    average: quantity("alpha / share of slots", "", (seen) => alphas(seen).alpha / alphas(seen).slots),
    cuts: quantity("cuts", "", ({ cuts }) => cuts.length),
    stored: quantity("cuts that stored the rate before them", "%", ({ cuts }) =>
      share(cuts, ({ stored }) => Math.abs(stored) <= kNoise),
    ),
    recoveries: quantity("increases of fast recovery", "", ({ recovery }) => recovery.length),
    halved: quantity("of these by half the distance", "%", ({ recovery }) =>
      share(recovery, ({ by, distance }) => Math.abs(by - distance / 2) <= kNoise),
    ),
    careful: quantity("gain by the last of them / by the first", "", ({ recovery, values: { threshold } }) =>
      threshold < 2 ? undefined : gain(recovery, threshold) / gain(recovery, 1),
    ),
    additives: quantity("increases of active increase", "", ({ additive }) => additive.length),
    by_ai: quantity("of these by R_AI", "%", ({ additive, values: { ai } }) =>
      share(additive, ({ by }) => Math.abs(by - ai) <= kNoise),
    ),
    hypers: quantity("increases of hyper-active increase", "", ({ hyper }) => hyper.length),
    by_hai: quantity("of these by R_HAI", "%", ({ hyper, values: { hai } }) =>
      share(hyper, ({ by }) => Math.abs(by - hai) <= kNoise),
    ),
    shared: quantity("first flow, throughput beside the second", "Gb/s", shared),
    freed: quantity("the same, last 10 ms", "Gb/s", freed),
    gained: quantity("last 10 ms / beside the second", "", (seen) => freed(seen) / shared(seen)),
    soon: quantity("time from the second's end to 36 Gb/s (means of 0.5 ms)", "ms", ({ run }) => {
      const found = firstTime(movingMean(throughput(run, "first"), kWidth), (gbps) => gbps >= 0.9 * kLink, kGoes);
      return 1000 * (found - kGoes);
    }),
    queue: quantity("queue, p99 from 125 to 165 ms", "KB", ({ run: { series } }) => {
      const bytes = Object.values(series.queues)[0]?.bytes ?? [];
      return describe(between(inUnits({ time: series.time_s, values: bytes }, 1000), kShared, kGoes))?.p99;
    }),
  }),
  statements: [
    statement(
      "Alpha parameter is a moving average of the ratio of slots in which CNP arrived",
      "Alpha update",
      "its mean is that ratio, within a tenth",
      kNames.map((name) => within(`average_${name}`, 0.9, 1.1)),
    ),
    statement(
      "In addition, upon rate decrease, the current rate before reduction is stored in parameter called target_rate.",
      "Rate Increase",
      "true of 99% of all cuts",
      kNames.map((name) => atLeast(`stored_${name}`, kNearlyAll)),
    ),
    statement(
      "During Fast Recovery phase, in every rate increase event, the rate is increased by half distance to the target_rate.",
      "Rate Increase",
      "true of 99% of the first F increases since a cut",
      kNames.map((name) => atLeast(`halved_${name}`, kNearlyAll)),
    ),
    statement(
      "That allows fast return to the rate in which congestion occurred in the beginning of the phase, and more careful increase when the rate is close to the value in which congestion happened.",
      "Rate Increase",
      "where F is more than 1, the last increase of the phase adds less than the first",
      [less("careful_sigcomm")],
    ),
    statement(
      "In the Active Increase (Probing) phase and in Hyper-active Increase (Probing), upon rate increase event, the rate is increased by a constant value.",
      "Rate Increase",
      "99% of increases F + 1 to 2F since a cut are by R_AI, and 99% of those beyond by R_HAI; F, 2F: the number that defines the phase",
      [
        ...kNames.map((name) => atLeast(`by_ai_${name}`, kNearlyAll)),
        ...kNames.map((name) => atLeast(`by_hai_${name}`, kNearlyAll)),
      ],
    ),
    statement(
      "That allows gaining throughput when bandwidth frees up.",
      "Rate Increase",
      "once the second flow has gone the first has at least 1.1 times its throughput beside it; how much and how soon the overview does not say",
      kNames.map((name) => atLeast(`gained_${name}`, 1.1)),
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: kNames.map((name) => ({ name, file: kFile, set: [...kTimes, ...kValues[name].set] })),
    see: (runs) => byName(kNames, (name) => phasesOf(kValues[name], runs[name] as Evidence)),
    sim_seconds: 3,
  },
  plots: (seen) =>
    kNames.map((name) =>
      plot(
        `${kValues[name].label}: rates`,
        ["time, ms", 0, kEnd * 1000],
        ["rate, Gb/s", 0, kLink + 2],
        (["first", "second"] as const).map((flow) => ({
          label: `${flow} sender`,
          ...overMilliseconds(movingMean(sendingRate(seen[name].run, flow), kWidth / 50)),
        })),
      ),
    ),
});
