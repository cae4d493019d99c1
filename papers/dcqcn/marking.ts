/** Figure 5 of the DCQCN paper: probability of a mark by the length of the queue, equation 5, and marks counted in a simulated switch. */
import { marking, regimeOf } from "../../src/models/dcqcn/terms.js";
import { mean, queue, total } from "../../src/result/measure.js";
import type { Plot } from "../../src/result/report/plot.js";
import { kEthernetOverhead, kHeaderBytes } from "../../src/wire/frame_size.js";
import type { Evidence, TraceValues } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  byName,
  namesOf,
  plot,
  quantity,
  statement,
  studyOf,
  trace,
  within,
} from "../engine/study.js";
import { kIncastFile, senders } from "./bottleneck.js";
import { dcqcnFigure } from "./paper.js";
import { kFile, kLink } from "./two_senders.js";

/** KB */
const kRed = { kmin: 5, kmax: 200, pmax: 0.01 };
const kCutOff = { kmin: 40, kmax: 40, pmax: 1 };
type Marking = typeof kRed;

/** KB: width of a class of lengths, and the last one. */
const kClass = 5;
const kLast = 250;
/** Packets that what is drawn as one must have seen: classes with fewer are drawn with those beside them. */
const kEnough = 500;
/** Fewer between two thresholds say nothing. */
const kLeast = 50;
/** KB: the width that a vertical step is drawn with, as x must increase. */
const kStep = 0.001;
/** KB: an interval in which the queue changes by more belongs to no class. */
const kSteady = 5;
const kPayload = 1024;
/** Series of the flows are not needed at every microsecond. */
const kFine = ["duration=400ms", "probes.interval=1us", "probes.flows=0"];

/** Queues of one class of lengths. */
interface Class {
  /** KB */
  middle: number;
  packets: number;
  marks: number;
}

function equation5({ kmin, kmax, pmax }: Marking, kilobytes: number): number {
  const piece = regimeOf({ kmin, kmax }, kilobytes);
  return 100 * marking({ kmin, kmax, pmax }, kilobytes, piece);
}

/**
 * Packets that joined the queue, and marks, by its length: of the intervals in which the link was busy, and the queue hardly changed and
 * went through neither threshold.
 */
function classes({ series, scenario }: Evidence, { kmin, kmax }: Marking): Class[] {
  const name = `sw:${scenario.flows[0]?.to}:3`;
  const lengths = queue(series, name).values;
  const highest = series.queues[name]?.max_bytes ?? lengths;
  const marks = total(Object.values(series.marks ?? {}));
  const queued = kPayload + kHeaderBytes;
  const sent = (series.interval_s * kLink * 1e9) / (8 * (queued + kEthernetOverhead));
  const found = Array.from({ length: kLast / kClass }, (_, i) => ({
    middle: (i + 0.5) * kClass,
    packets: 0,
    marks: 0,
  }));
  lengths.forEach((now, k) => {
    const before = lengths[k - 1];
    if (before === undefined) return;
    const low = Math.min(before, now);
    const high = Math.max(before, now, highest[k] as number);
    if (low < queued || high - low > kSteady * 1000) return;
    // The queue may have been shorter between its ends, by what the link sends.
    const lowest = low - kSteady * 1000;
    if ([kmin, kmax].some((threshold) => lowest <= threshold * 1000 && high > threshold * 1000)) return;
    const own = found[Math.floor((now + before) / 2000 / kClass)];
    if (own === undefined) return;
    own.packets += sent + (now - before) / queued;
    own.marks += marks[k] as number;
  });
  return found;
}

/** Percent of the packets between two lengths, KB. */
function share(all: readonly Class[], [from, to]: readonly [number, number]): number | undefined {
  const some = all.filter(({ middle }) => middle > from && middle < to);
  const packets = some.reduce((sum, one) => sum + one.packets, 0);
  const marks = some.reduce((sum, one) => sum + one.marks, 0);
  return packets > 0 ? percent({ packets, marks }) : undefined;
}

