/** Figures 3 and 4 of Shu et al.: probability of feedback and convergence time by the paper's own model (papers/qcn/model). */

import { atLeast, atMost, less, plot, quantity, statement, studyOf, within } from "../engine/study.js";
import { CONVERGED, followModel, LINK } from "./convergence.js";
import { feedbackProbability, QCN_BASELINE } from "./model/index.js";
import { shuFigure } from "./papers.js";

/** Larger rates of the two flows in figure 3, and the highest in figure 4, Mb/s. */
const kLarger = Array.from({ length: 80 }, (_, i) => 505 + 5 * i);
const kHighest = 950;

interface Probabilities {
  points: readonly { rate: number; p: number }[];
  /** Values of p, from the least. */
  sorted: readonly number[];
}
const least = ({ sorted }: Probabilities) => sorted[0] ?? 0;
const most = ({ sorted }: Probabilities) => sorted.at(-1) ?? 0;

export const SHU_FIGURE_3 = studyOf<Probabilities>()({
  ...shuFigure(3),
  title: "probability of feedback at different rates",
  setup: "The model's p[F_b > 0] for two flows on 1 Gb/s, the larger of which sends at 505, 510, ... 900 Mb/s.",
  choices: [
    "The paper does not say which rates its CDF is over; its experiments start at 900 Mb/s at most, so that is where these end.",
  ],
  quantities: {
    least: quantity("p[F_b > 0], smallest", "", least),
    most: quantity("p[F_b > 0], largest", "", most),
    spread: quantity(
      "(largest - smallest) / middle",
      "",
      (seen) => (most(seen) - least(seen)) / (seen.sorted[seen.sorted.length >> 1] ?? 1),
    ),
  },
  statements: [
    statement("p[F_b>0] ~ 0.2 according to computation", "section IV-B", "0.15 to 0.25 at all rates", [
      atLeast("least", 0.15),
      atMost("most", 0.25),
    ]),
    statement(
      "We can see that the sending rate poses little impact on p[F_b>0]",
      "section IV-B",
      "while the rate almost doubles, p changes by at most a quarter",
      [atMost("spread", 0.25)],
    ),
  ],
  model: () => {
    const points = kLarger.map((rate) => ({ rate, p: probabilityAt(rate) }));
    return { points, sorted: points.map(({ p }) => p).sort((a, b) => a - b) };
  },
  plots: ({ points, sorted }) => [
    plot(
      "Distribution over the rates",
      ["p[F_b > 0]", 0, 0.3],
      ["fraction", 0, 1.02],
      [{ label: "", x: sorted, y: sorted.map((_, i) => (i + 1) / sorted.length), stepped: true }],
    ),
    plot(
      "By the larger rate",
      ["R_1, Mb/s", 500, 900],
      ["p[F_b > 0]", 0, 0.3],
      [{ label: "", x: points.map(({ rate }) => rate), y: points.map(({ p }) => p) }],
    ),
  ],
});

/** Times to convergence, s: by the larger rate at the start on 1 Gb/s, Mb/s, and from 9 and 1 of 10 Gb/s. */
interface Times {
  points: readonly { rate: number; left: number }[];
  /** Time from the highest rate. */
  converged: number;
  from: (rate: number) => number;
  fast: { sameStep: number; tenfoldStep: number };
}
/** Rate at which R_1 / R_2 = 1 / 0.9. */
const kMet = 1000 / 1.9;
/** Speed at which R_1 falls: from 900 to 600, below and above that, Mb/s per s. */
const middleSpeed = ({ from }: Times) => 300 / (from(900) - from(600));
const lowSpeed = ({ from }: Times) => (600 - kMet) / from(600);
const highSpeed = ({ from, converged }: Times) => 50 / (converged - from(900));

