/** Section 7 of the DCQCN paper, large-scale evaluation: the benchmark traffic of section 6.2 among more than 800 hosts, of which it has no figure. */
import { spread } from "../../src/result/statistics.js";
import type { Evidence } from "../engine/experiment.js";
import { atLeast, atMost, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { kShareNames, kShares, kSizes, type Shares } from "./benchmark.js";
import { DCQCN_PAPER } from "./paper.js";
import { higher, kRates, kSettings, kWords, pauseFrames, type Setting } from "./testbed.js";

const kEach = namesOf(kSettings);

function sharesOf({ result: { flows } }: Evidence): Shares {
  const of = (kind: string) =>
    spread(flows.flatMap(({ id, wire_bps }) => (id.startsWith(kind) ? [wire_bps / 1e9] : [])));
  const [users, rebuilds] = [of("users"), of("rebuild")];
  return { users_p50: users.p50, users_p10: users.p10, incast_p50: rebuilds.p50, incast_p10: rebuilds.p10 };
}

/** PFC frames that the switches of the third tier received, per second. */
function corePauses(run: Evidence): number {
  const cores = Object.keys(run.result.switches).filter((name) => /^c\d+$/.test(name));
  return pauseFrames(run, "pfc_received", cores);
}

interface Seen {
  shares: Readonly<Record<Setting, Shares>>;
  pauses: Readonly<Record<Setting, number>>;
}

const gain =
  (share: keyof Shares) =>
  ({ shares }: Seen) =>
    shares.dcqcn[share] / shares.pfc[share];
const even = ({ incast_p10, incast_p50 }: Shares) => incast_p10 / incast_p50;

export const DCQCN_LARGE_SCALE = studyOf<Seen>()({
  id: "dcqcn-800-hosts",
  paper: DCQCN_PAPER,
  place: "section 7",
  title: "benchmark traffic among 1,024 hosts of three tiers",
  setup:
    "A fat tree of 1,024 hosts and 320 switches, 40 Gb/s: 840 random pairs and 16 incasts of degree 10, with PFC alone and with DCQCN and PFC; 25 ms, of which 5 are warm-up, one seed.",
  choices: [
    "The paper says that there were such simulations, of over 800 machines, and omits their results and setup. Traffic is that of its testbed, with nearly as many pairs as hosts; a result lists 1,000 flows, of which the incasts are 160.",
    kWords,
    kRates,
    kSizes,
  ],
  quantities: {
    ...grid(
      kEach,
      ({ shares }: Seen, setting) => shares[setting],
      (label, setting) => `${label}, ${kSettings[setting].label}`,
    )({
      users_p50: quantity(kShares.users_p50, "Gb/s", ({ users_p50 }) => users_p50),
      users_p10: quantity(kShares.users_p10, "Gb/s", ({ users_p10 }) => users_p10),
      incast_p50: quantity(kShares.incast_p50, "Gb/s", ({ incast_p50 }) => incast_p50),
      incast_p10: quantity(kShares.incast_p10, "Gb/s", ({ incast_p10 }) => incast_p10),
    }),
    ...grid(
      kEach,
      ({ pauses }: Seen, setting) => pauses[setting],
      (label, setting) => `${label}, ${kSettings[setting].label}`,
    )({ pauses: quantity("PFC frames that the third tier received", "per s", (frames) => frames) }),
    gain_p50: quantity("users, median, DCQCN / PFC", "", gain("users_p50")),
    gain_p10: quantity("users, 10th percentile, DCQCN / PFC", "", gain("users_p10")),
    fairer: quantity(
      "incast, 10th percentile / median, DCQCN / PFC",
      "",
      ({ shares }) => even(shares.dcqcn) / even(shares.pfc),
    ),
    fewer: quantity(
      "PFC frames that the third tier received, DCQCN / PFC",
      "",
      ({ pauses }) => pauses.dcqcn / pauses.pfc,
    ),
  },
  statements: [
    statement(
      "We have also evaluated DCQCN via large scale simulations (three-tier network of over 800 machines). We omit simulation results due to lack of space, and also because they are qualitatively similar to results from testbed evaluation.",
      "section 7, large-scale evaluation",
      "as figures 15 and 16 have it at degree 10: with DCQCN users get twice as much or more, median and 10th percentile, the incast's 10th percentile as a share of its median is higher, and the third tier receives a tenth of the PFC frames or fewer",
      [atLeast("gain_p50", 2), atLeast("gain_p10", 2), higher("fairer"), atMost("fewer", 0.1)],
    ),
  ],
  plots: ({ shares }) => [
    plot(
      "Throughput of users and incasts",
      [""],
      ["throughput, Gb/s"],
      kEach.map((setting) => ({
        label: kSettings[setting].label,
        kind: "bars",
        x: kShareNames.map((_, x) => x),
        y: kShareNames.map((share) => shares[setting][share]),
      })),
      { x_names: kShareNames.map((share, x) => ({ x, label: kShares[share] })) },
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: kEach.map((name) => ({ name, file: "dcqcn/800-hosts.yaml", set: kSettings[name].set })),
    see: (runs: Runs) => {
      const [pfc, dcqcn] = [runs.pfc as Evidence, runs.dcqcn as Evidence];
      return {
        shares: { pfc: sharesOf(pfc), dcqcn: sharesOf(dcqcn) },
        pauses: { pfc: corePauses(pfc), dcqcn: corePauses(dcqcn) },
      };
    },
    sim_seconds: 40,
  },
});
