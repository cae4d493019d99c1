/** Figures 3 and 4 of Shu et al.: probability of feedback and convergence time by the paper's own model (src/models/qcn). */
import { feedbackProbability, QCN_BASELINE } from "../../models/qcn/index.js";
import { type Experiment, statement } from "../experiment.js";
import { CONVERGED, followModel, LINK } from "./convergence.js";
import { SHU } from "./papers.js";

/** Larger rates of the two flows in figure 3, and the highest in figure 4, Mb/s. */
const kLarger = Array.from({ length: 80 }, (_, i) => 505 + 5 * i);
const kHighest = 950;

export const SHU_FIGURE_3: Experiment = {
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

export const SHU_FIGURE_4: Experiment = {
  id: "qcn-shu-fig4",
  paper: SHU,
  place: "figure 4",
  title: "convergence time with different initial rates",
  setup: "The model's convergence time of two flows on 1 Gb/s, the larger of which starts at up to 950 Mb/s.",
  choices: [CONVERGED, "What section V-B3 says of faster links is judged here: the same start at ten times all rates."],
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
