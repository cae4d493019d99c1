/** A comparison of runs as plain tables: rates in Gb/s, sizes in KB (1000 B), differences to the first run in percent, large ones as factors. */
import pc from "picocolors";
import { fixed, gbps, kilobytes, percent, printable, signedPercent } from "./format.js";
import type { Compared, Comparison } from "./overlay.js";
import type { Verdict } from "./overlay_limits.js";
import { drawGrid, type Grid, type RankedGrid, shorten, type TableOptions } from "./table.js";

/** Most flows and queues shown. */
export interface ShownRows {
  flows: number;
  queues: number;
}

const kTerminalRows: ShownRows = { flows: 40, queues: 20 };
/** Most names in one line of flows and queues that are not compared. */
const kNamesShown = 5;
const kQueueFigures = ["mean", "p50", "p95"] as const;
const kCompletionFigures = ["mean", "p50", "p99"] as const;

/** Everything about the comparison, runs first and verdicts last; ends with a line feed. */
export function renderComparison(
  comparison: Comparison,
  verdicts: readonly Verdict[],
  options: TableOptions = {},
): string {
  const colors = pc.createColors(options.color ?? false);
  const lists = [
    comparison.notes.map((note) => `note: ${note}`),
    leftOut(comparison),
    invalidLines(comparison).map(colors.red),
    verdicts.map((verdict) => (verdict.within ? colors.green : colors.red)(verdictLine(verdict))),
  ];
  const sections = [
    ...comparisonGrids(comparison, kTerminalRows).map((grid) => drawGrid(grid, options.color)),
    ...lists.filter((lines) => lines.length > 0).map((lines) => lines.join("\n")),
  ];
  return `${sections.join("\n\n")}\n`;
}

/**
 * Tables of runs, flows, totals and queues; those without rows are left out. Where there are more flows or queues than `most`, those with
 * the largest differences are shown.
 */
export function comparisonGrids(comparison: Comparison, most: ShownRows): Grid[] {
  const { flows, queues, totals, completions, graphs, counts, runs } = comparison;
  const { ecn_marked, cnp_sent, cnm_sent, pfc_sent, drops, lost } = counts;
  // A line of zeros would say nothing where no run has QCN, or all have.
  const some = ({ values }: Compared) => values.some((value) => value > 0);
  const told: [string, Compared][] = [
    ["ECN marked", ecn_marked],
    ["CNPs sent", cnp_sent],
  ];
  const feedback = some(cnm_sent)
    ? [...told.filter(([, figure]) => some(figure)), ["CNMs sent", cnm_sent] as [string, Compared]]
    : told;
  const labels = runs.map(({ label }) => printable(label));
  const head = labels.flatMap((label, i) => (i === 0 ? [label] : [label, "diff"]));
  const row = ({ values, difference }: Compared, text: (value: number) => string) =>
    values.flatMap((value, i) => (i === 0 ? [text(value)] : [text(value), signedPercent(difference[i] ?? null)]));
  const ranked = "largest differences; --json has all";
  const flowGrid: RankedGrid = {
    title: "Goodput, Gb/s",
    head: ["flow", ...head],
    names: 1,
    rows: flows.map(({ id, goodput_bps }) => [printable(id), ...row(goodput_bps, gbps)]),
    ranks: flows.map(({ goodput_bps }) => largest(goodput_bps)),
    ranked,
  };
  const queueGrid: RankedGrid = {
    title: "Queues, KB",
    head: ["queue", "figure", ...head],
    names: 2,
    rows: queues.flatMap((queue) =>
      kQueueFigures.map((name) => [printable(queue.queue), name, ...row(queue[name], kilobytes)]),
    ),
    ranks: queues.flatMap((queue) => {
      const rank = Math.max(...kQueueFigures.map((name) => largest(queue[name])));
      return kQueueFigures.map(() => rank);
    }),
    ranked,
  };
  const completionGrid: Grid = {
    title: "Flow completion times",
    head: ["size", "figure", ...head],
    names: 2,
    rows: completions.flatMap(({ size, count, fct_us, slowdown }) => [
      [size, "count", ...row(count, String)],
      ...kCompletionFigures.map((name) => [size, `FCT us ${name}`, ...row(fct_us[name], fixed)]),
      ...kCompletionFigures.map((name) => [size, `slowdown ${name}`, ...row(slowdown[name], fixed)]),
    ]),
  };
  const totalGrid: Grid = {
    title: "All together",
    head: ["figure", ...head],
    names: 1,
    rows: [
      ["total goodput Gb/s", ...row(totals.goodput_bps, gbps)],
      ["Jain's index", ...row(totals.jain, (value) => value.toFixed(4))],
      ...graphs.map(({ graph, time_s }) => [
        `${printable(graph)} ended after us`,
        ...row(time_s, (value) => fixed(value * 1e6)),
      ]),
      ...feedback.map(([name, figure]) => [name, ...row(figure, String)]),
      ["PFC frames sent", ...row(pfc_sent, String)],
      ["packets lost", ...row(lost, String)],
      ["switch drops", ...row(drops, String)],
    ],
  };
  const grids = [
    runGrid(comparison),
    shorten(flowGrid, most.flows),
    totalGrid,
    completionGrid,
    shorten(queueGrid, most.queues * kQueueFigures.length),
  ];
  return grids.filter(({ rows }) => rows.length > 0);
}

