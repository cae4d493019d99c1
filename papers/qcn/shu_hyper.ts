/** Hyper-active increase as Shu et al. tell it in sections III and VI: who enters it when, and how soon a flow then has the link. */
import { firstTime, movingMean, type Signal } from "../../src/result/measure.js";
import type { Cause, Evidence, Trial } from "../engine/experiment.js";
import {
  atLeast,
  byName,
  grid,
  mediansOf,
  namesOf,
  plot,
  quantity,
  statement,
  studyOf,
  within,
} from "../engine/study.js";
import { LINK } from "./convergence.js";
import { SHU } from "./papers.js";
import { SEEDS } from "./two_flows.js";

const kFile = "qcn/shu-uneven-start.yaml";
/** s */
const kEnd = 0.5;
const kShort = ["duration=500ms", "warmup=0s", "probes.interval=250us"];
/** R_HAI is 5 Mb/s, R_AI a tenth of it: a rise of more than half of it is the former. */
const kStep = 2.5e6;
const kAlmostAll = 0.9 * LINK;

/** Mb/s at which a flow begins that is alone; below 80 its byte counter is the slower of the two. */
const kAlone = { r40: 40, r60: 60, r120: 120, r160: 160, r500: 500 } as const;
const kStarts = namesOf(kAlone);
/** Rates of two flows on one link, both below 80 Mb/s. */
const kTogether = [60, 20] as const;

const startAt = (host: string, mbps: number) => `topology.host_overrides.${host}.initial_rate=${mbps}Mbps`;
const kTrials: Trial[] = [
  ...kStarts.map((name) => ({
    name,
    file: kFile,
    set: [...kShort, startAt("s1", kAlone[name]), "traffic=[{id: rp1, from: s1, to: r1}]"],
  })),
  {
    name: "together",
    file: kFile,
    set: [...kShort, ...kTogether.map((mbps, flow) => startAt(`s${flow + 1}`, mbps))],
  },
];

/** s; Infinity: not in the run. */
interface Climb {
  /** The target rate rises by R_HAI for the first time. */
  entered: number;
  /** The rate is nearly that of the link. */
  there: number;
}
interface Seen {
  alone: Readonly<Record<keyof typeof kAlone, Climb>>;
  larger: Climb;
  smaller: Climb;
  /** The larger one's part of what both rates gained until they had the link between them, %. */
  taken: number;
  curves: Readonly<Record<string, Signal>>;
}

const rateOf = ({ series }: Evidence, flow: string): Signal => {
  return { time: series.time_s, values: series.flows[flow]?.rate_bps ?? [] };
};

function climbOf(run: Evidence, flow: string): Climb {
  const { time_s: time, flows } = run.series;
  const target = flows[flow]?.target_rate_bps ?? [];
  const rises = { time, values: target.map((now, k) => now - (target[k - 1] ?? now)) };
  const rate = rateOf(run, flow);
  return {
    entered: firstTime(rises, (by) => by >= kStep),
    there: firstTime(rate, (bps) => bps >= kAlmostAll),
  };
}

function takenBy(run: Evidence): number {
  const [larger, smaller] = [rateOf(run, "rp1"), rateOf(run, "rp2")];
  const full = larger.values.findIndex((bps, k) => bps + (smaller.values[k] ?? 0) >= LINK);
  if (full < 0) return Number.NaN;
  const [gained = 0, other = 0] = [larger, smaller].map(
    ({ values }, flow) => (values[full] ?? 0) - 1e6 * (kTogether[flow] ?? 0),
  );
  return (100 * gained) / (gained + other);
}

const took = ({ entered, there }: Climb) => 1000 * (there - entered);

const HYPER_BY_BYTES: Cause = {
  id: "steps-of-hyper-increase",
  by: "algorithm",
  what: "By equation 5 hyper-active increase has no time in 2 to 3 ms to take a link.",
  proof:
    "a cycle of 75 KB takes 0.51 ms at 1 Gb/s or more, its jitter included, so 3 ms have 5 steps of the byte counter and one of the timer at most, which add up to 21 R_HAI = 105 Mb/s",
};

