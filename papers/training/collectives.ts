/** All-reduces and all-to-alls by PFC alone and under four congestion controls. */
import { networkCounts } from "../../src/result/counts.js";
import { median } from "../../src/result/statistics.js";
import type { Evidence, Trial } from "../engine/experiment.js";
import { atMost, byName, grid, namesOf, plot, quantity, type Runs, statement, studyOf } from "../engine/study.js";
import { HASHED_PATHS } from "./causes.js";
import { CLUSTER, COMMON_CHOICES, CONTROLS, type Control, KHAN, SCHEMES, SEEDS } from "./paper.js";

const kServers = 8;
const kOnLeaf = [0, kServers];

/** The GPUs of all servers that have the same place in theirs, in order. */
const railHosts = (rail: number) =>
  Array.from({ length: 8 }, (_, leaf) => kOnLeaf.map((first) => `h${leaf + 1}-${first + rail}`)).flat();

/** What is left of a two-level all-reduce of 64 MB for the network, once its servers have reduced inside. */
const kRails = Array.from({ length: kServers }, (_, i) => {
  const place = railHosts(i + 1).join(", ");
  return `{id: rail${i + 1}, pattern: collective, collective: allreduce, algorithm: ring, ranks: 16, size: 8MB, place: [${place}]}`;
});

const allToAll = (size: string) => [
  "traffic.0.collective=alltoall",
  "traffic.0.algorithm=pairwise",
  `traffic.0.size=${size}`,
];

const kCases = {
  ring: { label: "ring", set: [], seeds: SEEDS.slice(0, 1) },
  rails: { label: "rails", set: [`traffic=[${kRails.join(", ")}]`], seeds: SEEDS },
  small: { label: "all-to-all of 4 MB", set: allToAll("4MB"), seeds: SEEDS.slice(0, 1) },
  large: { label: "all-to-all of 16 MB", set: allToAll("16MB"), seeds: SEEDS.slice(0, 1) },
} as const;
type Case = keyof typeof kCases;
const kCaseNames = namesOf(kCases);
const kControlNames = namesOf(CONTROLS);

const trialName = (one: string, control: Control, seed: number) => `${one}-${control}-${seed}`;
const kTrials: Trial[] = [
  ...kCaseNames.flatMap((one) =>
    kControlNames.flatMap((control) =>
      kCases[one].seeds.map((seed) => ({
        name: trialName(one, control, seed),
        file: CLUSTER,
        set: [...kCases[one].set, ...CONTROLS[control].set, `seed=${seed}`],
      })),
    ),
  ),
  ...SEEDS.map((seed) => ({
    name: trialName("places", "none", seed),
    file: CLUSTER,
    set: ["traffic.0.place=random", `seed=${seed}`],
  })),
];

interface Figures {
  /** When the last graph had ended, ms. */
  time: number;
  pauses: number;
  /** Longest queue to a host, KB. */
  queue: number;
  /** Busiest uplink / mean of those in use. */
  uneven: number;
}
type Seen = Readonly<Record<Case, Partial<Record<Control, Figures>>>> & { places: Figures | undefined };

function figures({ result }: Evidence): Figures {
  const times = result.graphs?.map(({ time_s = Number.POSITIVE_INFINITY }) => time_s) ?? [];
  const toHosts = Object.values(result.switches).flatMap(({ queues }) =>
    Object.entries(queues).flatMap(([peer, byPriority]) =>
      peer.startsWith("h") ? Object.values(byPriority).map(({ max }) => max) : [],
    ),
  );
  const uplinks = (result.links ?? [])
    .filter(({ from, to }) => from.startsWith("leaf") && to.startsWith("spine"))
    .map(({ utilisation }) => utilisation)
    .filter((used) => used > kDataShare);
  return {
    time: 1e3 * Math.max(...times),
    pauses: networkCounts(result).pfc_sent,
    queue: Math.max(0, ...toHosts) / 1e3,
    uneven: Math.max(...uplinks) / (uplinks.reduce((sum, one) => sum + one, 0) / uplinks.length),
  };
}

/** Links that are used less than that carry acknowledgements alone. */
const kDataShare = 0.02;

function typical(runs: Runs, one: string, control: Control, seeds: readonly number[]): Figures | undefined {
  const found = seeds.flatMap((seed) => {
    const run = runs[trialName(one, control, seed)];
    return run === undefined ? [] : [figures(run)];
  });
  if (found.length === 0) return undefined;
  return byName(namesOf(found[0] as Figures & Record<keyof Figures, number>), (name) =>
    median(found.map((figure) => figure[name])),
  );
}

