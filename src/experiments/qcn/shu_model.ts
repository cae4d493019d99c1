/**
 * Figures 3, 4 and 7 to 11 of Shu et al.: what the paper's own model says of QCN's convergence. The model is in
 * src/models/qcn; here are the parameters of each figure and what the paper reads off them.
 */
import { feedbackProbability, QCN_BASELINE } from "../../models/qcn/index.js";
import type { Experiment, Observation, Quantity, Statement } from "../experiment.js";
import { followModel, LINK, type ModelCase, type ModelRun, modelPlots } from "./convergence.js";
import { SHU } from "./papers.js";

const kStart = "Two flows start at 900 and 100 Mb/s on a link of 1 Gb/s; the baseline but for what the figure varies.";
const kConverged =
  "Converged: the smaller rate first has 0.9 of the larger (the paper's line of epsilon = 0.9, section V-B).";

/** Convergence times by name of the case, s. */
type Times = Readonly<Record<string, number>>;

/** One figure that varies one thing: the convergence time of each case is the quantity named after it. */
interface Sweep extends Pick<Experiment, "id" | "place" | "title" | "statements"> {
  choices?: readonly string[];
  cases: Readonly<Record<string, ModelCase>>;
  /** Quantities made from the times, by name. */
  derived?: Readonly<
    Record<string, Quantity & { of: (times: Times, runs: Readonly<Record<string, ModelRun>>) => number }>
  >;
  /** Length of the plots, s. */
  seconds?: number;
}

function sweep({ cases, derived = {}, choices = [], seconds, ...facts }: Sweep): Experiment {
  const quantities = Object.entries(cases).map(([name, { label }]): [string, Quantity] => [
    name,
    { label: `converged, ${label}`, unit: "s" },
  ]);
  const further = Object.entries(derived).map(([name, { label, unit }]): [string, Quantity] => [name, { label, unit }]);
  return {
    ...facts,
    paper: SHU,
    setup: kStart,
    choices: [kConverged, ...choices],
    quantities: Object.fromEntries([...quantities, ...further]),
    model: (): Observation => {
      const runs = Object.fromEntries(Object.entries(cases).map(([name, one]) => [name, followModel(one)]));
      const times = Object.fromEntries(Object.entries(runs).map(([name, { converged }]) => [name, converged]));
      const more = Object.entries(derived).map(([name, { of }]) => [name, of(times, runs)]);
      return {
        values: { ...times, ...Object.fromEntries(more) },
        plots: modelPlots(Object.values(runs), seconds),
      };
    },
  };
}

/** a / b of two times by name. */
const ratio = (label: string, over: string, under: string) => ({
  label,
  unit: "",
  of: (times: Times) => (times[over] as number) / (times[under] as number),
});

const statement = (quote: string, where: string, reading: string, checks: Statement["checks"], remark?: string) => ({
  quote,
  where,
  reading,
  checks,
  ...(remark !== undefined && { remark }),
});

const figure7 = sweep({
  id: "qcn-shu-fig7",
  place: "figure 7",
  title: "rate evolution with different G_d",
  cases: {
    gd_16: { label: "G_d 1/16", input: { gd: 1 / 16 } },
    gd_64: { label: "G_d 1/64", input: { gd: 1 / 64 } },
    gd_128: { label: "G_d 1/128 (standard)", input: {} },
    gd_256: { label: "G_d 1/256", input: { gd: 1 / 256 } },
  },
  derived: {
    halved: ratio("time with G_d 1/16 / with 1/128", "gd_16", "gd_128"),
    least_step: {
      label: "smallest ratio of times from one G_d to the next smaller",
      unit: "",
      of: ({ gd_16 = 0, gd_64 = 0, gd_128 = 0, gd_256 = 0 }) =>
        Math.min(gd_64 / gd_16, gd_128 / gd_64, gd_256 / gd_128),
    },
  },
  statements: [
    statement(
      "As G_d increases, the convergence time decreases.",
      "section V-B1",
      "each G_d has a shorter time than the next smaller one",
      [{ quantity: "least_step", min: 1.01 }],
    ),
    statement(
      "Even when G_d = 1/16, the convergence time only decreases by half.",
      "section V-B1",
      "0.4 to 0.6 of the time with 1/128",
      [{ quantity: "halved", min: 0.4, max: 0.6 }],
    ),
  ],
});

