/**
 * TCP under QCN, which Kabbani and Yasuda name as their next work, with PFC: connections of the hosts' kernels, whose packets
 * pass the NICs' reaction points by five-tuple. It runs on the wire alone, where there are kernels.
 */
import { sum } from "simple-statistics";
import { networkCounts } from "../../src/result/counts.js";
import { between, describe, inUnits, overMilliseconds, queue } from "../../src/result/measure.js";
import type { Evidence } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  grid,
  namesOf,
  plot,
  quantity,
  type Runs,
  statement,
  studyOf,
  within,
} from "../engine/study.js";
import { NETFPGA } from "./papers.js";

const kFile = "qcn/tcp-by-five-tuple.yaml";
const kQueue = "sw:r:3";
const kLink = 1e9;
const kSetPoint = 33; // Q_eq, KB
const kBuffer = 150; // KB
const kWarm = 0.5;
const kEnd = 1.5;
const kHosts = ["t1", "t2", "t3", "t4"] as const;

const kNone = ["congestion.algorithm=none", "switch.qcn.enabled=false"];
const kPfc = ["switch.pfc.enabled=true", "switch.buffer.headroom=22.4KB", "switch.buffer.total=312KB"];
const kCases = {
  qcn: { label: "QCN", set: [] },
  none: { label: "without", set: kNone },
  qcn_pfc: { label: "QCN and PFC", set: kPfc },
  pfc: { label: "PFC alone", set: [...kNone, ...kPfc] },
} as const;
const kNames = namesOf(kCases);
type Case = keyof typeof kCases;

function lengths({ series }: Evidence) {
  return describe(between(inUnits(queue(series, kQueue), 1000), kWarm, kEnd));
}

/** Segments that were sent again, % of all. */
function again({ result: { flows } }: Evidence): number {
  return (100 * sum(flows.map(({ lost }) => lost))) / sum(flows.map(({ packets }) => packets));
}

const used = ({ result: { flows } }: Evidence) => (100 * sum(flows.map(({ wire_bps }) => wire_bps))) / kLink;
const pauses = ({ result }: Evidence) => networkCounts(result).pfc_sent / result.duration_s;
const ratio = (of: (run: Evidence) => number, a: Case, b: Case) => (runs: Runs) =>
  of(runs[a] as Evidence) / of(runs[b] as Evidence);

