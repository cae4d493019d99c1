/** "Prevent congestion spreading: mitigate victim flows" (Liss): the victim of figure 4 of the DCQCN paper, with PFC alone and with QCN. */
import { networkCounts } from "../../src/result/counts.js";
import type { Evidence } from "../engine/experiment.js";
import {
  byName,
  grid,
  less,
  MORE_OR_LESS,
  mediansOf,
  more,
  namesOf,
  plot,
  quantity,
  statement,
  studyOf,
} from "../engine/study.js";
import { LISS, LISS_PFC_ALONE } from "./papers.js";

const kFile = "dcqcn/victim.yaml";
/** Capacity of every link, Gb/s. */
const kLink = 40;

const kRuns = {
  pfc: { label: "PFC alone", set: LISS_PFC_ALONE },
  qcn: {
    label: "QCN and PFC",
    set: [
      "congestion={algorithm: qcn, profile: 802.1qau}",
      "switch.qcn={enabled: true, cpQSp: 26KB, cpWeight: 1}",
      "switch.ecn.enabled=false",
    ],
  },
} as const;
const kNames = namesOf(kRuns);
type Name = (typeof kNames)[number];

/** The victim's rate on the link and that of all others together, Gb/s, and PFC frames of all switches. */
interface Figures {
  victim: number;
  others: number;
  pauses: number;
}
type Seen = Readonly<Record<Name, Figures>>;

function figures({ result }: Evidence): Figures {
  const rate = (isVictim: boolean) =>
    result.flows.reduce((sum, { id, wire_bps }) => sum + ((id === "victim") === isVictim ? wire_bps / 1e9 : 0), 0);
  return { victim: rate(true), others: rate(false), pauses: networkCounts(result).pfc_sent };
}

/** There is no part of nothing. */
const part = (value: number, reference: number) => (reference === 0 ? undefined : value / reference);

export const LISS_VICTIM = studyOf<Seen>()({
  id: "qcn-ofa-victim",
  paper: LISS,
  place: "slide Why QCN?",
  title: "a victim of PFC's spreading pauses, with QCN",
  setup:
    "The testbed and the median case of figure 4 of the DCQCN paper, with two senders under T3: six hosts send to R under T4, VS under T1 to VR under T2. PFC alone, and QCN with PFC, ten seeds, 80 ms after 20 ms of warm-up.",
  choices: [
    MORE_OR_LESS,
    "The slides have neither topology nor figures of a victim. What mitigate means as a number is not said: any gain from 10% on counts, and the report says how large it is.",
    "QCN has the defaults of 802.1Qau, which are meant for 10 Gb/s. Each switch of the testbed has congestion points, and CNMs cross all of them.",
    "Throughput counts headers, FCS, preamble and gap. In virtual time alone.",
  ],
  quantities: {
    ...grid(
      kNames,
      (seen: Seen, name) => seen[name],
      (label, name) => `${kRuns[name].label}: ${label}`,
    )({
      victim: quantity("VS", "Gb/s", ({ victim }) => victim),
      others: quantity("the six to R together", "Gb/s", ({ others }) => others),
      pauses: quantity("PFC frames", "frames", ({ pauses }) => pauses),
    }),
    gain: quantity("VS, QCN and PFC / PFC alone", "", ({ qcn, pfc }: Seen) => part(qcn.victim, pfc.victim)),
    pauses_part: quantity("PFC frames, QCN and PFC / PFC alone", "", ({ qcn, pfc }: Seen) =>
      part(qcn.pauses, pfc.pauses),
    ),
  },
  statements: [
    statement(
      "Prevent congestion spreading: Mitigate victim flows",
      "slide Why QCN?",
      "VS has more with QCN and PFC than with PFC alone, and the switches send fewer PFC frames",
      [more("gain"), less("pauses_part")],
    ),
  ],
  network: {
    clocks: ["sim"],
    trials: kNames.map((name) => ({ name, file: kFile, set: kRuns[name].set })),
    seeds: 10,
    see: (runs) => byName(kNames, (name) => figures(runs[name] as Evidence)),
    typical: (seeds) => byName(kNames, (name) => mediansOf(seeds.map((seen) => ({ ...seen[name] })))),
    sim_seconds: 1.5,
  },
  plots: (seen) => [
    plot(
      "Throughput of VS, and of the six to R together",
      ["flows"],
      ["throughput, Gb/s", 0, kLink + 2],
      kNames.map((name) => ({
        label: kRuns[name].label,
        kind: "bars" as const,
        x: [0, 1],
        y: [seen[name].victim, seen[name].others],
      })),
      {
        x_names: [
          { x: 0, label: "VS" },
          { x: 1, label: "to R" },
        ],
      },
    ),
  ],
});
