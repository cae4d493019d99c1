/** Messages beside an incast that shares their sender's link: PFC alone, and with congestion control by round-trip times. */
import type { Cause, Evidence, Paper, Trial } from "../engine/experiment.js";
import { atLeast, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";

/** Only its abstract was at hand: statements are from there, and what they are read as is ours. */
const TIMELY: Paper = {
  name: "Mittal et al. 2015",
  citation:
    "R. Mittal, V. T. Lam, N. Dukkipati, E. Blem, H. Wassel, M. Ghobadi, A. Vahdat, Y. Wang, D. Wetherall, D. Zats: TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015",
};

const TIMELY_SWINGS: Cause = {
  id: "rates-of-timely-swing",
  by: "us",
  what: "Rates of 16 flows of TIMELY that begin at line rate swing, and the queue is empty most of the time.",
  proof: "only the abstract was at hand, so topology, traffic and start are ours",
};

const kFile = "timely/tail.yaml";
const kControls = {
  none: { label: "PFC alone", set: [] },
  timely: { label: "TIMELY", set: ["congestion={algorithm: timely}"] },
  patched: { label: "patched TIMELY", set: ["congestion={algorithm: timely, variant: timely-patched}"] },
  swift: { label: "Swift", set: ["congestion={algorithm: swift}"] },
} as const;
const kNames = namesOf(kControls);
const kTrials: Trial[] = kNames.map((name) => ({ name, file: kFile, set: kControls[name].set }));

const p99 = ({ result }: Evidence) => result.fct?.fct_us.p99;
/** Use of the link to the incast's receiver. */
const used = ({ result: { links } }: Evidence) => {
  const share = links?.find(({ from, to }) => from === "sw" && to === "h18")?.utilisation;
  return share === undefined ? undefined : 100 * share;
};

export const TIMELY_TAIL = studyOf<Runs>()({
  id: "timely-tail",
  paper: TIMELY,
  place: "abstract",
  title: "tail latency of messages beside an incast",
  setup:
    "16 hosts write to one over a switch of 10 Gb/s links with PFC. One of them also sends 64 KB messages, one after another, to a host that nobody else sends to. PFC alone, TIMELY, its patched form and Swift; 120 ms, of which the last 100 count.",
  choices: [
    "Only the abstract was at hand. Topology, traffic and limits are ours.",
    "Near line rate: the link to the receiver of the incast is used by 90% or more.",
    "Flows begin at line rate. Rates are paced packet by packet, and each packet is acknowledged; the paper has segments of 16 KB and more.",
  ],
  quantities: {
    ...grid(
      kNames,
      (runs: Runs, name) => runs[name],
      (label, name) => `${kControls[name].label}: ${label}`,
    )({
      p99: quantity("completion time of a message, p99", "us", p99),
      used: quantity("use of the link to the incast's receiver", "%", used),
    }),
    lowered: quantity("p99 with PFC alone / with TIMELY", "", ({ none, timely }) => {
      const [before, after] = [none && p99(none), timely && p99(timely)];
      return before === undefined || after === undefined ? undefined : before / after;
    }),
  },
  statements: [
    statement(
      "Turning on TIMELY for OS-bypass messaging over a fabric with PFC lowers 99 percentile tail latency by 9X",
      "abstract",
      "p99 of a message's completion time is at least 9 times as long without TIMELY",
      [atLeast("lowered", 9)],
    ),
    statement(
      "while maintaining near line-rate throughput",
      "abstract",
      "with TIMELY the link to the receiver of the incast is used by at least 90%",
      [atLeast("used_timely", 90)],
      "With 16 flows that begin at line rate TIMELY's rates swing: the queue is empty most of the time. Swift, a later one of the same kind, uses all of the link.",
      TIMELY_SWINGS,
    ),
  ],
  plots: (runs) => [
    plot(
      "Slowdown of messages: p50, p95, p99",
      ["percentile", 50, 99],
      ["slowdown", 0, 30],
      kNames.flatMap((name) => {
        const slowdown = runs[name]?.result.fct?.slowdown;
        return slowdown === undefined
          ? []
          : [{ label: kControls[name].label, x: [50, 95, 99], y: [slowdown.p50, slowdown.p95, slowdown.p99] }];
      }),
    ),
  ],
  network: { clocks: ["sim"], trials: kTrials, see: (runs) => runs, sim_seconds: 4 },
});