const figure8 = sweep({
  id: "qcn-shu-fig8",
  place: "figure 8",
  title: "rate evolution with different R_AI",
  cases: {
    ai_05: { label: "R_AI 0.5 Mb/s (standard)", input: {} },
    ai_1: { label: "R_AI 1 Mb/s", input: { rpg_ai_rate: 1e6 } },
    ai_5: { label: "R_AI 5 Mb/s", input: { rpg_ai_rate: 5e6 } },
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
      [
        { quantity: "twice", max: 0.99 },
        { quantity: "tenfold", max: 1 / 3 },
      ],
    ),
  ],
});

const figure9 = sweep({
  id: "qcn-shu-fig9",
  place: "figure 9",
  title: "rate evolution with different T_AI",
  cases: {
    tai_37: { label: "T_AI 37.5 KB", input: { ai_cycle: 0.25 } },
    tai_75: { label: "T_AI 75 KB (standard)", input: {} },
    tai_150: { label: "T_AI 150 KB", input: { ai_cycle: 1 } },
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
      [
        { quantity: "shorter", max: 0.99 },
        { quantity: "longer", min: 1.01 },
      ],
    ),
  ],
  seconds: 30,
});

const figure10 = sweep({
  id: "qcn-shu-fig10",
  place: "figure 10",
  title: "rate evolution with different timer periods",
  cases: {
    byte_counter: { label: "byte counter (standard)", input: {} },
    timer_2_4: { label: "timer 2.4 ms", input: { variant: "qcn-t", rpg_time_reset: 2.4e6 } },
    timer_10: { label: "timer 10 ms", input: { variant: "qcn-t", rpg_time_reset: 10e6 } },
    timer_15: { label: "timer 15 ms", input: { variant: "qcn-t", rpg_time_reset: 15e6 } },
  },
  derived: {
    fast: ratio("time of the byte counter / of the timer of 2.4 ms", "byte_counter", "timer_2_4"),
    slow: ratio("time of the byte counter / of the timer of 10 ms", "byte_counter", "timer_10"),
    solved: {
      label: "share of the first 20 s for which 15 ms has a solution",
      unit: "",
      of: (_times, { timer_15 }) => Math.min(1, (timer_15?.convergence.series.time.at(-1) ?? 0) / 20e9),
    },
  },
  choices: ["The paper draws no curve for 15 ms."],
  statements: [
    statement(
      "When T_t = 2.4 milliseconds, the convergence time of QCN is reduced by several times.",
      "section V-B2",
      "the byte counter takes at least 3 times as long",
      [{ quantity: "fast", min: 3 }],
    ),
    statement(
      "Even the standard Timer parameter also reduces the convergence time of QCN.",
      "section V-B2",
      "10 ms, which the paper takes for it, is faster than the byte counter",
      [{ quantity: "slow", min: 1.01 }],
    ),
    statement(
      "If T_t = 15 milliseconds, sum E(dR_i) = 0 does not always have a solution, that is, the so slow rate increase interval could not guarantee the stability of QCN.",
      "section V-B2",
      "the model comes to rates for which it has none",
      [{ quantity: "solved", max: 0.99 }],
      "By equation 26 increases between two cuts become fewer as the timer becomes slower, so a slower timer has a solution wherever a faster one has.",
    ),
  ],
});