const see = (runs: Runs): Seen => ({
  ...byName(
    kCaseNames,
    (one): Partial<Record<Control, Figures>> =>
      Object.fromEntries(
        kControlNames.flatMap((control) => {
          const found = typical(runs, one, control, kCases[one].seeds);
          return found === undefined ? [] : [[control, found]];
        }),
      ),
  ),
  places: typical(runs, "places", "none", SEEDS),
});

/** Part by which a collective takes longer under a control than with PFC alone, %. */
const longer = (control: Control) => (seen: Partial<Record<Control, Figures>>) => {
  const [alone, under] = [seen.none?.time, seen[control]?.time];
  return alone === undefined || under === undefined ? undefined : 100 * (under / alone - 1);
};

const ofAlone = (label: string, unit: string, name: keyof Figures) =>
  quantity(`${label} with PFC alone`, unit, ({ none }: Partial<Record<Control, Figures>>) => none?.[name]);

export const TRAINING_COLLECTIVES = studyOf<Seen>()({
  id: "training-collectives",
  paper: KHAN,
  place: "abstract",
  title: "all-reduce and all-to-all under four congestion controls and by PFC alone",
  setup:
    "128 GPUs in 16 servers. All-reduce of 16 MB by a ring of neighbours; eight rings of 8 MB at once, each of the GPUs that have the same place in their servers (rails); all-to-alls of 4 and 16 MB: each with PFC alone and with DCQCN, DCTCP, TIMELY and HPCC. With PFC alone also the ring at random places.",
  choices: [
    ...COMMON_CHOICES,
    "Rails are the network's part of a two-level all-reduce of 64 MB. What servers do inside is left out.",
    "Of all-to-alls all messages are under way at once, as NCCL sends them.",
    "Incast: a queue to a host that is longer than Kmin. Balance: the busiest uplink is used at most 10% more than the mean of those that carry data.",
    "How long collectives take under each control is shown, and judged in training-iterations: the abstract speaks of workloads.",
  ],
  quantities: {
    ...grid(
      kCaseNames,
      (seen: Seen, one) => seen[one],
      (label, one) => `${kCases[one].label}: ${label}`,
    )({
      time: ofAlone("time", "ms", "time"),
      queue: ofAlone("longest queue to a host", "KB", "queue"),
      uneven: ofAlone("busiest uplink / mean of those in use", "", "uneven"),
      pauses: ofAlone("PFC frames", "", "pauses"),
      dcqcn: quantity("longer with DCQCN by", "%", longer("dcqcn")),
      dctcp: quantity("longer with DCTCP by", "%", longer("dctcp")),
      timely: quantity("longer with TIMELY by", "%", longer("timely")),
      hpcc: quantity("longer with HPCC by", "%", longer("hpcc")),
    }),
    time_places: quantity("ring at random places: time with PFC alone", "ms", ({ places }) => places?.time),
  },
  statements: [
    statement(
      "Scalable topology-aware collective algorithms are inherently designed to avoid incast patterns",
      "abstract",
      "with PFC alone no queue to a host is longer than Kmin, 800 KB",
      [atMost("queue_ring", 800), atMost("queue_rails", 800), atMost("queue_small", 800), atMost("queue_large", 800)],
    ),
    statement(
      "and balance traffic optimally",
      "abstract",
      "with PFC alone the busiest uplink is used at most 10% more than the mean of those in use, in all-reduces",
      [atMost("uneven_ring", 1.1), atMost("uneven_rails", 1.1)],
      "A ring of neighbours leaves a leaf by one link. Rails have eight flows for eight links, of which a hash uses some twice.",
      HASHED_PATHS,
    ),
  ],
  plots: (seen) => [
    plot(
      "Longer than with PFC alone",
      ["collective", 0.5, kCaseNames.length + 0.5],
      ["%"],
      SCHEMES.map((control) => ({
        label: CONTROLS[control].label,
        kind: "bars",
        x: kCaseNames.map((_, i) => i + 1),
        y: kCaseNames.map((one) => longer(control)(seen[one]) ?? null),
      })),
      { x_names: kCaseNames.map((one, i) => ({ x: i + 1, label: kCases[one].label })) },
    ),
  ],
  network: { clocks: ["sim"], trials: kTrials, see, sim_seconds: 45 },
});
