/**
 * Figure 21 of the DCQCN paper, section 7: throughput of one sender by packet loss rate and size of the messages.
 *
 * READs of reliable connections, with go-back-N. On sim and wire the requester asks again as soon as it sees a gap: a loss costs
 * the packets under way, and a time-out if the request is lost. By the model it does not, as the paper says of READs that "the
 * protocol provides no information to the sender of the data about whether packets were correctly received": so the responder
 * sends the message to its end, and then again from the lost packet on.
 * Each packet in turn is lost p / (1 - p) times before it arrives, and each time it and all behind it are in vain: a message of n
 * packets takes n + p / (1 - p) n (n + 1) / 2.
 */
import type { Curve, Plot } from "../../src/result/report/plot.js";
import type { NetworkClock, Trial } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  byName,
  caseFirst,
  grid,
  namesOf,
  plot,
  quantity,
  type Runs,
  statement,
  studyOf,
} from "../engine/study.js";
import { ASKS_AGAIN_AT_ONCE, LOST_REQUESTS, WHOLE_AGAIN } from "./causes.js";
import { dcqcnFigure } from "./paper.js";

const kFile = "dcqcn/packet-loss.yaml";
/** Payload of a packet, and what headers leave of 40 Gb/s at that. */
const kPayload = 1024;
const kGoodput = (40 * kPayload) / 1106;

/** Time-outs take 67 ms, so where there are any, the run is longer. */
const kRates = [
  { name: "0", loss: 0, duration: "500ms" },
  { name: "0.001%", loss: 0.00001, duration: "500ms" },
  { name: "0.01%", loss: 0.0001, duration: "500ms" },
  { name: "0.03%", loss: 0.0003, duration: "2s" },
  { name: "0.1%", loss: 0.001, duration: "4s" },
  { name: "0.3%", loss: 0.003, duration: "4s" },
  { name: "1%", loss: 0.01, duration: "4s" },
] as const;
type RateName = (typeof kRates)[number]["name"];

const kRead = "traffic.0.operation=read";
const kRows = {
  gbn_4mb: { label: "4 MB", bytes: 4e6, set: [kRead] },
  gbn_256kb: { label: "256 KB", bytes: 256e3, set: [kRead, "traffic.0.message=256KB"] },
  gbn_16kb: { label: "16 KB", bytes: 16e3, set: [kRead, "traffic.0.message=16KB"] },
  fast_4mb: { label: "4 MB, time-out of 1 ms", bytes: 4e6, set: [kRead, "transport.timeout=8"] },
  write_4mb: { label: "4 MB, WRITE", bytes: 4e6, set: [] },
  selective_4mb: {
    label: "4 MB, WRITE, selective repeat",
    bytes: 4e6,
    set: ["transport.recovery=selective-repeat"],
  },
} as const;
type RowName = keyof typeof kRows;
const kNames = namesOf(kRows);
const kSizes = ["gbn_4mb", "gbn_256kb", "gbn_16kb"] as const;

/** Goodput, Gb/s, by loss rate; the wire has some of them. */
type Row = Readonly<Partial<Record<RateName, number>>>;
/** The model has the sizes alone, the wire some of the rows. */
type Seen = Readonly<Partial<Record<RowName, Row>>>;

/** Runs of the wire, and how long they take. */
const kWire: Readonly<Partial<Record<RowName, Readonly<Partial<Record<RateName, string>>>>>> = {
  gbn_4mb: { "0": "100ms", "0.01%": "300ms", "0.1%": "800ms", "1%": "800ms" },
  gbn_16kb: { "0": "100ms", "0.1%": "600ms" },
};

const kTrials: Trial[] = kNames.flatMap((row) =>
  kRates.flatMap(({ name, loss, duration }) => {
    const trial = (length: string, clock: NetworkClock): Trial => ({
      name: trialName(row, name),
      file: kFile,
      set: [`topology.links.0.impairment.loss=${loss}`, `duration=${length}`, ...kRows[row].set],
      clocks: [clock],
    });
    const wire = kWire[row]?.[name];
    return [trial(duration, "sim"), ...(wire === undefined ? [] : [trial(wire, "wire")])];
  }),
);

function trialName(row: RowName, rate: RateName): string {
  return `${row.replace("_", "-")}-${rate.replace("%", "")}`;
}

/** % of the throughput without loss. */
function share(row: Row | undefined, rate: RateName): number | undefined {
  const [at, without] = [row?.[rate], row?.[0]];
  return at === undefined || without === undefined ? undefined : (100 * at) / without;
}
const known = (values: readonly (number | undefined)[]) => values.filter((value) => value !== undefined);

