/** Outcome of `weir paper all`: summary.json, and the data that its report is drawn from. */
import type { Made } from "../../../src/result/made_schema.js";
import type { PaperDocument } from "../document.js";
import { CLOCKS, type Clock } from "../experiment.js";
import type { PaperMade } from "../made.js";
import type { RunState } from "../run.js";
import { judgedOf, otherVerdict } from "../text.js";
import { type Judged, type Total, totalOf } from "../total.js";
import { RULINGS, type Ruling } from "../verdict.js";
import type { TaskOutcome } from "./run.js";
import type { Task } from "./task.js";

/** partial: a run is invalid, or was not made to its end. */
export type State = "complete" | "partial" | "failed" | "not run";

export interface SummaryEntry {
  id: string;
  paper: string;
  place: string;
  title: string;
  clocks: readonly Clock[];
  state: State;
  /** PaperMade by an earlier call. */
  reused: boolean;
  /** Reason for which it failed. */
  error?: string;
  made?: PaperMade;
  /** Runs with seed, scale and fidelity of each. */
  runs: readonly RunState[];
  statements: {
    quote: string;
    where: string;
    rulings: Partial<Record<Clock, Ruling>>;
    /** Rulings that are others under the experiment's alternative. */
    alternative?: { name: string; rulings: Partial<Record<Clock, Ruling>> };
  }[];
  traces: PaperDocument["traces"];
}

export interface SummaryOptions {
  clocks: readonly Clock[];
  /** null: the scenarios' own. */
  seed: number | null;
  scale: number | null;
  /** Patterns; none: all experiments. */
  only: readonly string[];
  reference: string | null;
  /** Experiments at a time, at most. */
  jobs: number;
}

export interface Summary extends Made {
  /** Time of this call; experiments that were made before took their own time. */
  wall_s: number;
  options: SummaryOptions;
  /** Every experiment is. */
  complete: boolean;
  /** Total of all statements, each counted once, whatever number of experiments and clocks judge it. */
  total: Total;
  /** The same on each clock alone. */
  totals: Partial<Record<Clock, Total>>;
  experiments: SummaryEntry[];
  /** Experiments that have none of the clocks. */
  left_out: readonly string[];
}

/** A task with all that is known of it. */
export interface Finished {
  task: Task;
  /** Absent: its folder has nothing of it. */
  document?: PaperDocument | undefined;
  /** Absent: nothing was done for it by this call. */
  outcome?: TaskOutcome | undefined;
}

export function summarize(
  finished: readonly Finished[],
  facts: Omit<Summary, "complete" | "total" | "totals" | "experiments">,
): Summary {
  const experiments = finished.map(entryOf);
  const judged = judgedIn(finished);
  const clocks = CLOCKS.filter((clock) => finished.some(({ document }) => document?.clocks.includes(clock)));
  return {
    ...facts,
    complete: experiments.every(({ state }) => state === "complete"),
    total: totalOf(judged),
    totals: Object.fromEntries(clocks.map((clock) => [clock, totalOf(judged, clock)])),
    experiments,
  };
}

/** Judgements of all experiments that have an outcome. */
export function judgedIn(finished: readonly Finished[]): Judged[] {
  return finished.flatMap(({ document }) => (document === undefined ? [] : [judgedOf(document)]));
}

function entryOf({ task, document, outcome }: Finished): SummaryEntry {
  const { id, paper, place, title } = task.experiment;
  const error = outcome !== undefined && "error" in outcome ? outcome.error : undefined;
  return {
    id,
    paper: paper.name,
    place,
    title,
    clocks: task.clocks,
    state: stateOf(document, error),
    reused: document !== undefined && outcome === undefined,
    ...(error !== undefined && { error }),
    ...(document?.made !== undefined && { made: document.made }),
    runs: document?.runs ?? [],
    statements: (document?.statements ?? []).map((statement) => {
      const { quote, where, verdicts } = statement;
      const others = verdicts.flatMap((verdict): [Clock, Ruling][] => {
        const other = otherVerdict(statement, verdict);
        return other === undefined || other.ruling === verdict.ruling ? [] : [[other.clock, other.ruling]];
      });
      const name = document?.alternative?.name;
      return {
        quote,
        where,
        rulings: Object.fromEntries(verdicts.map(({ clock, ruling }) => [clock, ruling])),
        ...(name !== undefined && others.length > 0 && { alternative: { name, rulings: Object.fromEntries(others) } }),
      };
    }),
    traces: document?.traces ?? [],
  };
}

function stateOf(document: PaperDocument | undefined, error: string | undefined): State {
  if (document !== undefined) return document.complete ? "complete" : "partial";
  return error === undefined ? "not run" : "failed";
}

/** Words in the singular and the plural. */
const kCounted: Readonly<Record<Ruling, readonly [string, string]>> = {
  holds: ["holds", "hold"],
  "falls short": ["falls short", "fall short"],
  agrees: ["agrees with Weir itself", "agree with Weir itself"],
  differs: ["differs from Weir itself", "differ from Weir itself"],
  "not judged": ["not judged", "not judged"],
};

/** "3 hold, 1 falls short, 1 not judged" of one experiment on one clock; "" where it does not run there. */
export function rulingText({ statements }: Pick<SummaryEntry, "statements">, clock: Clock): string {
  return RULINGS.flatMap((ruling) => {
    const count = statements.filter(({ rulings }) => rulings[clock] === ruling).length;
    return count === 0 ? [] : `${count} ${kCounted[ruling][count === 1 ? 0 : 1]}`;
  }).join(", ");
}

/** "holds"; "holds (alpha reset: falls short)"; "" where there is no verdict. */
export function rulingsText({ rulings, alternative }: SummaryEntry["statements"][number], clock: Clock): string {
  const other = alternative?.rulings[clock];
  return `${rulings[clock] ?? ""}${other === undefined ? "" : ` (${alternative?.name}: ${other})`}`;
}

/** Lines on what is not there, and why: one for each experiment that is not complete. */
export function missingLines({ experiments }: Summary): string[] {
  return experiments.flatMap(({ id, state, error, runs }) => {
    if (state === "complete") return [];
    const bad = runs.filter(({ valid }) => !valid).length;
    return `${id}: ${state === "partial" ? `${bad} of ${runs.length} runs did not come to a valid end` : (error ?? state)}`;
  });
}