const figure11 = sweep({
  id: "qcn-shu-fig11",
  place: "figure 11",
  title: "rate evolution of QCN-AIMD",
  cases: {
    qcn: { label: "QCN, R_AI 0.5 Mb/s", input: {} },
    aimd_05: { label: "AIMD, R_AI 0.5 Mb/s", input: { variant: "qcn-aimd" } },
    aimd_5: { label: "AIMD, R_AI 5 Mb/s", input: { variant: "qcn-aimd", rpg_ai_rate: 5e6 } },
  },
  derived: {
    same_step: ratio("time of QCN / of AIMD with the same R_AI", "qcn", "aimd_05"),
    larger_step: ratio("time of AIMD with 0.5 Mb/s / with 5 Mb/s", "aimd_05", "aimd_5"),
    slight: {
      label: "gain of the mechanism / gain of the larger R_AI",
      unit: "",
      of: ({ qcn = 0, aimd_05 = 1, aimd_5 = 1 }) => qcn / aimd_05 / (aimd_05 / aimd_5),
    },
  },
  statements: [
    statement(
      "For the same R_AI, the AIMD mechanism could speed up the convergence process.",
      "section V-B2",
      "with 0.5 Mb/s AIMD takes less time than QCN",
      [{ quantity: "same_step", min: 1.01 }],
    ),
    statement(
      "But the impact is slight compared with the impact of increasing R_AI.",
      "section V-B2",
      "the factor that AIMD gains is at most half of the one that ten times R_AI gains",
      [{ quantity: "slight", max: 0.5 }],
    ),
  ],
});

/** Larger rates of the two flows in figure 3, and the highest in figure 4, Mb/s. */
const kLarger = Array.from({ length: 80 }, (_, i) => 505 + 5 * i);
const kHighest = 950;

const figure3: Experiment = {
  id: "qcn-shu-fig3",
  paper: SHU,
  place: "figure 3",
  title: "probability of feedback at different rates",
  setup: "The model's p[F_b > 0] for two flows on 1 Gb/s, the larger of which sends at 505, 510, ... 900 Mb/s.",
  choices: [
    "The paper does not say which rates its CDF is over; its experiments start at 900 Mb/s at most, so that is where these end.",
  ],
  quantities: {
    least: { label: "p[F_b > 0], smallest", unit: "" },
    most: { label: "p[F_b > 0], largest", unit: "" },
    spread: { label: "(largest - smallest) / middle", unit: "" },
  },
  statements: [
    statement("p[F_b>0] ~ 0.2 according to computation", "section IV-B", "0.15 to 0.25 at all rates", [
      { quantity: "least", min: 0.15 },
      { quantity: "most", max: 0.25 },
    ]),
    statement(
      "We can see that the sending rate poses little impact on p[F_b>0]",
      "section IV-B",
      "while the rate almost doubles, p changes by at most a quarter",
      [{ quantity: "spread", max: 0.25 }],
    ),
  ],
  model: () => {
    const points = kLarger.map((rate) => ({ rate, p: probabilityAt(rate) }));
    const sorted = points.map(({ p }) => p).sort((a, b) => a - b);
    const [least = 0] = sorted;
    const most = sorted.at(-1) ?? 0;
    const middle = sorted[sorted.length >> 1] ?? 1;
    return {
      values: { least, most, spread: (most - least) / middle },
      plots: [
        {
          title: "Distribution over the rates",
          x_label: "p[F_b > 0]",
          y_label: "fraction",
          x_range: [0, 0.3],
          y_range: [0, 1.02],
          curves: [{ label: "", x: sorted, y: sorted.map((_, i) => (i + 1) / sorted.length), stepped: true }],
        },
        {
          title: "By the larger rate",
          x_label: "R_1, Mb/s",
          y_label: "p[F_b > 0]",
          x_range: [500, 900],
          y_range: [0, 0.3],
          curves: [{ label: "", x: points.map(({ rate }) => rate), y: points.map(({ p }) => p) }],
        },
      ],
    };
  },
};