/** Writes "goodput: 2.4% at most (incast/h1, sim), within 5.0%". */
export function verdictLine({ figure, limit, worst, within }: Verdict): string {
  if (worst === undefined)
    return `${figure}: NOT JUDGED: the runs have none in common, or nothing was delivered in any`;
  const { difference } = worst;
  const size = difference === null ? "from 0 to something" : signedPercent(Math.abs(difference)).replace("+", "");
  const largest = `${size} at most`;
  const where = `(${printable(worst.where)}, ${printable(worst.run)})`;
  return `${figure}: ${largest} ${where}, ${within ? "within" : "EXCEEDS"} ${percent(limit)}`;
}

/** Tells of flows and queues that only some runs have, one line for all of a kind that the same runs have. */
export function leftOut({ not_compared }: Comparison): string[] {
  const groups = new Map<string, string[]>();
  for (const { kind, name, only_in } of not_compared) {
    const key = `${kind}s only in ${only_in.map(printable).join(", ")}`;
    const names = groups.get(key) ?? [];
    names.push(printable(name));
    groups.set(key, names);
  }
  return [...groups].map(([key, names]) => {
    const more = names.length > kNamesShown ? ` and ${names.length - kNamesShown} more` : "";
    return `not compared: ${key}: ${names.slice(0, kNamesShown).join(", ")}${more}`;
  });
}

/** One line for each run that does not count, with its reasons. */
export function invalidLines({ runs }: Comparison): string[] {
  return runs
    .filter(({ valid }) => !valid)
    .map(({ label, reasons }) => {
      const why = reasons.length === 0 ? "" : `: ${reasons.map(printable).join("; ")}`;
      return `INVALID: the figures of ${printable(label)} do not count${why}`;
    });
}

function runGrid({ runs }: Comparison): Grid {
  return {
    title: "Runs",
    head: ["run", "scenario", "profile", "clock", "fidelity", "scale", "seed", "s", "warm-up s"],
    names: 5,
    rows: runs.map((run) => [
      ...[run.label, run.scenario, run.profile].map(printable),
      run.clock,
      run.valid ? "valid" : "INVALID",
      String(Number(run.scale.toPrecision(4))),
      String(run.seed),
      String(run.duration_s),
      String(run.warmup_s),
    ]),
  };
}

function largest({ difference }: Compared): number {
  return Math.max(...difference.map((one) => (one === null ? Number.POSITIVE_INFINITY : Math.abs(one))));
}
