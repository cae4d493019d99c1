/** A comparison of congestion controls as plain tables and as CSV: a column for each, means over the seeds. */
import pc from "picocolors";
import { csvLine } from "../../base/csv_line.js";
import { describeMade } from "../../result/made_schema.js";
import { count, fixed, gbps, kilobytes, percent, printable, signedPercent } from "../../result/report/format.js";
import { drawGrid, type Grid, type TableOptions } from "../../result/report/table.js";
import { type ContenderDocument, hasClocks, nameOf, type VersusDocument } from "./document.js";
import { type FigureName, kFigures, kPercentiles, type Spread } from "./figures.js";

/** Name of each figure, and how its values are written. */
const kRows: Readonly<Record<FigureName, readonly [name: string, text: (value: number) => string]>> = {
  goodput_bps: ["goodput Gb/s", gbps],
  jain: ["Jain's index", (value) => value.toFixed(4)],
  graphs_s: ["message graphs ms", (value) => fixed(value * 1e3)],
  convergence_s: ["converged after ms", (value) => fixed(value * 1e3)],
  queue_p50_bytes: ["longest queue KB p50", kilobytes],
  queue_p99_bytes: ["longest queue KB p99", kilobytes],
  queue_max_bytes: ["longest queue KB max", kilobytes],
  pauses: ["pauses", amount],
  pause_time_s: ["paused us, all senders", (value) => fixed(value * 1e6)],
  ecn_marked: ["ECN marked", amount],
  cnps: ["CNPs", amount],
  drops: ["drops", amount],
  retransmitted: ["packets sent again", amount],
  incomplete: ["transfers not complete", amount],
};

function amount(value: number): string {
  return Number.isInteger(value) ? count(value) : fixed(value);
}

/** Everything about the comparison; ends with a line feed. */
export function renderVersus(document: VersusDocument, options: TableOptions = {}): string {
  const colors = pc.createColors(options.color ?? false);
  const lists = [remarks(document), invalidLines(document).map(colors.red)].filter((lines) => lines.length > 0);
  const grids = versusGrids(document).map((grid) => drawGrid(grid, options.color));
  const made = `made by ${printable(describeMade(document.made))}`;
  return `${[...grids, ...lists.map((lines) => lines.join("\n")), made].join("\n\n")}\n`;
}

/**
 * Tables of the figures of each contender, then completion times by size where transfers have an end. Figures that are 0 for all are left
 * out.
 */
export function versusGrids(document: VersusDocument): Grid[] {
  const { contenders, seeds, scenario } = document;
  const labels = columnNames(document);
  const over = seeds.length === 1 ? `seed ${seeds[0]}` : `mean +- 95% confidence over ${seeds.length} seeds`;
  // A convergence time of 0 says something: flows shared evenly from the start on.
  const tells = (name: FigureName, spread: Spread | undefined) =>
    spread !== undefined && (spread.max > 0 || name === "convergence_s");
  const shown = kFigures.filter((name) => contenders.some(({ figures }) => tells(name, figures[name])));
  const rows = shown.map((name) => {
    const [title, text] = kRows[name];
    return [title, ...contenders.map((one) => cell(one.figures[name], text, expected(name, one, seeds.length)))];
  });
  const grids = [
    { title: `${printable(scenario)}, ${over}`, head: ["figure", ...labels], names: 1, rows },
    pairedGrid(document, shown),
    differenceGrid(document, shown),
    sizeGrid(document, "slowdown", "Slowdown: completion time / that in the empty network"),
    sizeGrid(document, "fct_us", "Completion times, us"),
  ];
  return grids.filter((grid) => grid.rows.length > 0);
}

export function columnNames(document: VersusDocument): string[] {
  const several = hasClocks(document);
  return document.contenders.map((one) => printable(nameOf(one, several)));
}

/** Differences of each contender to the first, seed by seed. */
function pairedGrid(document: VersusDocument, shown: readonly FigureName[]): Grid {
  const { contenders } = document;
  const names = columnNames(document);
  const columns = contenders.flatMap((one, i) => {
    const first = contenders.find(({ clock }) => clock === one.clock);
    return one.against_first === undefined || first === undefined ? [] : [{ one, first, name: names[i] as string }];
  });
  const text = ({ one, first }: (typeof columns)[number], name: FigureName) => {
    const difference = one.against_first?.[name];
    const base = first.figures[name]?.mean ?? 0;
    if (difference === undefined) return "-";
    const write = kRows[name][1];
    const { mean, ci95 } = difference;
    const sign = mean < 0 ? "-" : "+";
    const certain = Math.abs(mean) > ci95 ? "" : " ?";
    if (base === 0) return `${sign}${write(Math.abs(mean))} +-${write(ci95)}${certain}`;
    return `${signedPercent(mean / base)} +-${percent(ci95 / Math.abs(base))}${certain}`;
  };
  const rows = shown.map((name) => [kRows[name][0], ...columns.map((column) => text(column, name))]);
  return {
    title: `Against ${printable(contenders[0]?.label ?? "")}, seed by seed: mean difference +- 95% confidence`,
    head: ["figure", ...columns.map(({ name }) => name)],
    names: 1,
    rows: columns.some(({ one }) => Object.keys(one.against_first ?? {}).length > 0) ? rows : [],
  };
}