export const DCQCN_FIGURE_21 = studyOf<Seen>()({
  ...dcqcnFigure(21),
  title: "throughput by packet loss rate",
  setup:
    "One sender and one receiver on one switch, 40 Gb/s. Frames are lost at random on the sender's link; reliable connections with go-back-N send 4 MB, 256 KB and 16 KB, by READ.",
  choices: [
    "The paper speaks of READs, and says neither sizes nor time-out. Here: the standard's time-out of 67 ms (code 14), which its adapters have by default.",
    "Loss strikes both directions, so requests, NAKs and acknowledgements, too. Weir's requester of a READ asks again for what is missing as soon as it sees the gap.",
    "Goodput; headers leave 37.03 of 40 Gb/s.",
    "The model is arithmetic, for READs: after a loss a message is sent to its end, and then again from the lost packet on.",
    "A time-out of 1 ms, WRITEs, and selective repeat (both ends must be Weir's), beside it.",
    "The wire, at scale 40, has 4 MB without loss and at 0.01%, 0.1% and 1%, and 16 KB at 0.1%, for 0.1 to 0.8 s each.",
  ],
  quantities: {
    low: quantity("4 MB, at 0.01% or less: least share of the throughput without loss", "%", ({ gbn_4mb }) =>
      Math.min(...known([share(gbn_4mb, "0.001%"), share(gbn_4mb, "0.01%")])),
    ),
    limit: quantity("4 MB, at 0.1%: share of the throughput without loss", "%", ({ gbn_4mb }) =>
      share(gbn_4mb, "0.1%"),
    ),
    high: quantity("4 MB, at 1%: share of the throughput without loss", "%", ({ gbn_4mb }) => share(gbn_4mb, "1%")),
    sizes: quantity("at 0.1%: shares of 4 MB, 256 KB and 16 KB differ by", "points", (rows) => {
      const shares = known(kSizes.map((row) => share(rows[row], "0.1%")));
      return Math.max(...shares) - Math.min(...shares);
    }),
    ...grid(
      kNames,
      (rows: Seen, row) => rows[row],
      (label, row) => `messages of ${kRows[row].label}, ${label}`,
    )(
      byName(
        kRates.map(({ name }) => name),
        (rate) => quantity(`loss ${rate}`, "Gb/s", (row: Row) => row[rate]),
      ),
      caseFirst,
    ),
  },
  statements: [
    statement(
      "This is sufficient for environments where packet loss rate low, as seen in Figure 21.",
      "section 7",
      "at 0.01% or less, messages of 4 MB keep 90% of the throughput without loss",
      [atLeast("low", 90)],
      "model: a READ of 4 MB that loses one packet sends half a message in vain in the mean; smaller ones lose less.",
      { sim: LOST_REQUESTS, wire: LOST_REQUESTS, model: WHOLE_AGAIN },
    ),
    statement(
      "Throughput degrades rapidly once the packet loss rate exceeds 0.1%.",
      "section 7",
      "messages of 4 MB keep 80% at 0.1%, and at most half at 1%",
      [atLeast("limit", 80), atMost("high", 50)],
      "sim: at 0.1% nearly all that is missing are time-outs, for requests that were lost; with a time-out of 1 ms (in the table) 97% remain there. model: READs of 256 KB keep 89% at 0.1% and 44% at 1%.",
      { sim: LOST_REQUESTS, wire: LOST_REQUESTS, model: WHOLE_AGAIN },
    ),
    statement(
      "With go-back-n loss recovery model, the size of the message matters as well.",
      "section 7",
      "at 0.1%, the shares that messages of 4 MB, 256 KB and 16 KB keep differ by 10 points or more",
      [atLeast("sizes", 10)],
      "What is left between the sizes is chance: few time-outs of 67 ms.",
      ASKS_AGAIN_AT_ONCE,
    ),
  ],
  plots: (rows) => [plotOf(rows)],
  network: {
    clocks: ["wire", "sim"],
    trials: kTrials,
    see: (runs) => byName(kNames, (row) => rowOf((_, rate) => goodputOf(runs, row, rate))),
    sim_seconds: 72,
  },
  model: () => byName(kSizes, (row) => rowOf((loss) => kGoodput * readShare(row, loss))),
});

function goodputOf(runs: Runs, row: RowName, rate: RateName): number | undefined {
  const run = runs[trialName(row, rate)];
  return run && run.result.totals.goodput_bps / 1e9;
}

/** Part of what is sent that is of use, where messages are READs. */
function readShare(row: RowName, loss: number): number {
  const packets = Math.ceil(kRows[row].bytes / kPayload);
  return 1 / (1 + ((loss / (1 - loss)) * (packets + 1)) / 2);
}

function rowOf(goodput: (loss: number, rate: RateName) => number | undefined): Row {
  const all = kRates.map(({ name, loss }) => [name, goodput(loss, name)] as const);
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

function plotOf(rows: Seen): Plot {
  return plot(
    "Goodput by packet loss rate; go-back-N where nothing else is said",
    ["packet loss rate", -0.3, kRates.length - 0.7],
    ["goodput, Gb/s", 0, 40],
    kNames.flatMap((row, color): Curve[] => {
      const own = rows[row] ?? {};
      const points = kRates.flatMap(({ name }, x) => (own[name] === undefined ? [] : [{ x, y: own[name] }]));
      if (points.length === 0) return [];
      const style = kSizes.some((size) => size === row) ? "solid" : "dashed";
      return [{ label: kRows[row].label, color, style, x: points.map(({ x }) => x), y: points.map(({ y }) => y) }];
    }),
    { x_names: kRates.map(({ name }, i) => ({ x: i, label: name })) },
  );
}
