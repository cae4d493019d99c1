/** Words of Shu et al. in section V-B on feedback that is larger or later: F_b by their model, the round trip as packets. */
import { between, describe } from "../../src/result/measure.js";
import type { Evidence } from "../engine/experiment.js";
import {
  byName,
  grid,
  less,
  MORE_OR_LESS,
  mediansOf,
  more,
  namesOf,
  quantity,
  statement,
  studyOf,
  within,
} from "../engine/study.js";
import { SHORT_ROUND_TRIPS } from "./causes.js";
import { SHU } from "./papers.js";
import { ratio, sweep } from "./shu_sweeps.js";
import {
  BOTTLENECK,
  BUFFER,
  BY_CHANCE,
  CONVERGED_BY_MEANS,
  END,
  lengthOf,
  queuePlot,
  type Rates,
  rateCurves,
  ratePlot,
  ratesOf,
  SEEDS,
  SETUP,
  STEADY,
} from "./two_flows.js";

const kSooner = "Therefore, more dramatic queue length oscillation will lead to smaller convergence time.";
const kWhere = "section V-B1";

/** It runs by the model: G_d F_b is one factor of it. */
export const SHU_FEEDBACK = sweep({
  id: "qcn-shu-feedback",
  paper: SHU,
  place: "section V-B1",
  title: "rate evolution with larger feedback",
  cases: {
    fb_1: { label: "F_b 1", input: {} },
    fb_2: { label: "F_b 2", input: { feedback: 2 } },
    fb_8: { label: "F_b 8", input: { feedback: 8 } },
    gd_16: { label: "F_b 1, G_d 1/16", input: { gd: 1 / 16 } },
  },
  derived: {
    twice: ratio("time with F_b 2 / with F_b 1", "fb_2", "fb_1"),
    same_product: ratio("time with F_b 8 / with G_d 1/16, F_b 1", "fb_8", "gd_16"),
  },
  choices: ["Which averages of F_b the paper has in mind is not printed; 8 is what makes G_d of 1/128 that of 1/16."],
  statements: [
    statement(
      "Due to the relationship between G_d and F_b, increasing F_b will lead to similar results as increasing G_d.",
      kWhere,
      "with F_b 8 within a tenth of the time with eight times G_d",
      [within("same_product", 0.9, 1.1)],
    ),
    statement(kSooner, kWhere, "by the model, where F_b stands for it: shorter with F_b 2 than with 1", [
      less("twice"),
    ]),
  ],
});

/** Delay of each link. */
const kDelays = {
  near: { label: "1 us", set: [] },
  middle: { label: "50 us", set: ["topology.link.delay=50us"] },
  far: { label: "250 us", set: ["topology.link.delay=250us"] },
} as const;
const kNames = namesOf(kDelays);

interface Trip {
  figures: {
    converged: number;
    deviation: number;
    /** Shortest and longest queue, KB. */
    least: number;
    most: number;
    /** Feedback above 1, as a part of all that is above 0. */
    large: number;
  };
  rates: Rates["all"];
  run: Evidence;
}
type Trips = Readonly<Record<keyof typeof kDelays, Trip>>;

function seeTrip(run: Evidence): Trip {
  const { all, converged } = ratesOf(run);
  const lengths = between(lengthOf(run), STEADY, END);
  const highest = (run.series.queues[BOTTLENECK]?.max_bytes ?? []).map((bytes) => bytes / 1000);
  const { flows } = run.result;
  const told = flows.reduce((sum, { cnm_handled = 0 }) => sum + cnm_handled, 0);
  const ones = flows.reduce((sum, { cnm_lowest = 0 }) => sum + cnm_lowest, 0);
  const figures = {
    converged,
    deviation: describe(lengths)?.deviation ?? Number.NaN,
    least: Math.min(...lengths),
    most: Math.max(...between({ time: run.series.time_s, values: highest }, STEADY, END)),
    large: (100 * (told - ones)) / told,
  };
  return { figures, rates: all, run };
}

/** The paper's fourth assumption: the queue is neither empty nor overfilled. */
const assumed = ({ figures: { least, most } }: Trip) => least > 0 && most < BUFFER - 2;

export const SHU_ROUND_TRIP = studyOf<Trips>()({
  id: "qcn-shu-rtt",
  paper: SHU,
  place: "section V-B3",
  title: "what a longer round trip makes of queue and convergence",
  setup: `${SETUP} They start at 900 and 100 Mb/s; each of three links delays by 1, 50 or 250 us, so that feedback and what it changes take 2, 100 or 500 us.`,
  choices: [
    CONVERGED_BY_MEANS,
    BY_CHANCE,
    MORE_OR_LESS,
    "Which round trips the paper has in mind is not printed. Slightly is read as the paper itself does of G_d in section V-B1, whose impact is slight as the time only decreases by half: not below half of the time.",
  ],
  quantities: {
    ...grid(
      kNames,
      (trips: Trips, name) => trips[name].figures,
      (label, name) => `${label}, links of ${kDelays[name].label}`,
    )({
      converged: quantity("converged", "s", ({ converged }) => converged),
      deviation: quantity("queue, standard deviation from 1 s on", "KB", ({ deviation }) => deviation),
      least: quantity("queue, shortest from 1 s on", "KB", ({ least }) => least),
      most: quantity("queue, longest from 1 s on", "KB", ({ most }) => most),
      large: quantity("feedback above 1", "% of all above 0", ({ large }) => large),
    }),
    oscillation: quantity(
      "standard deviation of the queue with 250 us / with 1 us",
      "",
      ({ far, near }) => far.figures.deviation / near.figures.deviation,
    ),
    time: quantity("time with 250 us / with 1 us, where the queue neither empties nor fills", "", ({ far, near }) =>
      assumed(far) ? far.figures.converged / near.figures.converged : undefined,
    ),
  },
  statements: [
    statement(
      "However, as the round trip delay increases, the queue length will become more oscillated.",
      "section V-B3",
      "the queue deviates by more with 250 us than with 1 us",
      [more("oscillation")],
      undefined,
      SHORT_ROUND_TRIPS,
    ),
    statement(
      "If the queue length still satisfies the fourth assumption, the convergence time will slightly decrease due to larger feedback values.",
      "section V-B3",
      "with 250 us less than with 1 us, and at least half of it",
      [within("time", 0.5, 0.9)],
      undefined,
      SHORT_ROUND_TRIPS,
    ),
    statement(
      kSooner,
      kWhere,
      "as packets, where the round trip makes it oscillate: with 250 us less than with 1 us",
      [less("time")],
      undefined,
      SHORT_ROUND_TRIPS,
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: kNames.map((name) => ({ name, file: "qcn/shu-uneven-start.yaml", set: kDelays[name].set })),
    seeds: SEEDS,
    see: (runs) => byName(kNames, (name) => seeTrip(runs[name] as Evidence)),
    typical: (all) =>
      byName(kNames, (name) => ({
        ...(all[0] as Trips)[name],
        figures: mediansOf(all.map((one) => one[name].figures)),
      })),
    sim_seconds: 12,
  },
  plots: (trips) =>
    kNames.flatMap((name) => [
      ratePlot(`Links of ${kDelays[name].label}: rates`, rateCurves(trips[name].rates), END),
      { ...queuePlot(lengthOf(trips[name].run), END), title: `Links of ${kDelays[name].label}: queue length` },
    ]),
});
