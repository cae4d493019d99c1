/**
 * Words of section 5.2 of the DCQCN paper on a longer feedback delay without a figure: table 14 is for 50 us, and a high RTT
 * needs other values. Table 14 and the values that `weir plan ecn` has for the RTT, by the equations and as packets.
 */
import type { ParameterInput } from "../../src/congestion/parameter.js";
import { planEcn } from "../../src/models/buffers/index.js";
import { overMilliseconds } from "../../src/result/measure.js";
import { atLeast, atMost, byName, grid, namesOf, plot, quantity, statement, studyOf } from "../engine/study.js";
import {
  AS_PACKETS,
  BY_CHANCE,
  CONVERGED,
  type Convergence,
  type Incast,
  incastsOf,
  pairsOf,
  SEEDS,
} from "./bottleneck.js";
import { CHANCE_OF_MARKS, PLANNED_VALUES } from "./causes.js";
import { DCQCN_PAPER } from "./paper.js";

const kWhere = "section 5.2";
/** us; the first is that of all other experiments. */
const kRtts = [4, 100, 500] as const;
type Rtt = (typeof kRtts)[number];
const [kShort, kLong] = [4, 500] as const;
const kSets = { table: "table 14", planned: "planned" } as const;
type Values = keyof typeof kSets;
const kSenders = 8;

/** Overrides for a star of `hosts`: four links are in the loop, and headroom has room for what is under way on one. KB. */
function network(rtt: Rtt, hosts: number): string[] {
  const delay = rtt / 4;
  const headroom = 22.4 + 10 * (delay - 1);
  const total = 6265.6 + hosts * 8 * headroom;
  return [
    `topology.hosts=${hosts}`,
    `topology.link.delay=${delay}us`,
    `switch.buffer={total: ${total.toFixed(1)}KB, headroom: ${headroom.toFixed(1)}KB, beta: 8}`,
  ];
}

/** Differences from table 14 at 4 us, by the equations and by overrides. */
function setting(rtt: Rtt, values: Values) {
  // tau* is the interval of CNPs and the round trip.
  const delay = 50e3 + (rtt - kShort) * 1000;
  if (values === "table") return { changes: { delay }, set: [] };
  const plan = planEcn({ rate: 40e9, rtt: rtt * 1000, mtu: 1500, flows: kSenders });
  const chosen = Object.entries(plan.parameters).map(([name, one]) => [name, one.value] as const);
  const timer = Math.max(50e3, rtt * 1000) + 5e3;
  return {
    changes: {
      delay,
      ...{ kmin: plan.kmin_bytes, kmax: plan.kmax_bytes, pmax: plan.pmax },
      ...{ rpg_time_reset: timer, dce_tcp_rtt: timer, rpg_byte_reset: 10e6 * Math.max(1, rtt / 50) },
    },
    set: [
      `switch.ecn={kmin: ${plan.kmin_bytes}, kmax: ${plan.kmax_bytes}, pmax: ${plan.pmax}}`,
      `congestion.parameters=${JSON.stringify(Object.fromEntries<ParameterInput>(chosen))}`,
    ],
  };
}

type Name = `${Values}_${Rtt}`;
const kCases = namesOf(kSets).flatMap((values) =>
  kRtts.map((rtt) => ({ values, rtt, name: `${values}_${rtt}` as const, label: `${kSets[values]}, RTT ${rtt} us` })),
);
const kNames = kCases.map(({ name }): Name => name);
const of = (name: Name) => kCases.find((one) => one.name === name) as (typeof kCases)[number];

const kPairs = pairsOf(
  byName(kNames, (name) => {
    const { rtt, values } = of(name);
    const { changes, set } = setting(rtt, values);
    return { changes, set: [...network(rtt, 3), ...set] };
  }),
  (name) => `pair-${name}`,
);
const kIncasts = incastsOf(
  byName(kNames, (name) => {
    const { rtt, values } = of(name);
    const { changes, set } = setting(rtt, values);
    return { changes, flows: kSenders, set: [`traffic.0.to=h${kSenders + 1}`, ...network(rtt, kSenders + 1), ...set] };
  }),
  (name) => `incast-${name}`,
);

interface Seen {
  pairs: Readonly<Record<Name, Convergence>>;
  incasts: Readonly<Record<Name, Incast>>;
}

