/** The outcome of an experiment as data: what paper.json holds and `weir paper --json` prints. */
import type { Clock } from "./experiment.js";
import type { PaperMade } from "./made.js";
import type { Difference, OverlaidCurve } from "./overlay.js";
import type { PaperOutcome, RunState } from "./run.js";
import { type Total, totalOf } from "./total.js";
import type { Verdict } from "./verdict.js";

export interface PaperDocument {
  experiment: string;
  paper: { name: string; citation: string };
  place: string;
  title: string;
  setup: string;
  choices: readonly string[];
  /** Alternative under which `alternative` of quantities and statements was measured. */
  alternative?: { name: string; reading: string };
  clocks: readonly Clock[];
  /** All runs were made, to their end, and are valid. */
  complete: boolean;
  runs: RunState[];
  /** `values`: null for what did not happen in the run; a clock that could not measure it is missing. */
  quantities: {
    name: string;
    label: string;
    unit: string;
    values: Measured;
    /** Value of each seed on clocks that have several: `values` are their medians. */
    seeds?: Partial<Record<Clock, (number | null)[]>>;
    alternative?: Measured;
  }[];
  /** Total of the statements. */
  total: Total;
  statements: {
    quote: string;
    where: string;
    reading: string;
    remark?: string;
    /** It compares Weir with Weir, and says nothing of the paper. */
    itself?: true;
    verdicts: Verdict[];
    alternative?: Verdict[];
  }[];
  /** Curves that clocks and references have in common, and the mean absolute difference of each two of them. */
  traces: {
    name: string;
    title: string;
    x_label: string;
    x_range: readonly [number, number];
    /** Unit of the differences. */
    unit: string;
    curves: Omit<OverlaidCurve, "values">[];
    differences: readonly Difference[];
  }[];
  /** Absent where the native core, which it names, was not built. */
  made?: PaperMade;
}

export type Measured = Partial<Record<Clock, number | null>>;

export function documentOf(outcome: PaperOutcome, made?: PaperMade): PaperDocument {
  const { experiment, clocks, complete, runs, observations, statements, alternative, overlays } = outcome;
  const { id, paper, place, title, setup, choices, quantities } = experiment;
  const finite = (value: number) => (Number.isFinite(value) ? value : null);
  const seeds = (name: string) => {
    const own = clocks.flatMap((clock) => {
      const each = observations[clock]?.seeds?.flatMap(({ values }) => values[name] ?? []);
      return each === undefined ? [] : [[clock, each.map(finite)] as const];
    });
    return own.length > 0 && { seeds: Object.fromEntries(own) };
  };
  const measured = (name: string, by: PaperOutcome["observations"]): Measured =>
    Object.fromEntries(
      clocks.flatMap((clock) => {
        const value = by[clock]?.values[name];
        return value === undefined || Number.isNaN(value) ? [] : [[clock, finite(value)]];
      }),
    );
  return {
    experiment: id,
    paper: { ...paper },
    place,
    title,
    setup,
    choices,
    ...(alternative !== undefined &&
      experiment.alternative !== undefined && {
        alternative: { name: experiment.alternative.name, reading: experiment.alternative.reading },
      }),
    clocks,
    complete,
    runs,
    quantities: Object.entries(quantities).map(([name, { label, unit }]) => ({
      name,
      label,
      unit,
      values: measured(name, observations),
      ...seeds(name),
      ...(alternative !== undefined && { alternative: measured(name, alternative.observations) }),
    })),
    total: totalOf([{ paper: paper.name, statements }]),
    statements: statements.map(({ quote, where, reading, remark, itself, verdicts }, i) => ({
      quote,
      where,
      reading,
      ...(remark !== undefined && { remark }),
      ...(itself && { itself }),
      verdicts,
      ...(alternative !== undefined && { alternative: alternative.statements[i]?.verdicts ?? [] }),
    })),
    traces: overlays.map(({ name, trace: { title, x_label, x_range, unit }, curves, differences }) => ({
      name,
      title,
      x_label,
      x_range,
      unit,
      curves: curves.map(({ values, ...about }) => about),
      differences,
    })),
    ...(made !== undefined && { made }),
  };
}