export const SHU_HYPER = studyOf<Seen>()({
  id: "qcn-shu-hyper",
  paper: SHU,
  place: "sections III and VI",
  title: "who enters hyper-active increase, and how soon it takes the link",
  setup:
    "A flow alone on 1 Gb/s begins at 40, 60, 120, 160 or 500 Mb/s, and nobody tells it anything; two begin together at 60 and 20 Mb/s. Byte counter 150 KB, timer 15 ms, R_AI 0.5, R_HAI 5 Mb/s, 0.5 s.",
  choices: [
    "The phase is entered when the target rate rises by R_HAI for the first time, at the end of its first cycle.",
    "Almost all is read as 90%. A number that is printed: within a fifth of it.",
    `Cycles are drawn, so in virtual time ${SEEDS} seeds run, and medians are judged.`,
    "The second stage of the paper begins at rates of its own, after cuts; here rates are given, so that nothing but the increase is seen.",
  ],
  quantities: {
    ...grid(
      kStarts,
      ({ alone }: Seen, name) => alone[name],
      (label, name) => `alone from ${kAlone[name]} Mb/s: ${label}`,
    )({
      entered: quantity("first hyper-active increase", "ms", ({ entered }) => 1000 * entered),
      took: quantity("from there to 0.9 Gb/s", "ms", took),
    }),
    slow: quantity("time until it from 40 / from 60 Mb/s", "", ({ alone }) => alone.r40.entered / alone.r60.entered),
    fast: quantity(
      "time until it from 120 / from 160 Mb/s",
      "",
      ({ alone }) => alone.r120.entered / alone.r160.entered,
    ),
    larger: quantity(
      "together: first hyper-active increase of the larger",
      "ms",
      ({ larger }) => 1000 * larger.entered,
    ),
    smaller: quantity("together: of the smaller", "ms", ({ smaller }) => 1000 * smaller.entered),
    earlier: quantity("time until it of the smaller / of the larger", "", (seen) => {
      return seen.smaller.entered / seen.larger.entered;
    }),
    taken: quantity("together: of what both gained until they had the link, the larger's", "%", ({ taken }) =>
      Number.isNaN(taken) ? undefined : taken,
    ),
  },
  statements: [
    statement(
      "Once a flow enters into the HAI phase, it can obtain almost all the bandwidth in 2-3 ms.",
      "section III",
      "alone on the link it has 90% of it 2 to 3 ms after its first hyper-active increase, from 40 Mb/s as from 500",
      kStarts.map((name) => within(`took_${name}`, 0.8 * 2, 1.2 * 3)),
      undefined,
      HYPER_BY_BYTES,
    ),
    statement(
      "When T_c > R x T_t, that is, R < 80 Mbps, whether a RP will enter into the HAI phase only depends on the Byte Counter.",
      "section VI",
      "below 80 Mb/s the time until it is as the rate's inverse, 60/40 within a fifth; above, where the timer decides, it is the same within a fifth",
      [within("slow", 0.8 * 1.5, 1.2 * 1.5), within("fast", 0.8, 1.2)],
    ),
    statement(
      "Obviously, the RPs with larger rates will enter into the HAI phase much earlier, and then quickly take up almost all the remaining bandwidth.",
      "section VI",
      "from 60 Mb/s in half of the time or less that it takes from 20, and of what both gain until the link is full 90% are its own",
      [atLeast("earlier", 2), atLeast("taken", 90)],
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: kTrials,
    seeds: SEEDS,
    see: (runs) => {
      const together = runs.together as Evidence;
      return {
        alone: byName(kStarts, (name) => climbOf(runs[name] as Evidence, "rp1")),
        larger: climbOf(together, "rp1"),
        smaller: climbOf(together, "rp2"),
        taken: takenBy(together),
        curves: {
          ...Object.fromEntries(
            kStarts.map((name) => [`alone from ${kAlone[name]} Mb/s`, rateOf(runs[name] as Evidence, "rp1")]),
          ),
          "together, from 60 Mb/s": rateOf(together, "rp1"),
          "together, from 20 Mb/s": rateOf(together, "rp2"),
        },
      };
    },
    typical: (all) => {
      const climbs = (of: (seen: Seen) => Climb) => mediansOf(all.map((seen) => ({ ...of(seen) })));
      return {
        ...(all[0] as Seen),
        alone: byName(kStarts, (name) => climbs(({ alone }) => alone[name])),
        larger: climbs(({ larger }) => larger),
        smaller: climbs(({ smaller }) => smaller),
        taken: mediansOf(all.map(({ taken }) => ({ taken }))).taken,
      };
    },
    sim_seconds: 1,
  },
  plots: ({ curves }) => [
    plot(
      "Rates",
      ["time, ms", 0, kEnd * 1000],
      ["rate, Mb/s", 0, 1050],
      Object.entries(curves).map(([label, signal]) => {
        const { time, values } = movingMean(signal, 0.001);
        return { label, x: time.map((at) => at * 1000), y: values.map((bps) => bps / 1e6) };
      }),
    ),
  ],
});