/** Differences of the wire to virtual time. */
function differenceGrid({ contenders }: VersusDocument, shown: readonly FigureName[]): Grid {
  const pairs = contenders
    .filter(({ clock }) => clock === "sim")
    .flatMap((sim) => {
      const wire = contenders.find(({ label, clock }) => label === sim.label && clock === "wire");
      return wire === undefined ? [] : [{ sim, wire }];
    });
  const difference = ({ sim, wire }: (typeof pairs)[number], name: FigureName) => {
    const [meant, real] = [sim.figures[name]?.mean, wire.figures[name]?.mean];
    if (meant === undefined || real === undefined) return "-";
    return signedPercent(meant === real ? 0 : meant === 0 ? null : real / meant - 1);
  };
  return {
    title: "Wire against virtual time, of the means",
    head: ["figure", ...pairs.map(({ sim }) => printable(sim.label))],
    names: 1,
    rows:
      pairs.length === 0 ? [] : shown.map((name) => [kRows[name][0], ...pairs.map((pair) => difference(pair, name))]),
  };
}

function sizeGrid(document: VersusDocument, what: "slowdown" | "fct_us", title: string): Grid {
  const { contenders, seeds } = document;
  const sizes = new Map(contenders.flatMap(({ sizes }) => sizes.map((one) => [one.above_bytes, one.size] as const)));
  const rows = [...sizes]
    .sort(([a], [b]) => a - b)
    .flatMap(([above, size]) => {
      const found = contenders.map((one) => one.sizes.find(({ above_bytes }) => above_bytes === above));
      return [
        [size, "count", ...found.map((one) => cell(one?.count, amount, seeds.length))],
        ...kPercentiles.map((name) => [
          size,
          name,
          ...found.map((one) => cell(one?.[what][name], fixed, seeds.length)),
        ]),
      ];
    });
  return { title, head: ["size", "", ...columnNames(document)], names: 2, rows };
}

/** Runs that a figure is missing from are told where it has to be there: those that never converge. */
function expected(name: FigureName, { figures, runs }: ContenderDocument, seeds: number): number {
  return name === "convergence_s" ? runs.length : (figures[name]?.seeds ?? seeds);
}

/** Writes "38.214 +-0.102", "12.4 +-1.1 (2 of 3)", "12.4 (1 of 3)", "-". */
function cell(spread: Spread | undefined, text: (value: number) => string, of: number): string {
  if (spread === undefined || spread.seeds === 0) return "-";
  const confidence = spread.ci95 === undefined ? "" : ` +-${spread.ci95 === 0 ? "0" : text(spread.ci95)}`;
  return `${text(spread.mean)}${confidence}${spread.seeds < of ? ` (${spread.seeds} of ${of})` : ""}`;
}

/** Explains how to read the tables. */
export function remarks({ contenders, convergence, seeds }: VersusDocument): string[] {
  const { within, smoothed, proof } = convergence;
  const converged = contenders.some(({ figures }) => figures.convergence_s !== undefined);
  const unfinished = contenders.some(({ figures }) => (figures.incomplete?.max ?? 0) > 0);
  const figures = contenders.flatMap((one) => Object.values(one.figures));
  return [
    seeds.length === 1
      ? "one seed: nothing says how far these figures are by chance (--seeds 5)"
      : "+-: half of the 95% confidence interval of the mean, by Student's t; ? behind a difference: it may be none",
    ...(figures.some(({ ci95 }) => ci95 === 0) ? ["+-0: the same with every seed"] : []),
    ...(figures.some(({ seeds: own }) => own === 1 && seeds.length > 1)
      ? ["without +-: only one seed has the figure"]
      : []),
    ...(converged
      ? [
          `converged: goodputs of flows without an end to one receiver, each its mean over ${percent(smoothed)} of the run, stay within ` +
            `${percent(within)} of their mean, counted from the last start; "-": not by the last ${percent(proof)} of the time`,
        ]
      : []),
    ...(unfinished ? ["transfers that were not complete at the end are in no completion time"] : []),
  ];
}

/** One line for each run that does not count. */
export function invalidLines(document: VersusDocument): string[] {
  const names = columnNames(document);
  return document.contenders.flatMap(({ runs }, i) =>
    runs
      .filter(({ valid }) => !valid)
      .map(({ seed, reasons }) => `INVALID: ${names[i]}, seed ${seed}: ${reasons.map(printable).join("; ")}`),
  );
}

/** A row for each run: contender, seed, figures in base units. */
export function versusCsv({ contenders }: VersusDocument): string {
  const rows = contenders.flatMap(({ label, clock, runs }) =>
    runs.map(({ seed, valid, figures }) => [
      label,
      clock,
      seed,
      String(valid),
      ...kFigures.map((name) => figures[name]),
    ]),
  );
  return [["contender", "clock", "seed", "valid", ...kFigures], ...rows].map(csvLine).join("");
}
