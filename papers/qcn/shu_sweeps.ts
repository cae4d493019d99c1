/**
 * Figures 7 to 11 of Shu et al.: effect of parameters and variants on the convergence time. They run by the paper's own model, as
 * in the paper, and, if there is such a parameter, as packets.
 */

import { evenness, movingMean } from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import type { Evidence, Experiment } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  byName,
  less,
  type Measured,
  MORE_OR_LESS,
  mediansOf,
  more,
  namesOf,
  quantity,
  type StatementsOn,
  statement,
  studyOf,
  within,
} from "../engine/study.js";
import { CHANCE_OF_FEEDBACK, HAS_A_SOLUTION, LARGE_FEEDBACK } from "./causes.js";
import { CONVERGED, evennessPlot, followModel, type ModelCase, type ModelRun, modelPlots } from "./convergence.js";
import { shuFigure } from "./papers.js";
import { BY_CHANCE, END, rateCurves, ratePlot, ratesOf, SEEDS, WINDOW } from "./two_flows.js";

const kStart = "Two flows start at 900 and 100 Mb/s on a link of 1 Gb/s; the baseline but for what the figure varies.";
const kAsPackets = "The paper has these curves from its model; as packets, rates are means of 0.5 s over 20 s.";

/** One curve, and the overrides that make it as packets. */
interface SweepCase extends ModelCase {
  set?: readonly string[];
}

/** Figures that any clock shows of each case. */
interface Seen<Name extends string> {
  /** Convergence times, s. */
  times: Readonly<Record<Name, number>>;
  plots: readonly Plot[];
  /** Runs of the model. */
  runs?: Readonly<Record<Name, ModelRun>>;
}

/** One figure that varies one thing: the convergence time of each case is the quantity named after it. */
interface Sweep<Name extends string, Derived extends string>
  extends Pick<Experiment, "id" | "paper" | "place" | "title"> {
  choices?: readonly string[];
  /** They run as packets too if each has overrides. */
  cases: Readonly<Record<Name, SweepCase>>;
  /** Quantities made from the times. */
  derived: Readonly<Record<Derived, Measured<Seen<NoInfer<Name>>>>>;
  statements: StatementsOn<Record<NoInfer<Name> | NoInfer<Derived>, unknown>>;
  /** Length of the plots, s. */
  seconds?: number;
}

export function sweep<Name extends string, Derived extends string>(figure: Sweep<Name, Derived>): Experiment {
  const { cases, derived, choices = [], seconds, ...facts } = figure;
  const names = namesOf(cases);
  const trials = names.flatMap((name) => {
    const { set } = cases[name];
    return set ? [{ name, file: "qcn/shu-uneven-start.yaml", set }] : [];
  });
  const asPackets = trials.length === names.length;
  const converged = (name: Name) =>
    quantity(`converged, ${cases[name].label}`, "s", ({ times }: Seen<Name>) => times[name]);
  return studyOf<Seen<Name>>()({
    ...facts,
    setup: kStart,
    choices: [CONVERGED, MORE_OR_LESS, ...(asPackets ? [kAsPackets, BY_CHANCE] : []), ...choices],
    quantities: { ...byName(names, converged), ...derived },
    plots: ({ plots }) => plots,
    ...(asPackets && {
      network: {
        clocks: ["wire", "sim"] as const,
        trials,
        seeds: SEEDS,
        typical: (all) => ({ ...(all[0] as Seen<Name>), times: mediansOf(all.map(({ times }) => times)) }),
        see: (runs) => {
          const found = byName(names, (name) => ({ ...cases[name], ...ratesOf(runs[name] as Evidence) }));
          return {
            times: byName(names, (name) => found[name].converged),
            plots: networkPlots(Object.values(found), seconds),
          };
        },
        sim_seconds: 4 * trials.length,
      },
    }),
    model: () => {
      const runs = byName(names, (name) => followModel(cases[name]));
      const times = byName(names, (name) => runs[name].converged);
      return { times, runs, plots: modelPlots(Object.values(runs), seconds) };
    },
  });
}

function networkPlots(found: readonly ({ label: string } & ReturnType<typeof ratesOf>)[], seconds = END) {
  const smooth = found.map(({ label, all }) => ({
    label,
    all: Object.fromEntries(Object.entries(all).map(([id, one]) => [id, movingMean(one, WINDOW)])),
  }));
  return [
    ratePlot(
      "Rates, means of 0.5 s: RP 1 solid, RP 2 dashed",
      smooth.flatMap(({ label, all }, color) =>
        rateCurves(all).map((curve, flow) => ({
          ...curve,
          label: flow === 0 ? label : "",
          color,
          style: flow === 0 ? ("solid" as const) : ("dashed" as const),
        })),
      ),
      seconds,
    ),
    evennessPlot(
      smooth.map(({ label, all }) => {
        const { time, values } = evenness(Object.values(all));
        return { label, x: time, y: values };
      }),
      seconds,
    ),
  ];
}