export const NETFPGA_TCP = studyOf<Runs>()({
  id: "qcn-netfpga-tcp",
  paper: NETFPGA,
  place: "section 5",
  title: "TCP with QCN, and with PFC",
  setup:
    "Four hosts send to a fifth over one switch, 1 Gb/s each, two connections of their kernels' TCP (CUBIC) each, 1.5 s, of which 0.5 are warm-up. The queue holds 150 KB. With QCN as in the paper's table 2 and without, where what is too much is dropped, and where PFC pauses it.",
  choices: [
    "The paper says that the authors evaluate TCP's performance with QCN, and their interest in PFC, and has no results. The statements are the requirements of its sections 1 and 2, read as for its figures 8 to 13, and what QCN does to TCP and to pauses.",
    "A reaction point holds the packets of a five-tuple. The paper's tell sources by MAC address, of which a host has one.",
    "Scale 20. The kernel's own times are not scaled: its least timeout of 200 ms is 10 ms of the run.",
    "With PFC the shared buffer is 200 KB, and headroom comes on top of it: with 150 KB a queue of Q_eq at each of the five ports would be too much for PFC's threshold.",
  ],
  quantities: {
    ...grid(
      kNames,
      (runs: Runs, name) => runs[name],
      (label, name) => `${kCases[name].label}: ${label}`,
    )({
      used: quantity("link used", "%", used),
      jain: quantity("Jain's index of the connections", "", ({ result }) => result.totals.jain),
      queue_mean: quantity("queue, mean", "KB", (run) => lengths(run)?.mean),
      queue_p99: quantity("queue, p99", "KB", (run) => lengths(run)?.p99),
      queue_deviation: quantity("queue, standard deviation", "KB", (run) => lengths(run)?.deviation),
      again: quantity("segments sent again, whole run", "%", again),
      drops: quantity("frames dropped, whole run", "frames", ({ result }) => networkCounts(result).drops),
      discarded: quantity(
        "frames of the lossless priority dropped, whole run",
        "frames",
        ({ result: { switches } }) => {
          const points = Object.values(switches.sw?.congestion_points ?? {});
          return points.length === 0 ? undefined : sum(points.map((one) => one["3"]?.discarded ?? 0));
        },
      ),
      rtt: quantity("round trip, mean of the connections", "ms", ({ result: { flows } }) => {
        const times = flows.flatMap(({ tcp }) => (tcp === undefined ? [] : [tcp.rtt_us.mean / 1000]));
        return sum(times) / times.length;
      }),
      pauses: quantity("PFC frames", "per s", pauses),
      told: quantity("CNMs that the host with fewest took", "", ({ result: { nics } }) =>
        Math.min(...kHosts.map((host) => nics[host]?.rp_cnm_handled ?? 0)),
      ),
    }),
    used_ratio: quantity("link used, QCN / without", "", ratio(used, "qcn", "none")),
    again_ratio: quantity("segments sent again, QCN / without", "", ratio(again, "qcn", "none")),
    pauses_ratio: quantity("PFC frames, QCN and PFC / PFC alone", "", ratio(pauses, "qcn_pfc", "pfc")),
  },
  statements: [
    statement(
      "QCN is a Layer 2 congestion control mechanism, in which a congested switch can control the rates of Layer 2 sources whose packets are passing through the switch.",
      "section 1",
      "also where the source is a kernel's TCP: with QCN each host takes CNMs, and half as many segments are sent again as without or fewer",
      [atLeast("told_qcn", 1), atMost("again_ratio", 0.5)],
    ),
    statement(
      "The goal of the CP is to maintain the buffer occupancy at a desired operating point, Q_eq",
      "section 2",
      "mean queue within 20% of 33 KB after the warm-up, with PFC and without",
      [
        within("queue_mean_qcn", 0.8 * kSetPoint, 1.2 * kSetPoint),
        within("queue_mean_qcn_pfc", 0.8 * kSetPoint, 1.2 * kSetPoint),
      ],
    ),
    statement(
      "Stable. Buffer occupancy processes should not fluctuate.",
      "section 2, performance requirements",
      "standard deviation of the queue at most half of Q_eq",
      [atMost("queue_deviation_qcn", kSetPoint / 2)],
    ),
    statement(
      "Fair. When multiple flows share a link, they should obtain nearly the same share of the link's bandwidth.",
      "section 2, performance requirements",
      "Jain's index of the connections at least 0.95",
      [atLeast("jain_qcn", 0.95)],
    ),
    statement(
      "Packets may not be dropped. Ethernet links may be paused and packets may not be dropped for assuring loss-less delivery.",
      "section 2, Ethernet constraints",
      "with QCN and PFC the switch drops no frame of the priority that is lossless",
      [atMost("discarded_qcn_pfc", 0)],
      "A few frames of other priorities are dropped, CNMs among them: those are not lossless, and have no buffer of their own here.",
    ),
    statement(
      "We are also evaluating TCP's performance with QCN",
      "section 5",
      "no result is given; asked here: with QCN TCP uses the link 90% as well as without, or better",
      [atLeast("used_ratio", 0.9)],
    ),
    statement(
      "and are interested in further studying the interaction with the PFC functions.",
      "section 5",
      "no result is given; asked here: with QCN there are half as many PFC frames as with PFC alone, or fewer",
      [atMost("pauses_ratio", 0.5)],
    ),
  ],
  plots: (runs) => {
    const each = kNames.map((name) => ({ label: kCases[name].label, run: runs[name] as Evidence }));
    return [
      plot(
        "Queue size",
        ["time, ms", 0, kEnd * 1000],
        ["queue, KB", 0, 160],
        each.map(({ label, run }) => ({ label, ...overMilliseconds(inUnits(queue(run.series, kQueue), 1000)) })),
        {
          levels: [
            { label: "Q_eq 33 KB", value: kSetPoint },
            { label: "buffer 150 KB", value: kBuffer },
          ],
        },
      ),
      plot(
        "Throughput of each connection",
        ["connection"],
        ["throughput, Gb/s"],
        each.map(({ label, run }) => ({
          label,
          kind: "bars",
          x: run.result.flows.map((_, i) => i),
          y: run.result.flows.map(({ wire_bps }) => wire_bps / 1e9),
        })),
        { x_names: (each[0] as (typeof each)[number]).run.result.flows.map(({ id }, x) => ({ x, label: id })) },
      ),
    ];
  },
  network: {
    clocks: ["wire"],
    trials: kNames.map((name) => ({ name, file: kFile, set: kCases[name].set })),
    see: (runs) => runs,
  },
});