const figure4: Experiment = {
  id: "qcn-shu-fig4",
  paper: SHU,
  place: "figure 4",
  title: "convergence time with different initial rates",
  setup: "The model's convergence time of two flows on 1 Gb/s, the larger of which starts at up to 950 Mb/s.",
  choices: [
    kConverged,
    "What section V-B3 says of faster links is judged here: the same start at ten times all rates.",
  ],
  quantities: {
    from_900: { label: "converged from 900 and 100 Mb/s", unit: "s" },
    from_700: { label: "converged from 700 and 300 Mb/s", unit: "s" },
    middle_speed: { label: "fall of R_1 from 900 to 600 Mb/s", unit: "Mb/s per s" },
    low_speed: { label: "fall of R_1 from 600 Mb/s to convergence", unit: "Mb/s per s" },
    high_speed: { label: "fall of R_1 from 950 to 900 Mb/s", unit: "Mb/s per s" },
    times_outside: { label: "the faster of the two outside / that from 900 to 600", unit: "" },
    bandwidth: { label: "time on 10 Gb/s / on 1 Gb/s", unit: "" },
    bandwidth_step: { label: "the same with ten times R_AI", unit: "" },
  },
  statements: [
    statement(
      "Observing Figure 4, we found that R_1 converges fast from 600 Mbps to 900 Mbps.",
      "section V-A",
      "in that range it falls faster than above and below it",
      [{ quantity: "times_outside", max: 0.99 }],
    ),
    statement(
      "Given a determined byte threshold, the convergence time will reduce to be 1/m when the link bandwidth is amplified to be m times of the original value.",
      "section V-B3",
      "on 10 Gb/s 0.09 to 0.11 of the time on 1 Gb/s",
      [{ quantity: "bandwidth", min: 0.09, max: 0.11 }],
      "In the model the step R_AI stays what it is, and is a tenth as large a part of a rate on 10 Gb/s. With ten times R_AI, as the standard has it on 10 Gb/s (section II), the statement is exact.",
    ),
  ],
  model: () => {
    // The rates add up to the link's, so one number is the whole state: a run from 950 Mb/s passes through every other start.
    const { convergence, converged } = followModel({ label: "", input: {}, rates: ratesFrom(kHighest) }, true);
    const { time, rates } = convergence.series;
    const points = time.map((ns, i) => ({ rate: (rates[0]?.[i] ?? 0) / 1e6, left: converged - ns / 1e9 })).reverse();
    const timeFrom = (rate: number) => {
      const after = Math.max(
        1,
        points.findIndex((point) => point.rate >= rate),
      );
      const [low, high] = [points[after - 1], points[after]] as [(typeof points)[0], (typeof points)[0]];
      return low.left + ((rate - low.rate) / (high.rate - low.rate)) * (high.left - low.left);
    };
    const [t600, t900] = [timeFrom(600), timeFrom(900)];
    // Converged: R_1 / R_2 = 1 / 0.9.
    const end = 1000 / 1.9;
    const speeds = { middle: 300 / (t900 - t600), low: (600 - end) / t600, high: 50 / (converged - t900) };
    const fast = (more: object) =>
      followModel({ label: "", input: { bandwidth: 10 * LINK, ...more }, rates: [9e9, 1e9] }, true).converged;
    return {
      values: {
        from_900: t900,
        from_700: timeFrom(700),
        middle_speed: speeds.middle,
        low_speed: speeds.low,
        high_speed: speeds.high,
        times_outside: Math.max(speeds.low, speeds.high) / speeds.middle,
        bandwidth: fast({}) / t900,
        bandwidth_step: fast({ rpg_ai_rate: 10 * QCN_BASELINE.rpg_ai_rate }) / t900,
      },
      plots: [
        {
          title: "Convergence time",
          x_label: "initial R_1, Mb/s",
          y_label: "time, s",
          x_range: [500, kHighest],
          curves: [{ label: "", x: points.map(({ rate }) => rate), y: points.map(({ left }) => left) }],
          marks: [
            { label: "600", x: 600 },
            { label: "900", x: 900 },
          ],
        },
      ],
    };
  },
};

function ratesFrom(larger: number): [number, number] {
  return [larger * 1e6, LINK - larger * 1e6];
}

function probabilityAt(larger: number): number {
  const solution = feedbackProbability(QCN_BASELINE, ratesFrom(larger));
  if (!solution.solved) throw new Error(`no p at ${larger} Mb/s`);
  return solution.probability;
}

export const SHU_MODEL_FIGURES: readonly Experiment[] = [
  figure3,
  figure4,
  figure7,
  figure8,
  figure9,
  figure10,
  figure11,
];
