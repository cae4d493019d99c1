/**
 * TCP beside DCQCN at one port, section 7 of the DCQCN paper: in the same priority, in another, and with the means of a switch to
 * hold them apart. It runs on the wire alone, where hosts have kernels.
 */
import { mean, sum } from "simple-statistics";
import { networkCounts } from "../../src/result/counts.js";
import type { Evidence } from "../engine/experiment.js";
import { atLeast, atMost, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { DCQCN_PAPER } from "./paper.js";
import { equal, kLink, kRates, kWords, linkRates } from "./testbed.js";

const kWhere = "section 7, TCP friendliness";
/** Rate that priority 0 may have where it is limited, Gb/s. */
const kLimit = 10;
/** A queue that is limited to 1/64 of what is free: 1/65 of 6.2656 MB, and a frame, KB. */
const kQueueLimit = 98;

const kCases = {
  alone: { label: "DCQCN alone", short: "alone", set: ["traffic=[{ id: roce, from: [h1, h2], to: r }]"] },
  same: { label: "one priority", short: "one priority", set: ["traffic.1.priority=3"] },
  apart: { label: "two priorities", short: "two", set: [] },
  strict: {
    label: "two priorities, DCQCN's strict",
    short: "two, strict",
    set: ["switch.scheduler.strict=[3, 6]"],
  },
  buffer: {
    label: "two priorities, TCP's queue limited",
    short: "two, queue",
    set: ["switch.buffer.lossy_alpha=0.015625"],
  },
  limited: {
    label: `two priorities, TCP limited to ${kLimit} Gb/s`,
    short: "two, rate",
    set: [`changes=[{ at: 0s, switch: sw, port: r, priority: 0, rate: ${kLimit}Gbps }]`],
  },
} as const;
const kNames = namesOf(kCases);

const roce = (run: Evidence) => sum(linkRates(run, "roce"));
/** Undefined where there is none. */
const tcp = (run: Evidence) => {
  const rates = linkRates(run, "tcp");
  return rates.length === 0 ? undefined : sum(rates);
};
const queueOf = (priority: number, figure: "p50" | "p99") => (run: Evidence) => {
  const bytes = run.result.switches.sw?.queues.r?.[priority]?.[figure];
  return bytes === undefined ? undefined : bytes / 1000;
};
const connections = ({ result }: Evidence) =>
  result.flows.flatMap((flow) => (flow.tcp ? [{ ...flow, tcp: flow.tcp }] : []));

export const DCQCN_TCP = studyOf<Runs>()({
  id: "dcqcn-tcp",
  paper: DCQCN_PAPER,
  place: "section 7",
  title: "TCP beside DCQCN",
  setup:
    "Two hosts send RDMA to a fifth over one switch, 40 Gb/s, with DCQCN and PFC at priority 3; two others a connection of their kernels' TCP (CUBIC) each. In one priority, in two of equal weight, and in two with strict priority for DCQCN, a limit of TCP's queue, and a limit of TCP's rate. 50 ms, of which 15 are warm-up.",
  choices: [
    "The paper has no experiment: it says that isolation is easy, and with what. Topology, numbers of flows and limits are ours.",
    kWords,
    kRates,
    "TCP's packets do not speak ECN, and are not marked. At priority 3 they are lossless like RDMA; at priority 0 what does not fit is dropped.",
    "TCP's queue is limited to 1/64 of what is free of the buffer; where it is not, to as much as is free.",
    "Scale 400. The kernel's own times are not scaled: its least timeout of 200 ms is 0.5 ms of the run.",
  ],
  quantities: {
    ...grid(
      kNames,
      (runs: Runs, name) => runs[name],
      (label, name) => `${kCases[name].label}: ${label}`,
    )({
      roce: quantity("DCQCN", "Gb/s", roce),
      tcp: quantity("TCP", "Gb/s", tcp),
      roce_p50: quantity("DCQCN's queue, median", "KB", queueOf(3, "p50")),
      roce_p99: quantity("DCQCN's queue, p99", "KB", queueOf(3, "p99")),
      tcp_p99: quantity("TCP's queue, p99", "KB", (run) => {
        const [first] = connections(run);
        return first && queueOf(first.priority, "p99")(run);
      }),
      rtt: quantity("TCP's round trip, mean", "us", (run) => {
        const found = connections(run).map(({ tcp }) => tcp.rtt_us.mean);
        return found.length === 0 ? undefined : mean(found);
      }),
      lost: quantity("packets of DCQCN lost, whole run", "packets", ({ result: { flows } }) =>
        sum(flows.map((flow) => (flow.tcp === undefined ? flow.lost : 0))),
      ),
      drops: quantity("frames dropped, whole run", "frames", ({ result }) => networkCounts(result).drops),
      pauses: quantity("PFC frames", "per s", ({ result }) => networkCounts(result).pfc_sent / result.duration_s),
    }),
    uneven: quantity("one priority: the larger / the smaller of DCQCN and TCP", "", ({ same }) => {
      const shares = [roce(same as Evidence), tcp(same as Evidence) ?? 0];
      return Math.max(...shares) / Math.min(...shares);
    }),
    strict_ratio: quantity(
      "DCQCN, strict / alone",
      "",
      ({ strict, alone }) => roce(strict as Evidence) / roce(alone as Evidence),
    ),
  },
  statements: [
    statement(
      "TCP-friendliness was not one of the design goals for DCQCN",
      kWhere,
      "in one priority one of the two gets twice as much as the other, or more",
      [atLeast("uneven", 2)],
    ),
    statement(
      "It is easy to isolate TCP and DCQCN traffic from each other at the switch level using 802.3 priority tags,",
      kWhere,
      "in two priorities of equal weight DCQCN gets half of the link, within 10%, or more, and loses nothing",
      [atLeast("roce_apart", 0.9 * (kLink / 2)), atMost("lost_apart", 0)],
    ),
    statement(
      "and enforce different transmission priorities,",
      kWhere,
      "where its priority is strict, DCQCN gets 90% of what it gets alone, or more",
      [atLeast("strict_ratio", 0.9)],
    ),
    statement(
      "switch buffer utilization limits,",
      kWhere,
      "TCP's queue stays within its limit of 6.2656 MB / 65 and a frame, and DCQCN gets half of the link, within 10%, or more",
      [atMost("tcp_p99_buffer", kQueueLimit), atLeast("roce_buffer", 0.9 * (kLink / 2))],
    ),
    statement(
      "and rate limits for each type of traffic.",
      kWhere,
      `TCP gets its ${kLimit} Gb/s, and DCQCN 90% of the rest or more`,
      [equal("tcp_limited", kLimit), atLeast("roce_limited", 0.9 * (kLink - kLimit))],
    ),
  ],
  plots: (runs) => {
    const bars = (label: string, of: (run: Evidence) => number | undefined) => ({
      label,
      kind: "bars" as const,
      x: kNames.map((_, x) => x),
      y: kNames.map((name) => of(runs[name] as Evidence) ?? 0),
    });
    return [
      plot(
        "Throughput by what holds them apart",
        [""],
        ["throughput, Gb/s", 0, 42],
        [bars("DCQCN", roce), bars("TCP", tcp)],
        {
          x_names: kNames.map((name, x) => ({ x, label: kCases[name].short })),
          levels: [{ label: "half of the link", value: kLink / 2 }],
        },
      ),
    ];
  },
  network: {
    clocks: ["wire"],
    trials: kNames.map((name) => ({ name, file: "dcqcn/tcp-isolation.yaml", set: kCases[name].set })),
    see: (runs) => runs,
  },
});
