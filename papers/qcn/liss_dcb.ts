/**
 * Purposes of QCN as Liss states them, on the traffic that the slides name: long flows, an incast and messages in a lossless priority, and
 * bursts in a lossy one that have nothing but the switch's buffer in common with them. PFC alone, and QCN with PFC.
 */
import { networkCounts } from "../../src/result/counts.js";
import { inUnits, overMilliseconds, queue } from "../../src/result/measure.js";
import type { Evidence } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  byName,
  grid,
  less,
  MORE_OR_LESS,
  mediansOf,
  namesOf,
  plot,
  quantity,
  type Runs,
  statement,
  studyOf,
} from "../engine/study.js";
import { CUT_BY_EACH_INCAST } from "./causes.js";
import { LISS, LISS_PFC_ALONE } from "./papers.js";

const kFile = "qcn/liss-dcb.yaml";
const kQueue = "sw:r:3";
const kEnd = 0.06;
const kWhy = "slide Why QCN?";

/** Entries of the traffic whose transfers have an end, and their sizes, bytes. */
const kTransfers = { incast: 64e3, ipc: 2e3, bursts: 200e3 } as const;
const kEach = namesOf(kTransfers);
type TransferName = keyof typeof kTransfers;

const kBursts = {
  id: "bursts",
  pattern: "incast",
  from: ["b1", "b2", "b3", "b4"],
  to: "x",
  bytes: "200KB",
  message: "200KB",
  period: "2ms",
  priority: 0,
};
const kRuns = {
  pfc: { trial: "pfc", label: "PFC alone", set: LISS_PFC_ALONE },
  qcn: { trial: "qcn", label: "QCN and PFC", set: [] },
  bursts: { trial: "bursts", label: "lossy bursts alone", set: [`traffic=${JSON.stringify([kBursts])}`] },
} as const;
const kNames = namesOf(kRuns);
const kBoth = ["pfc", "qcn"] as const;

/** Figures of one run: KB, %, frames, us and packets. A transfer that is never complete takes for ever. */
type Figures = ReturnType<typeof figures>;

function figures(run: Evidence) {
  // The figures are over all of the time: samples at a distance would meet the bursts always in the same phase, or never.
  const lengths = run.result.switches.sw?.queues.r?.["3"];
  return {
    queue_mean: (lengths?.mean ?? 0) / 1000,
    queue_max: (lengths?.max ?? 0) / 1000,
    used: used(run),
    pauses: networkCounts(run.result).pfc_sent,
    ...times(run, "incast"),
    ...times(run, "ipc"),
    ...times(run, "bursts"),
    lossless_lost: lost(run, 3),
    lossy_lost: lost(run, 0),
  };
}

/** Times by which half, and nine of ten, of an entry's transfers are complete. */
function times<Name extends TransferName>({ result }: Evidence, name: Name) {
  const throughput = result.groups?.[name]?.transfers?.throughput_bps ?? { p50: 0, p10: 0 };
  const time = (bps: number) => (8e6 * kTransfers[name]) / bps;
  return { [`${name}_p50`]: time(throughput.p50), [`${name}_p90`]: time(throughput.p10) } as Record<
    `${Name}_${"p50" | "p90"}`,
    number
  >;
}

/** Packets of a priority that did not arrive. */
function lost({ result }: Evidence, priority: number): number {
  return result.flows.reduce((sum, flow) => sum + (flow.priority === priority ? flow.lost : 0), 0);
}

/** Use of the link to the receiver of the lossless traffic. */
function used({ result: { links = [] } }: Evidence): number {
  const share = links.find(({ from, to }) => from === "sw" && to === "r")?.utilisation;
  return share === undefined ? Number.NaN : 100 * share;
}

interface Seen {
  figures: Readonly<Record<keyof typeof kRuns, Figures>>;
  /** Runs of the first seed, which is drawn. */
  runs: Runs;
}

/** There is no part of nothing, nor of what takes for ever. */
function part(value: number, reference: number): number | undefined {
  const found = value / reference;
  return Number.isFinite(found) ? found : undefined;
}
const withQcn =
  (name: keyof Figures) =>
  ({ figures: { qcn, pfc } }: Seen) =>
    part(qcn[name], pfc[name]);
const kOfBoth = "QCN and PFC / PFC alone";

const kQuantities = {
  ...grid(
    kBoth,
    (seen: Seen, name) => seen.figures[name],
    (label, name) => `${kRuns[name].label}: ${label}`,
  )({
    queue_mean: quantity("queue to the receiver of the lossless traffic, mean", "KB", (one) => one.queue_mean),
    queue_max: quantity("longest", "KB", (one) => one.queue_max),
    used: quantity("use of that link", "%", (one) => one.used),
    pauses: quantity("PFC frames", "frames", (one) => one.pauses),
    incast_p50: quantity("transfer of the incast, 64 KB, median", "us", (one) => one.incast_p50),
    incast_p90: quantity("transfer of the incast, 90th percentile", "us", (one) => one.incast_p90),
    ipc_p50: quantity("message of 2 KB, median", "us", (one) => one.ipc_p50),
    ipc_p90: quantity("message of 2 KB, 90th percentile", "us", (one) => one.ipc_p90),
    bursts_p50: quantity("lossy burst, 200 KB, median", "us", (one) => one.bursts_p50),
    bursts_p90: quantity("lossy burst, 90th percentile", "us", (one) => one.bursts_p90),
    lossless_lost: quantity("lossless packets lost", "packets", (one) => one.lossless_lost),
    lossy_lost: quantity("lossy packets lost", "packets", (one) => one.lossy_lost),
  }),
  bursts_alone: quantity(
    "lossy burst with nothing else on the switch, 90th percentile",
    "us",
    ({ figures: { bursts } }: Seen) => bursts.bursts_p90,
  ),
  queue_part: quantity(`mean queue, ${kOfBoth}`, "", withQcn("queue_mean")),
  pauses_part: quantity(`PFC frames, ${kOfBoth}`, "", withQcn("pauses")),
  incast_p50_part: quantity(`transfer of the incast, median, ${kOfBoth}`, "", withQcn("incast_p50")),
  incast_p90_part: quantity(`transfer of the incast, 90th percentile, ${kOfBoth}`, "", withQcn("incast_p90")),
  ipc_p50_part: quantity(`message of 2 KB, median, ${kOfBoth}`, "", withQcn("ipc_p50")),
  ipc_p90_part: quantity(`message of 2 KB, 90th percentile, ${kOfBoth}`, "", withQcn("ipc_p90")),
  lossy_part: quantity(`lossy packets lost, ${kOfBoth}`, "", withQcn("lossy_lost")),
  used_part: quantity(`use of the link, ${kOfBoth}`, "", withQcn("used")),
  bursts_longer: quantity(
    "lossy burst, 90th percentile, QCN and PFC / alone on the switch",
    "",
    ({ figures: { qcn, bursts } }: Seen) => part(qcn.bursts_p90, bursts.bursts_p90),
  ),
};

