/** Compares several runs: differences of the later ones to the first. */

import { type NetworkCounts, networkCounts } from "../counts.js";
import { eachQueue, queueName } from "../queues.js";
import type { QueueResult, Result } from "../result.js";
import type { SavedRun } from "../saved_run.js";
import { type CompletionClass, completionClasses } from "./completion_classes.js";
import { printable } from "./format.js";

/** A run under the name that tables and plots call it by. */
export interface NamedRun extends SavedRun {
  label: string;
}

/** One figure of every run, in the order of the runs. */
export interface Compared {
  values: number[];
  /** Differences (value - first) / first for every run; null where the first is 0 and the value is not. */
  difference: (number | null)[];
}

export interface ComparedFlow {
  id: string;
  /** Goodput in bit/s. */
  goodput_bps: Compared;
}

/** Length of one egress queue, bytes. */
export interface ComparedQueue {
  /** Name of the queue, "switch:peer:priority". */
  queue: string;
  /** Whether every run has samples of it. */
  sampled: boolean;
  mean: Compared;
  p50: Compared;
  p95: Compared;
}

/** Completion times of transfers of one size class, or of all. */
export interface ComparedCompletions {
  /** Size class: "all", "10 KB to 100 KB". */
  size: string;
  count: Compared;
  fct_us: CompletionFigures;
  slowdown: CompletionFigures;
}
type CompletionFigures = Record<(typeof kCompletionFigures)[number], Compared>;
const kCompletionFigures = ["mean", "p50", "p99"] as const;

export interface Comparison {
  runs: {
    label: string;
    scenario: string;
    clock: Result["clock"];
    scale: number;
    seed: number;
    /** End of the run where it was cut short, else its duration. */
    duration_s: number;
    warmup_s: number;
    profile: string;
    /** Version and hash of the code of the Weir that made it; "" in results of older versions. */
    weir: string;
    valid: boolean;
    reasons: string[];
  }[];
  /** Reasons why the runs are hard to compare, one sentence each. */
  notes: string[];
  /** Flows that all runs have, in the order of the first. */
  flows: ComparedFlow[];
  queues: ComparedQueue[];
  totals: { goodput_bps: Compared; jain: Compared };
  /** Times of message graphs that have ended in all runs. */
  graphs: { graph: string; time_s: Compared }[];
  /** Completion times of sizes that all runs have. */
  completions: ComparedCompletions[];
  /** Counts of the whole network and the whole run. */
  counts: Record<keyof NetworkCounts, Compared>;
  /** Flows and queues that some runs lack. */
  not_compared: { kind: "flow" | "queue"; name: string; only_in: string[] }[];
}

/** @param runs Two or more, with different labels. */
export function compareRuns(runs: readonly NamedRun[]): Comparison {
  const flows = runs.map(({ result }) => new Map(result.flows.map((flow) => [flow.id, flow])));
  const queues = runs.map(({ result }) => queuesOf(result));
  const over = (of: (result: Result) => number) => compared(runs.map(({ result }) => of(result)));
  const counts = runs.map(({ result }) => networkCounts(result));
  const count = (name: keyof NetworkCounts) => compared(counts.map((one) => one[name]));
  const described = runs.map(describe);
  return {
    runs: described,
    notes: [...notesOn(described), ...runs.flatMap(omittedFlows), ...earlyPauses(runs, count("pfc_sent"))],
    flows: common(flows).map((id) => ({
      id,
      goodput_bps: compared(flows.map((of) => of.get(id)?.goodput_bps ?? 0)),
    })),
    queues: common(queues)
      .filter((queue) => queues.some((of) => (of.get(queue)?.max ?? 0) > 0))
      .map((queue) => {
        const figure = (name: "mean" | "p50" | "p95") => compared(queues.map((of) => of.get(queue)?.[name] ?? 0));
        const sampled = runs.every(({ series }) => series.queues[queue] !== undefined);
        return { queue, sampled, mean: figure("mean"), p50: figure("p50"), p95: figure("p95") };
      }),
    totals: { goodput_bps: over(({ totals }) => totals.goodput_bps), jain: over(({ totals }) => totals.jain) },
    graphs: compareGraphs(runs),
    completions: compareCompletions(runs),
    counts: {
      ecn_marked: count("ecn_marked"),
      cnp_sent: count("cnp_sent"),
      cnm_sent: count("cnm_sent"),
      pfc_sent: count("pfc_sent"),
      drops: count("drops"),
      lost: count("lost"),
    },
    not_compared: [...missing("flow", flows, runs), ...missing("queue", queues, runs)],
  };
}

