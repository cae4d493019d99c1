/** Figure 16 of the DCQCN paper, section 6.2: what users and a disk rebuild get as the degree of the incast grows from 2 to 10. */
import { mean } from "simple-statistics";
import type { Evidence } from "../engine/experiment.js";
import { atLeast, atMost, byName, dashed, grid, namesOf, plot, quantity, statement, studyOf } from "../engine/study.js";
import {
  benchmark,
  benchmarkGrid,
  type Grid,
  gridOf,
  kBenchmarkChoices,
  kShareNames,
  kShares,
  kWireChoice,
  nameAt,
  pointsOf,
  ratio,
  type Shares,
  shareQuantities,
  shares,
  spinePauses,
  wholeOf,
} from "./benchmark.js";
import { PAUSES_BY_TIME, USERS_TRAFFIC } from "./causes.js";
import { dcqcnFigure } from "./paper.js";
import {
  change,
  equal,
  higher,
  kLink,
  kSettings,
  linkRates,
  little,
  lower,
  printed,
  repeats,
  type Setting,
  timePaused,
} from "./testbed.js";

const kDegrees = [2, 4, 6, 8, 10] as const;
const [kFirst, kLast] = [2, 10] as const;
const kBoth = namesOf(kSettings);
const kWhere = "section 6.2";

/** Gives the incast the links nearly for itself. */
const kFewUsers = ["traffic.0.count=1", `traffic.1.degree=${kLast}`];

const kOthersTake =
  "Every sender's host sends to a pair's too, and in three of the five seeds users send to the incast's receiver, so the incast does not have these links for itself. With one pair in place of 20 the 10th percentile at degree 10 is the paper's, and the median nearly the same (below): the paper's users, whose trace was not published, took less of the same links.";

const someOf = (runs: readonly Evidence[]) => (runs.length > 0 ? runs : undefined);

interface Seen extends Grid {
  /** Shares at degree 10, beside one pair; simulated alone. */
  few: Readonly<Record<Setting, Shares>> | undefined;
}

/** Share at each degree; undefined: the clock has not all of them. */
const over = ({ at }: Grid, share: keyof Shares, setting: Setting) =>
  wholeOf(kDegrees.map((degree) => at(setting, degree)?.[share]));
const ratios = (a: readonly number[], b: readonly number[]) => a.map((value, i) => value / (b[i] as number));
const both = (a: readonly number[] | undefined, b: readonly number[] | undefined) => a && b && ratios(a, b);
const least = (values: readonly number[] | undefined) => values && Math.min(...values);
const most = (values: readonly number[] | undefined) => values && Math.max(...values);
/** The incast's 10th percentile as a share of 40 Gb/s divided by the degree. */
const ideal = (seen: Grid, setting: Setting) =>
  over(seen, "incast_p10", setting)?.map((rate, i) => rate / (kLink / (kDegrees[i] as number)));
const fall =
  (share: keyof Shares) =>
  ({ at }: Grid) =>
    ratio(at("pfc", kLast)?.[share], at("pfc", kFirst)?.[share]);
const gain =
  (share: keyof Shares) =>
  ({ at }: Grid) =>
    ratio(at("dcqcn", kLast)?.[share], at("pfc", kLast)?.[share]);
/** Change from degree 2 to those that the clock has. */
const changed =
  (share: keyof Shares) =>
  ({ at }: Grid) => {
    const known = kDegrees.map((degree) => at("dcqcn", degree)?.[share]).filter((value) => value !== undefined);
    return change(known, known[0] as number);
  };

