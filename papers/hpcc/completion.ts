/** Completion times of web-search transfers among incasts, under HPCC, DCQCN and TIMELY. */
import { networkCounts } from "../../src/result/counts.js";
import type { Evidence, Paper, Trial } from "../engine/experiment.js";
import {
  atLeast,
  atMost,
  byName,
  grid,
  namesOf,
  plot,
  quantity,
  type Runs,
  statement,
  studyOf,
} from "../engine/study.js";

/** Only its abstract was at hand: statements are from there, and what they are read as is ours. */
const HPCC: Paper = {
  name: "Li et al. 2019",
  citation:
    "Y. Li, R. Miao, H. H. Liu, Y. Zhuang, F. Feng, L. Tang, Z. Cao, M. Zhang, F. Kelly, M. Alizadeh, M. Yu: HPCC: High Precision Congestion Control, SIGCOMM 2019",
};

const kFile = "hpcc/websearch-incast.yaml";
const kControls = {
  hpcc: { label: "HPCC", set: [] },
  dcqcn: { label: "DCQCN", set: ["congestion={algorithm: dcqcn}"] },
  timely: { label: "TIMELY", set: ["congestion={algorithm: timely}"] },
} as const;
type Control = keyof typeof kControls;
const kNames = namesOf(kControls);
const kTrials: Trial[] = kNames.map((name) => ({ name, file: kFile, set: kControls[name].set }));

interface Figures {
  /** Completion times of transfers up to so many bytes, p99, us. */
  p99: ReadonlyMap<number, number>;
  pauses: number;
  drops: number;
  incomplete: number;
}
type Seen = Partial<Record<Control, Figures>>;

function figures({ result }: Evidence): Figures {
  const { pfc_sent, drops } = networkCounts(result);
  const bins = result.fct?.bins ?? [];
  return {
    p99: new Map(bins.map(({ up_to_bytes, fct_us }) => [up_to_bytes ?? Number.POSITIVE_INFINITY, fct_us.p99])),
    pauses: pfc_sent,
    drops,
    incomplete: result.fct?.incomplete ?? 0,
  };
}

const see = (runs: Runs): Seen =>
  byName(kNames, (name) => {
    const run = runs[name];
    return run === undefined ? undefined : figures(run);
  }) as Seen;

/** Part of the others' p99 by which HPCC's is shorter, for the class of sizes where that is most, %. */
const shorter = ({ hpcc, ...others }: Seen, than: Exclude<Control, "hpcc">) => {
  const other = others[than];
  if (hpcc === undefined || other === undefined) return undefined;
  return Math.max(...[...hpcc.p99].map(([size, us]) => 100 * (1 - us / (other.p99.get(size) ?? us))));
};

export const HPCC_COMPLETION = studyOf<Seen>()({
  id: "hpcc-completion",
  paper: HPCC,
  place: "abstract",
  title: "completion times of web search among incasts",
  setup:
    "32 hosts at 25 Gb/s in four racks, two spines at 100 Gb/s, PFC. Web-search transfers at 50% load, and four times 30 hosts send 500 KB each to one: under HPCC, DCQCN and TIMELY. 40 ms, of which the first two do not count.",
  choices: [
    "Only the abstract was at hand. Topology, traffic and limits are ours.",
    "Every control has its default parameters, HPCC the base round-trip time of this network; DCQCN's are for 40 Gb/s, TIMELY's for 10 Gb/s. The paper has its own for each.",
    "Up to 95%: p99 in the class of sizes where that is most.",
    "Little congestion: no pauses, and nothing dropped. DCQCN and TIMELY hold rates and have no window, as in their papers.",
  ],
  quantities: {
    ...grid(
      kNames,
      (seen: Seen, name) => seen[name],
      (label, name) => `${kControls[name].label}: ${label}`,
    )({
      small: quantity("p99 of transfers up to 10 KB", "us", ({ p99 }) => p99.get(10_000)),
      middle: quantity("p99 of transfers of 1 MB to 10 MB", "us", ({ p99 }) => p99.get(10_000_000)),
      pauses: quantity("PFC frames", "", ({ pauses }) => pauses),
      drops: quantity("frames dropped", "", ({ drops }) => drops),
      incomplete: quantity("transfers not complete", "", ({ incomplete }) => incomplete),
    }),
    than_dcqcn: quantity("HPCC's p99 shorter than DCQCN's by up to", "%", (seen) => shorter(seen, "dcqcn")),
    than_timely: quantity("HPCC's p99 shorter than TIMELY's by up to", "%", (seen) => shorter(seen, "timely")),
  },
  statements: [
    statement(
      "compared to DCQCN and TIMELY, HPCC shortens flow completion times by up to 95%",
      "abstract",
      "p99 of a class of sizes is at least 95% shorter than with either",
      [atLeast("than_dcqcn", 95), atLeast("than_timely", 95)],
    ),
    statement(
      "causing little congestion even under large-scale incasts",
      "abstract",
      "with HPCC no switch pauses or drops anything",
      [atMost("pauses_hpcc", 0), atMost("drops_hpcc", 0)],
    ),
  ],
  plots: (seen) => [
    plot(
      "Completion time, p99, by size of the transfer",
      ["size up to, bytes (logarithm to base 10)", 3.5, 7.5],
      ["logarithm to base 10 of us", 0, 5],
      kNames.map((name) => {
        const all = [...(seen[name]?.p99 ?? [])].filter(([size]) => Number.isFinite(size));
        return {
          label: kControls[name].label,
          x: all.map(([size]) => Math.log10(size)),
          y: all.map(([, us]) => Math.log10(us)),
        };
      }),
    ),
  ],
  network: { clocks: ["sim"], trials: kTrials, see, sim_seconds: 10 },
});