/** A quantity made from times; two that are both beyond the run have no ratio. */
function derive<Case extends string>(label: string, of: (times: Readonly<Record<Case, number>>) => number) {
  return quantity(label, "", ({ times }: Seen<Case>) => {
    const value = of(times);
    return Number.isNaN(value) ? undefined : value;
  });
}

/** a / b of two times. */
export function ratio<Case extends string>(label: string, over: Case, under: Case) {
  return derive<Case>(label, (times) => times[over] / times[under]);
}

const figure7 = sweep({
  ...shuFigure(7),
  title: "rate evolution with different G_d",
  cases: {
    gd_16: { label: "G_d 1/16", input: { gd: 1 / 16 }, set: ["congestion.parameters.rpgGd=4"] },
    gd_64: { label: "G_d 1/64", input: { gd: 1 / 64 }, set: ["congestion.parameters.rpgGd=6"] },
    gd_128: { label: "G_d 1/128 (standard)", input: {}, set: [] },
    gd_256: { label: "G_d 1/256", input: { gd: 1 / 256 }, set: ["congestion.parameters.rpgGd=8"] },
  },
  derived: {
    halved: ratio("time with G_d 1/16 / with 1/128", "gd_16", "gd_128"),
    least_step: derive(
      "smallest ratio of times from one G_d to the next smaller",
      ({ gd_16, gd_64, gd_128, gd_256 }: Readonly<Record<"gd_16" | "gd_64" | "gd_128" | "gd_256", number>>) =>
        Math.min(gd_64 / gd_16, gd_128 / gd_64, gd_256 / gd_128),
    ),
  },
  statements: [
    statement(
      "As G_d increases, the convergence time decreases.",
      "section V-B1",
      "each G_d has a shorter time than the next smaller one",
      [more("least_step")],
      "Chance has more to say than G_d. The model follows expectations.",
      LARGE_FEEDBACK,
    ),
    statement(
      "Even when G_d = 1/16, the convergence time only decreases by half.",
      "section V-B1",
      "0.4 to 0.6 of the time with 1/128",
      [within("halved", 0.4, 0.6)],
      "Chance has more to say than G_d. The model follows expectations.",
      LARGE_FEEDBACK,
    ),
  ],
});

const figure8 = sweep({
  ...shuFigure(8),
  title: "rate evolution with different R_AI",
  cases: {
    ai_05: { label: "R_AI 0.5 Mb/s (standard)", input: {}, set: [] },
    ai_1: { label: "R_AI 1 Mb/s", input: { rpg_ai_rate: 1e6 }, set: ["congestion.parameters.rpgAiRate=1Mbps"] },
    ai_5: { label: "R_AI 5 Mb/s", input: { rpg_ai_rate: 5e6 }, set: ["congestion.parameters.rpgAiRate=5Mbps"] },
  },
  derived: {
    twice: ratio("time with 1 Mb/s / with 0.5 Mb/s", "ai_1", "ai_05"),
    tenfold: ratio("time with 5 Mb/s / with 0.5 Mb/s", "ai_5", "ai_05"),
  },
  statements: [
    statement(
      "We can see that as R_AI increases, the convergence time dramatically decreases",
      "section V-B1",
      "shorter with 1 Mb/s, and at most a third with 5 Mb/s",
      [less("twice"), atMost("tenfold", 1 / 3)],
      "As packets a third of all feedback is more than 1 with 5 Mb/s, which the model's assumption 5 excludes; such cuts swing the rates apart again.",
      LARGE_FEEDBACK,
    ),
  ],
});

const figure9 = sweep({
  ...shuFigure(9),
  title: "rate evolution with different T_AI",
  choices: ["As packets T_AI is that of both counters, as the standard's is: with 37.5 KB the timer's is 3.75 ms."],
  cases: {
    tai_37: {
      label: "T_AI 37.5 KB",
      input: { ai_cycle: 0.25 },
      set: ["congestion.parameters.rpgAiCycle=25%"],
    },
    tai_75: { label: "T_AI 75 KB (standard)", input: {}, set: [] },
    tai_150: { label: "T_AI 150 KB", input: { ai_cycle: 1 }, set: ["congestion.parameters.rpgAiCycle=100%"] },
  },
  derived: {
    shorter: ratio("time with 37.5 KB / with 75 KB", "tai_37", "tai_75"),
    longer: ratio("time with 150 KB / with 75 KB", "tai_150", "tai_75"),
  },
  statements: [
    statement(
      "The impact of T_AI is opposite to that of R_AI.",
      "section V-B1",
      "shorter with 37.5 KB than with 75 KB, longer with 150 KB",
      [less("shorter"), more("longer")],
      undefined,
      CHANCE_OF_FEEDBACK,
    ),
  ],
  seconds: 30,
});