export const LISS_DCB = studyOf<Seen>()({
  id: "qcn-ofa-dcb",
  paper: LISS,
  place: "slides Why QCN?, Tailored for DCB Environments, Conclusions",
  title: "what QCN is for, where lossless and lossy traffic share a switch",
  setup:
    "Two long flows, eight senders of 64 KB each at once every 2 ms, and a message of 2 KB every 100 us, all lossless, to one port of a switch with 40 Gb/s; and four senders of 200 KB each at once every 2 ms, lossy, to another port. PFC alone, and QCN with PFC, ten seeds; the lossy bursts also with nothing else on the switch. 60 ms, of which the last 50 count.",
  choices: [
    MORE_OR_LESS,
    "The slides name the kinds of traffic, and no sizes; sizes, periods and limits are ours, and were fixed before anything ran, but for the use of the link, which is asked about since it was seen.",
    "The switch has 4 MB, of which a lossy queue may hold as much as is free; QCN has the defaults of 802.1Qau, which are meant for 10 Gb/s.",
    "All are reliable connections. A transfer of the incast, a message and a burst each have a queue pair of their own, which begins at line rate.",
    "In virtual time alone.",
  ],
  quantities: kQuantities,
  statements: [
    statement("Control switch buffer utilization", kWhy, "the mean queue of the lossless priority is shorter", [
      less("queue_part"),
    ]),
    statement(
      "Control switch buffer utilization: Mitigate incast",
      kWhy,
      "transfers of the incast take less time, by the median and by the 90th percentile, and there are fewer PFC frames",
      [less("incast_p50_part"), less("incast_p90_part"), less("pauses_part")],
    ),
    statement(
      "Control switch buffer utilization: Improve latency",
      kWhy,
      "messages of 2 KB through the same queue take less time, by the median and by the 90th percentile",
      [less("ipc_p50_part"), less("ipc_p90_part")],
    ),
    statement(
      "Control switch buffer utilization: Less impact on other flows; Handle bursts better",
      kWhy,
      "of the lossy bursts, which share nothing but the buffer, fewer packets are lost",
      [less("lossy_part")],
    ),
    statement(
      "Lossless and lossy flows can happily live together",
      "slide Conclusions",
      "with QCN and PFC no lossless packet is lost, and lossy bursts take at most 10% longer than alone on the switch, by the 90th percentile",
      [atMost("lossless_lost_qcn", 0), atMost("bursts_longer", 1.1)],
    ),
    statement(
      "QCN offers important benefits to DCB environments",
      "slide Conclusions",
      "they do not cost the link to the receiver of the lossless traffic: it is used as with PFC alone, at most 10% less. The slides' >99% is of two long flows alone (qcn-ofa-convergence)",
      [atLeast("used_part", 0.9)],
      "So part of what the statements above gain in time is gained on a link that stands idle.",
      CUT_BY_EACH_INCAST,
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: kNames.map((name) => ({ name: kRuns[name].trial, file: kFile, set: kRuns[name].set })),
    seeds: 10,
    see: (runs) => ({ figures: byName(kNames, (name) => figures(runs[kRuns[name].trial] as Evidence)), runs }),
    typical: (seeds) => ({
      figures: byName(kNames, (name) => mediansOf(seeds.map((seen) => seen.figures[name]))),
      runs: (seeds[0] as Seen).runs,
    }),
    sim_seconds: 1,
  },
  plots: ({ figures: all, runs }) => [
    plot(
      "Queue of the lossless priority",
      ["time, ms", 0, kEnd * 1000],
      ["queue, KB"],
      kBoth.map((name) => ({
        label: kRuns[name].label,
        ...overMilliseconds(inUnits(queue((runs[name] as Evidence).series, kQueue), 1000)),
      })),
    ),
    plot(
      "Median and 90th percentile of transfers' times",
      ["transfer"],
      ["time, us"],
      kBoth.map((name) => ({
        label: kRuns[name].label,
        kind: "bars" as const,
        x: [0, 1, 2],
        y: kEach.map((transfer) => all[name][`${transfer}_p50`]),
        low: kEach.map((transfer) => all[name][`${transfer}_p50`]),
        high: kEach.map((transfer) => all[name][`${transfer}_p90`]),
      })),
      { x_names: kEach.map((label, x) => ({ x, label })) },
    ),
  ],
});