function compareGraphs(runs: readonly NamedRun[]): Comparison["graphs"] {
  const times = runs.map(({ result }) => new Map(result.graphs?.map(({ id, time_s }) => [id, time_s])));
  return [...(times[0]?.keys() ?? [])].flatMap((graph) => {
    const own = times.map((of) => of.get(graph)).filter((time) => time !== undefined);
    return own.length < runs.length ? [] : [{ graph, time_s: compared(own) }];
  });
}

function compareCompletions(runs: readonly NamedRun[]): ComparedCompletions[] {
  const sizes = runs.map(({ result }) => new Map(completionClasses(result).map((one) => [one.name, one])));
  return common(sizes).map((size) => {
    const rows = sizes.map((of) => of.get(size) as CompletionClass);
    const figures = (what: "fct_us" | "slowdown") =>
      Object.fromEntries(
        kCompletionFigures.map((name) => [name, compared(rows.map((row) => row[what][name]))]),
      ) as CompletionFigures;
    const count = compared(rows.map((row) => row.count));
    return { size, count, fct_us: figures("fct_us"), slowdown: figures("slowdown") };
  });
}

/** Names that all runs have, in the order of the first. */
export function common(runs: readonly ReadonlyMap<string, unknown>[]): string[] {
  return [...(runs[0]?.keys() ?? [])].filter((name) => runs.every((run) => run.has(name)));
}

function describe({ label, result }: NamedRun): Comparison["runs"][number] {
  const { scenario, clock, scale, seed, warmup_s = 0, profile = "-", made, fidelity } = result;
  const duration_s = result.until_s ?? result.duration_s;
  const { valid, reasons } = fidelity;
  return { label, scenario, clock, scale, seed, duration_s, warmup_s, profile, weir: made?.weir ?? "", valid, reasons };
}

function notesOn(runs: Comparison["runs"]): string[] {
  const kinds = [
    ["scenario", "these are different scenarios"],
    ["profile", "different congestion profiles"],
    ["duration_s", "different durations: counts are of the whole run and do not compare"],
    ["weir", "different versions of Weir"],
    ["warmup_s", "different warm-ups: rates and queue lengths leave out different parts"],
  ] as const;
  return kinds.flatMap(([field, note]) => {
    const values = [...new Set(runs.map((run) => run[field]).filter((value) => value !== ""))];
    return values.length <= 1 ? [] : [`${note} (${values.map((value) => printable(String(value))).join(", ")})`];
  });
}

/** Counts of PFC frames that differ by this much make somebody ask why. */
const kStriking = 0.5;

/** Notes that most pauses were at the start: counts of them say little then. */
function earlyPauses(runs: readonly NamedRun[], { values, difference }: Compared): string[] {
  if (difference.every((one) => one !== null && Math.abs(one) < kStriking)) return [];
  const early = runs.map(({ result: { warmup_s = 0 }, series: { time_s, pauses = {} } }) => {
    const before = time_s.findLastIndex((at) => at <= warmup_s) + 1;
    return Object.values(pauses).reduce((total, sent) => total + sent.slice(0, before).reduce((a, b) => a + b, 0), 0);
  });
  const most = (frames: number, all: number) => frames >= all / 2 && frames <= all;
  if (!early.every((frames, i) => most(frames, values[i] as number))) return [];
  const shares = runs.map(({ label }, i) => `${printable(label)} ${early[i]} of ${values[i]}`).join(", ");
  return [
    `PFC frames: most were sent within the warm-up (${shares}), while senders still came down from line rate; there ` +
      "microseconds decide, and counts of the whole run differ without saying that the runs do",
  ];
}

function omittedFlows({ label, result: { flows_omitted = 0 } }: NamedRun): string[] {
  return flows_omitted === 0
    ? []
    : [`${flows_omitted} further flows of ${printable(label)} have no entry in its result`];
}

/** Queues by "switch:peer:priority", as in the series. */
function queuesOf(result: Result): Map<string, QueueResult> {
  return new Map(eachQueue(result.switches, ({ queues }) => queues).map((one) => [queueName(one), one.value]));
}

function missing(
  kind: "flow" | "queue",
  has: readonly ReadonlyMap<string, unknown>[],
  runs: readonly NamedRun[],
): Comparison["not_compared"] {
  const names = [...new Set(has.flatMap((of) => [...of.keys()]))];
  return names
    .filter((name) => !has.every((of) => of.has(name)))
    .map((name) => ({ kind, name, only_in: runs.filter((_, i) => has[i]?.has(name)).map(({ label }) => label) }));
}

function compared(values: number[]): Compared {
  const [first = 0] = values;
  const difference = values.map((value) => (value === first ? 0 : first === 0 ? null : (value - first) / first));
  return { values, difference };
}