const figure10 = sweep({
  ...shuFigure(10),
  title: "rate evolution with different timer periods",
  cases: {
    byte_counter: { label: "byte counter (standard)", input: {}, set: [] },
    timer_2_4: {
      label: "timer 2.4 ms",
      input: { variant: "qcn-t", rpg_time_reset: 2.4e6 },
      set: ["congestion.variant=qcn-t", "congestion.parameters.rpgTimeReset=2.4ms"],
    },
    timer_10: {
      label: "timer 10 ms",
      input: { variant: "qcn-t", rpg_time_reset: 10e6 },
      set: ["congestion.variant=qcn-t", "congestion.parameters.rpgTimeReset=10ms"],
    },
    timer_15: {
      label: "timer 15 ms",
      input: { variant: "qcn-t", rpg_time_reset: 15e6 },
      set: ["congestion.variant=qcn-t", "congestion.parameters.rpgTimeReset=15ms"],
    },
  },
  derived: {
    fast: ratio("time of the byte counter / of the timer of 2.4 ms", "byte_counter", "timer_2_4"),
    slow: ratio("time of the byte counter / of the timer of 10 ms", "byte_counter", "timer_10"),
    solved: quantity(
      "share of the first 20 s for which 15 ms has a solution",
      "",
      ({ runs }: Seen<"timer_15">) =>
        runs && Math.min(1, (runs.timer_15.convergence.series.time.at(-1) ?? Number.NaN) / 20e9),
    ),
  },
  choices: ["The paper draws no curve for 15 ms."],
  statements: [
    statement(
      "When T_t = 2.4 milliseconds, the convergence time of QCN is reduced by several times.",
      "section V-B2",
      "the byte counter takes at least 3 times as long",
      [atLeast("fast", 3)],
      undefined,
      CHANCE_OF_FEEDBACK,
    ),
    statement(
      "Even the standard Timer parameter also reduces the convergence time of QCN.",
      "section V-B2",
      "10 ms, which the paper takes for it, is faster than the byte counter",
      [more("slow")],
      undefined,
      CHANCE_OF_FEEDBACK,
    ),
    statement(
      "If T_t = 15 milliseconds, sum E(dR_i) = 0 does not always have a solution, that is, the so slow rate increase interval could not guarantee the stability of QCN.",
      "section V-B2",
      "the model comes to rates for which it has none",
      [atMost("solved", 0.99)],
      undefined,
      HAS_A_SOLUTION,
    ),
  ],
});

const figure11 = sweep({
  ...shuFigure(11),
  title: "rate evolution of QCN-AIMD",
  cases: {
    qcn: { label: "QCN, R_AI 0.5 Mb/s", input: {}, set: [] },
    aimd_05: { label: "AIMD, R_AI 0.5 Mb/s", input: { variant: "qcn-aimd" }, set: ["congestion.variant=qcn-aimd"] },
    aimd_5: {
      label: "AIMD, R_AI 5 Mb/s",
      input: { variant: "qcn-aimd", rpg_ai_rate: 5e6 },
      set: ["congestion.variant=qcn-aimd", "congestion.parameters.rpgAiRate=5Mbps"],
    },
  },
  derived: {
    same_step: ratio("time of QCN / of AIMD with the same R_AI", "qcn", "aimd_05"),
    larger_step: ratio("time of AIMD with 0.5 Mb/s / with 5 Mb/s", "aimd_05", "aimd_5"),
    slight: derive(
      "gain of the mechanism / gain of the larger R_AI",
      ({ qcn, aimd_05, aimd_5 }: Readonly<Record<"qcn" | "aimd_05" | "aimd_5", number>>) =>
        qcn / aimd_05 / (aimd_05 / aimd_5),
    ),
  },
  statements: [
    statement(
      "For the same R_AI, the AIMD mechanism could speed up the convergence process.",
      "section V-B2",
      "with 0.5 Mb/s AIMD takes less time than QCN",
      [more("same_step")],
      "As packets QCN has its timer, too, by which a slow flow comes to hyper-active increase; the model has not, and AIMD has neither.",
      LARGE_FEEDBACK,
    ),
    statement(
      "But the impact is slight compared with the impact of increasing R_AI.",
      "section V-B2",
      "the factor that AIMD gains is at most half of the one that ten times R_AI gains",
      [atMost("slight", 0.5)],
      undefined,
      LARGE_FEEDBACK,
    ),
  ],
});

export const SHU_SWEEPS: readonly Experiment[] = [figure7, figure8, figure9, figure10, figure11];