/** Packets follow from the link's rate; there are at least as many as marks. */
function percent({ packets, marks }: Pick<Class, "packets" | "marks">): number {
  return (100 * marks) / Math.max(packets, marks);
}

/** Bar that is drawn as one: several classes between two thresholds. */
interface Bar extends Omit<Class, "middle"> {
  /** KB */
  from: number;
  to: number;
}

/** Classes as they are drawn: with the next ones, up to a threshold, until there are enough packets. */
export function barsOf(all: readonly Class[], { kmin, kmax }: Pick<Marking, "kmin" | "kmax">): Bar[] {
  const bars: Bar[] = [];
  let open: Bar | undefined;
  const close = () => {
    if (open === undefined) return;
    const last = bars.at(-1);
    const joins = last !== undefined && last.to === open.from && last.to !== kmin && last.to !== kmax;
    if (open.packets < kEnough && joins) {
      bars[bars.length - 1] = add(last, open);
    } else if (open.packets >= kLeast) bars.push(open);
    open = undefined;
  };
  for (const { middle, packets, marks } of all) {
    const [from, to] = [middle - kClass / 2, middle + kClass / 2];
    if (from === kmin || from === kmax) close();
    if (packets === 0 && open === undefined && from !== 0 && from !== kmin && from !== kmax) continue;
    const own = { from, to, packets, marks };
    open = open === undefined ? own : packets === 0 ? open : add(open, own);
    if (open.packets >= kEnough) close();
  }
  close();
  return bars;
}

function add(one: Bar, other: Bar): Bar {
  const { from } = one;
  return { from, to: other.to, packets: one.packets + other.packets, marks: one.marks + other.marks };
}

/** Level over the width of each, and upright between them. */
function stepped(bars: readonly Bar[]): TraceValues {
  return {
    x: bars.flatMap(({ from, to }) => [from + kStep, to]),
    y: bars.flatMap((bar) => [percent(bar), percent(bar)]),
  };
}

/** Lengths that are asked about, KB. */
const kPlaces = {
  kmin: { between: [0, kRed.kmin], label: "marked, queue up to 5 KB", of: "red" },
  middle: { between: [90, 110], label: "marked, queue 90 to 110 KB", of: "red" },
  kmax: { between: [180, 200], label: "marked, queue 180 to 200 KB", of: "red" },
  beyond: { between: [kRed.kmax, kLast], label: "marked, queue 200 to 250 KB", of: "red" },
  cut_below: { between: [0, kCutOff.kmin], label: "Kmin = Kmax = 40 KB: marked, queue up to 40 KB", of: "cut_off" },
  cut_above: {
    between: [kCutOff.kmax, kLast],
    label: "Kmin = Kmax = 40 KB: marked, queue 40 to 250 KB",
    of: "cut_off",
  },
} as const;

/** Shares of one kind of marking, %. */
interface Marked {
  curve: TraceValues;
  /** Share between two lengths; undefined: there was no such queue. */
  share: (between: readonly [number, number]) => number | undefined;
}
type Seen = Readonly<Record<"red" | "cut_off", Marked>>;

const marks = (title: string, to: number, of: (seen: Seen) => Marked) =>
  trace(`Packets marked, ${title}`, ["queue, KB", 0, to], ["packets marked", "%"], (seen: Seen) => of(seen).curve);

function drawn(title: string, { curve }: Marked, to: number, most: number): Plot {
  return plot(title, ["queue, KB", 0, to], ["packets marked, %", 0, most], [{ label: "", ...curve }]);
}

function counted(run: Evidence, marking: Marking): Marked {
  const all = classes(run, marking);
  return { curve: stepped(barsOf(all, marking)), share: (between) => share(all, between) };
}