export const DCQCN_FIGURE_16 = studyOf<Seen>()({
  ...dcqcnFigure(16),
  title: "user traffic and disk rebuild by degree of the incast",
  setup:
    "20 pairs of random hosts and an incast of degree 2, 4, 6, 8 and 10 on the testbed, with PFC alone and with DCQCN and PFC, five seeds each; and degree 10 beside one pair.",
  choices: [...kBenchmarkChoices, kWireChoice("degrees 2 and 10")],
  quantities: {
    ...shareQuantities(kDegrees, (degree) => `degree ${degree}`),
    fall_p50: quantity("users, median, PFC, degree 10 / degree 2", "", fall("users_p50")),
    fall_p10: quantity("users, 10th percentile, PFC, degree 10 / degree 2", "", fall("users_p10")),
    change_p50: quantity("users, median, DCQCN, largest change from degree 2", "%", changed("users_p50")),
    change_p10: quantity("users, 10th percentile, DCQCN, largest change from degree 2", "%", changed("users_p10")),
    gain_p50: quantity("users, median, DCQCN / PFC, degree 10", "", gain("users_p50")),
    gain_p10: quantity("users, 10th percentile, DCQCN / PFC, degree 10", "", gain("users_p10")),
    incast_total: quantity("incast, PFC, all senders together, largest change from degree 2", "%", ({ runs }) => {
      const totals = kDegrees.flatMap((degree) => {
        const own = runs("pfc", degree).map((run) => linkRates(run, "rebuild").reduce((all, rate) => all + rate, 0));
        return own.length === 0 ? [] : [mean(own)];
      });
      return change(totals, totals[0] as number);
    }),
    ...grid(
      kDegrees,
      ({ runs }: Seen, degree) => someOf(runs("pfc", degree)),
      (label, degree) => label.replace("*", `degree ${degree}`),
    )(
      {
        pauses: quantity("PFC frames at S1 and S2, PFC, *", "per s", spinePauses),
        paused: quantity("time paused, PFC, *, all links together", "s per s", (runs) => {
          const times = wholeOf(runs.map((run) => timePaused(run)));
          return times && mean(times);
        }),
      },
      dashed,
    ),
    pause_growth: quantity("PFC frames at S1 and S2, PFC, least growth from degree to degree", "", ({ runs }) => {
      const known = kDegrees.map((degree) => runs("pfc", degree)).filter((own) => own.length > 0);
      const frames = known.map(spinePauses);
      return Math.min(...ratios(frames.slice(1), frames));
    }),
    benefit: quantity("incast, 10th percentile, DCQCN / PFC, least of all degrees", "", (seen) =>
      least(both(over(seen, "incast_p10", "dcqcn"), over(seen, "incast_p10", "pfc"))),
    ),
    ideal_dcqcn: quantity("incast, 10th percentile / (40 Gb/s / degree), DCQCN, least of all degrees", "", (seen) =>
      least(ideal(seen, "dcqcn")),
    ),
    ideal_pfc: quantity("incast, 10th percentile / (40 Gb/s / degree), PFC, most of all degrees", "", (seen) =>
      most(ideal(seen, "pfc")),
    ),
    median_ratio: quantity("incast, median, DCQCN / PFC, most of all degrees", "", (seen) =>
      most(both(over(seen, "incast_p50", "dcqcn"), over(seen, "incast_p50", "pfc"))),
    ),
    even: quantity("incast, 10th percentile / median, DCQCN, least of all degrees", "", (seen) =>
      least(both(over(seen, "incast_p10", "dcqcn"), over(seen, "incast_p50", "dcqcn"))),
    ),
    ...grid(
      kBoth,
      ({ few }: Seen, setting) => few?.[setting],
      (label, setting) => `${label}, ${kSettings[setting].label}, degree 10, one pair`,
    )(
      {
        few_p50: quantity("incast, median", "Gb/s", ({ incast_p50 }) => incast_p50),
        few_p10: quantity("incast, 10th percentile", "Gb/s", ({ incast_p10 }) => incast_p10),
      },
      dashed,
    ),
  },
  statements: [
    statement(
      "Figure 16(a) and 16(b) show that without DCQCN, the throughput of user traffic falls rapidly, as the degree of incast goes up.",
      kWhere,
      "from degree 2 to 10, median and 10th percentile fall to half or less",
      [atMost("fall_p50", 0.5), atMost("fall_p10", 0.5)],
      undefined,
      USERS_TRAFFIC,
    ),
    statement(
      "even though the degree of incast goes up, the total traffic generated by incast senders stays the same (because the bottleneck is always at the receiver)",
      kWhere,
      "with PFC, the incast's senders together at each degree as at degree 2",
      [little("incast_total")],
      undefined,
      USERS_TRAFFIC,
    ),
    statement(
      "As the degree of incast goes up, more PAUSE messages are generated.",
      kWhere,
      "PFC frames that the spines receive, from each degree to the next",
      [higher("pause_growth")],
      "The time that links are paused grows with each degree. The frames at the spines become fewer from degree 8 on, as less crosses them: the users, 160 Gb/s together at degree 2, have 50 at degree 10.",
      PAUSES_BY_TIME,
    ),
    statement(
      "As a result, the performance of user traffic is much better.",
      kWhere,
      "with DCQCN, median and 10th percentile at degree 10 are twice those without or more",
      [atLeast("gain_p50", 2), atLeast("gain_p10", 2)],
      undefined,
      USERS_TRAFFIC,
    ),
    statement(
      "Indeed, with DCQCN, as the degree of incast goes up, there is little change in the median and tail throughput of user traffic",
      kWhere,
      "median and 10th percentile at each degree as at degree 2",
      [little("change_p50"), little("change_p10")],
      "At degree 10 most of the lowest users send from a host that the incast sends from, or to its receiver; at degree 2 few do.",
      USERS_TRAFFIC,
    ),
    statement(
      "The disk rebuild traffic also benefits from DCQCN because DCQCN helps divide the bandwidth fairly among competing flows.",
      kWhere,
      "the incast's 10th percentile at each degree is higher than without DCQCN",
      [higher("benefit")],
      `It is with eight and ten senders. ${kOthersTake}`,
      USERS_TRAFFIC,
    ),
    statement(
      "Figure 16(d) shows that with DCQCN, the 10th percentile throughput is very close to this value, indicating a high degree of fairness.",
      kWhere,
      "this value is 40 Gb/s divided by the degree; at each degree",
      [equal("ideal_dcqcn", 1)],
      kOthersTake,
      USERS_TRAFFIC,
    ),
    statement(
      "In contrast, without DCQCN, the 10th percentile throughput is much lower.",
      kWhere,
      "half of 40 Gb/s divided by the degree or less, at each degree",
      [atMost("ideal_pfc", 0.5)],
      "It is with eight and ten senders. Two are equal under PFC too, whatever their paths.",
      USERS_TRAFFIC,
    ),
    statement(
      "For example, with incast degree of 10, 10th percentile throughput without DCQCN is less than 1.12Gbps, while with DCQCN it is 3.43Gbps.",
      kWhere,
      "the lowest of 10 flows, mean of five seeds",
      [atMost(`incast_p10-${nameAt("pfc", kLast)}`, 1.12), printed(`incast_p10-${nameAt("dcqcn", kLast)}`, 3.43)],
      kOthersTake,
      USERS_TRAFFIC,
    ),
    statement(
      "Note that the median throughput (Figure 16(c)) with DCQCN appears to be lower.",
      kWhere,
      "the incast's median at each degree, with DCQCN and without",
      [lower("median_ratio")],
      "It is with two and four senders. With ten, the most that one sender gets with PFC is 9.6 Gb/s in the mean of the seeds, and the others' median falls with it.",
      USERS_TRAFFIC,
    ),
    statement(
      "With DCQCN, median and 10th percentile values are nearly identical.",
      kWhere,
      "of the incast, at each degree",
      [equal("even", 1)],
      kOthersTake,
      USERS_TRAFFIC,
    ),
  ],
  network: {
    clocks: ["wire", "sim"],
    trials: [
      ...benchmarkGrid("traffic.1.degree", kDegrees, [], [kFirst, kLast]),
      ...kBoth.flatMap((setting) => benchmark(`few-${setting}`, [...kFewUsers, ...kSettings[setting].set])),
    ],
    see: (runs, clock) => ({
      ...gridOf(runs),
      few: clock === "sim" ? byName(kBoth, (setting) => shares(repeats(runs, `few-${setting}`))) : undefined,
    }),
    sim_seconds: 100,
  },
  plots: (seen) =>
    kShareNames.map((share) =>
      plot(
        kShares[share],
        ["degree of the incast", kFirst, kLast],
        ["throughput, Gb/s"],
        [
          ...kBoth.map((setting) => ({
            label: kSettings[setting].label,
            ...pointsOf(kDegrees, (degree) => seen.at(setting, degree)?.[share]),
          })),
          ...(share.startsWith("incast")
            ? [
                {
                  label: "40 Gb/s / degree",
                  x: kDegrees,
                  y: kDegrees.map((degree) => kLink / degree),
                  color: 6,
                  style: "dotted" as const,
                },
              ]
            : []),
        ],
      ),
    ),
});