export const DCQCN_ROUND_TRIP = studyOf<Seen>()({
  id: "dcqcn-rtt",
  paper: DCQCN_PAPER,
  place: kWhere,
  title: "round trips longer than those that table 14 is for",
  setup:
    "Two flows that begin at 40 Gb/s and 0, 200 ms, and eight that begin at 40 Gb/s, 100 ms, of which the second half counts. Round trips of 4, 100 and 500 us, with table 14 and with the values that `weir plan ecn` has for them: Kmin, Kmax, timer, tau' and byte counter grow with the RTT.",
  choices: [
    "The paper says that values will be different, not which. Those of the planner keep Kmin, Kmax, T, tau' and B in proportion to the feedback delay, and Pmax, g, F and R_AI as they are.",
    "The round trip is that of the links, a quarter on each of the four that data and CNP take. By the equations tau* is 50 us and what the round trip has beyond 4 us. Headroom has room for what is under way; as much as before is shared.",
    CONVERGED,
    AS_PACKETS,
    BY_CHANCE,
  ],
  quantities: {
    ...grid(
      kCases,
      ({ incasts }: Seen, { name }) => incasts[name],
      (label, one) => `${label}, 8:1, ${one.label}`,
    )({
      used: quantity("link used", "%", ({ utilisation }) => utilisation),
      queue: quantity("queue, mean", "KB", ({ mean }) => mean),
      deviation: quantity("queue, standard deviation", "KB", ({ deviation }) => deviation),
    }),
    ...grid(
      kCases,
      ({ pairs }: Seen, { name }) => pairs[name],
      (label, one) => `${label}, ${one.label}`,
    )({
      apart: quantity("apart for", "ms", ({ apart }) => apart * 1000),
      oscillation: quantity("oscillation", "%", ({ oscillation }) => oscillation),
    }),
    worse: quantity(
      "queue, standard deviation, 8:1, table 14, RTT 500 us / 4 us",
      "",
      ({ incasts }) => incasts[`table_${kLong}`].deviation / incasts[`table_${kShort}`].deviation,
    ),
    gained: quantity(
      "link used, 8:1, RTT 500 us, planned - table 14",
      "points",
      ({ incasts }) => incasts[`planned_${kLong}`].utilisation - incasts[`table_${kLong}`].utilisation,
    ),
    apart_ratio: quantity(
      "apart for, RTT 500 us, planned / table 14",
      "",
      ({ pairs }) => pairs[`planned_${kLong}`].apart / pairs[`table_${kLong}`].apart,
    ),
  },
  statements: [
    statement(
      "If the feedback delay is significantly different from the value we assumed (e.g. if RTT is high),",
      kWhere,
      "with table 14 and a round trip of 500 us the queue of eight flows deviates twice as much as with 4 us, or more",
      [atLeast("worse", 2)],
      "As packets the queue of eight flows scatters at 4 us too, by which packets are marked. What the round trip does shows in the link: it is used 97% at 4 us and 68% at 500, by the equations 100 and 72%.",
      { sim: CHANCE_OF_MARKS },
    ),
    statement(
      "parameter values will be different.",
      kWhere,
      "with a round trip of 500 us and the planned values eight flows use the link a point more than with table 14, or more than that, and two are apart at most 10% longer",
      [atLeast("gained", 1), atMost("apart_ratio", 1.1)],
      "The link is used again, but timers ten times as slow also make flows equal as much later: two are apart for longer than 200 ms. A larger R_AI is the other side of that (dcqcn-increase).",
      PLANNED_VALUES,
    ),
  ],
  plots: ({ incasts }) =>
    kRtts.map((rtt) =>
      plot(
        `Queue, 8:1, RTT ${rtt} us`,
        ["time, ms", 50, 100],
        ["queue, KB"],
        namesOf(kSets).map((values) => ({
          label: kSets[values],
          ...overMilliseconds(incasts[`${values}_${rtt}`].queue),
        })),
      ),
    ),
  network: {
    clocks: ["sim"],
    trials: [...kPairs.trials, ...kIncasts.trials],
    seeds: SEEDS,
    see: (runs) => ({ pairs: kPairs.asPackets(runs), incasts: kIncasts.asPackets(runs) }),
    typical: (all) => ({
      pairs: kPairs.typical(all.map(({ pairs }) => pairs)),
      incasts: kIncasts.typical(all.map(({ incasts }) => incasts)),
    }),
    sim_seconds: 6,
  },
  model: (alternative) => ({ pairs: kPairs.byModel(alternative), incasts: kIncasts.byModel(alternative) }),
});