/** Equation 5: upright at Kmax. Shares are of the middles of classes, without the one beyond the jump, which has no packets to count. */
function expected(marking: Marking): Marked {
  const { kmin, kmax } = marking;
  const x = [...new Set([0, kmin, kmax, kmax + kStep, kLast])].sort((a, b) => a - b);
  const middles = Array.from({ length: kLast / kClass }, (_, i) => (i + 0.5) * kClass).filter(
    (middle) => middle < kmax || middle > kmax + kSteady,
  );
  return {
    // The line has its end at Kmax itself, whatever the equation has there.
    curve: { x, y: x.map((kilobytes) => equation5(marking, kilobytes === kmax ? kmax - kStep : kilobytes)) },
    share: ([from, to]) =>
      mean(middles.filter((middle) => middle > from && middle < to).map((middle) => equation5(marking, middle))),
  };
}

export const DCQCN_FIGURE_5 = studyOf<Seen>()({
  ...dcqcnFigure(5),
  title: "probability of a mark by the length of the queue",
  setup:
    "Equation 5, and as packets: 16 machines send to one for 400 ms, two with Kmin = Kmax = 40 KB and Pmax 1, and the marks of each microsecond are counted by the length of the queue.",
  choices: [
    "As packets the length is the mean of the microsecond's ends, in classes of 5 KB; microseconds in which it changes by more than 5 KB, may have gone through a threshold or is less than a packet do not count.",
    `How many packets joined follows from what the busy link sent and what the queue grew by, and there are no fewer than marks. Classes that saw less than ${kEnough} packets are drawn with those beside them, but not across a threshold, so that what the table speaks of is in the picture.`,
  ],
  quantities: byName(namesOf(kPlaces), (place) => {
    const { label, of, between } = kPlaces[place];
    return quantity(label, "%", (seen: Seen) => seen[of].share(between));
  }),
  statements: [
    statement(
      "At an egress queue, an arriving packet is ECN-marked if the queue length exceeds a threshold. This is accomplished using RED functionality (Figure 5)",
      "section 3.1",
      "at most 0.01% are marked up to Kmin; about 100 KB, and just below Kmax, what the line from 0 at Kmin to 1% at Kmax has there (0.487 and 0.949%) within a fifth; beyond Kmax at least 99%",
      [
        atMost("kmin", 0.01),
        within("middle", 0.8 * 0.487, 1.2 * 0.487),
        within("kmax", 0.8 * 0.949, 1.2 * 0.949),
        atLeast("beyond", 99),
      ],
    ),
    statement(
      "To mimic DCTCP, we can set Kmin = Kmax = K, and Pmax = 1.",
      "section 3.1",
      "with K of 40 KB at most 0.01% are marked up to it, and at least 99% beyond",
      [atMost("cut_below", 0.01), atLeast("cut_above", 99)],
    ),
  ],
  traces: {
    red: marks("Kmin 5 KB, Kmax 200 KB, Pmax 1%", kLast, ({ red }) => red),
    cut_off: marks("Kmin = Kmax = 40 KB, Pmax 100%", 100, ({ cut_off }) => cut_off),
  },
  plots: ({ red, cut_off }) => [
    drawn("Kmin 5 KB, Kmax 200 KB, Pmax 1%, up to Kmax", red, kRed.kmax, 1.2),
    drawn("Kmin = Kmax = 40 KB, Pmax 100%", cut_off, 100, 105),
  ],
  network: {
    clocks: ["sim"],
    trials: [
      { name: "red", file: kIncastFile, set: [...kFine, senders(16)] },
      {
        name: "cut-off",
        file: kFile,
        set: [...kFine, "traffic.1.start=0ms", "switch.ecn={kmin: 40KB, kmax: 40KB, pmax: 1}"],
      },
    ],
    see: (runs) => ({
      red: counted(runs.red as Evidence, kRed),
      cut_off: counted(runs["cut-off"] as Evidence, kCutOff),
    }),
    sim_seconds: 5,
  },
  model: () => ({ red: expected(kRed), cut_off: expected(kCutOff) }),
});