export const SHU_FIGURE_4 = studyOf<Times>()({
  ...shuFigure(4),
  title: "convergence time with different initial rates",
  setup: "The model's convergence time of two flows on 1 Gb/s, the larger of which starts at up to 950 Mb/s.",
  choices: [CONVERGED, "What section V-B3 says of faster links is judged here: the same start at ten times all rates."],
  quantities: {
    from_900: quantity("converged from 900 and 100 Mb/s", "s", ({ from }) => from(900)),
    from_700: quantity("converged from 700 and 300 Mb/s", "s", ({ from }) => from(700)),
    middle_speed: quantity("fall of R_1 from 900 to 600 Mb/s", "Mb/s per s", middleSpeed),
    low_speed: quantity("fall of R_1 from 600 Mb/s to convergence", "Mb/s per s", lowSpeed),
    high_speed: quantity("fall of R_1 from 950 to 900 Mb/s", "Mb/s per s", highSpeed),
    times_outside: quantity(
      "the faster of the two outside / that from 900 to 600",
      "",
      (times) => Math.max(lowSpeed(times), highSpeed(times)) / middleSpeed(times),
    ),
    bandwidth: quantity(
      "time on 10 Gb/s / on 1 Gb/s, R_AI 0.5 Mb/s on both",
      "",
      ({ fast, from }) => fast.sameStep / from(900),
    ),
    bandwidth_step: quantity(
      "time on 10 Gb/s / on 1 Gb/s, R_AI 5 and 0.5 Mb/s",
      "",
      ({ fast, from }) => fast.tenfoldStep / from(900),
    ),
  },
  statements: [
    statement(
      "Observing Figure 4, we found that R_1 converges fast from 600 Mbps to 900 Mbps.",
      "section V-A",
      "in that range it falls faster than above and below it",
      [less("times_outside")],
    ),
    statement(
      "Given a determined byte threshold, the convergence time will reduce to be 1/m when the link bandwidth is amplified to be m times of the original value.",
      "section V-B3",
      "on 10 Gb/s, with the R_AI of 5 Mb/s that section II has there, 0.09 to 0.11 of the time on 1 Gb/s; with R_AI as it was, which is a tenth as large a part of a rate, in the table",
      [within("bandwidth_step", 0.09, 0.11)],
    ),
  ],
  model: () => {
    // The rates add up to the link's, so one number is the whole state: a run from 950 Mb/s passes through every other start.
    const { convergence, converged } = followModel({ label: "", input: {}, rates: ratesFrom(kHighest) }, true);
    const { time, rates } = convergence.series;
    const points = time.map((ns, i) => ({ rate: (rates[0]?.[i] ?? 0) / 1e6, left: converged - ns / 1e9 })).reverse();
    const from = (rate: number) => {
      const after = Math.max(
        1,
        points.findIndex((point) => point.rate >= rate),
      );
      const [low, high] = [points[after - 1], points[after]] as [(typeof points)[0], (typeof points)[0]];
      return low.left + ((rate - low.rate) / (high.rate - low.rate)) * (high.left - low.left);
    };
    const fast = (more: object) =>
      followModel({ label: "", input: { bandwidth: 10 * LINK, ...more }, rates: [9e9, 1e9] }, true).converged;
    const tenfoldStep = fast({ rpg_ai_rate: 10 * QCN_BASELINE.rpg_ai_rate });
    return { points, converged, from, fast: { sameStep: fast({}), tenfoldStep } };
  },
  plots: ({ points }) => [
    plot(
      "Convergence time",
      ["initial R_1, Mb/s", 500, kHighest],
      ["time, s"],
      [{ label: "", x: points.map(({ rate }) => rate), y: points.map(({ left }) => left) }],
      {
        marks: [
          { label: "600", x: 600 },
          { label: "900", x: 900 },
        ],
      },
    ),
  ],
});

function ratesFrom(larger: number): [number, number] {
  return [larger * 1e6, LINK - larger * 1e6];
}

function probabilityAt(larger: number): number {
  const solution = feedbackProbability(QCN_BASELINE, ratesFrom(larger));
  if (!solution.solved) throw new Error(`no p at ${larger} Mb/s`);
  return solution.probability;
}
