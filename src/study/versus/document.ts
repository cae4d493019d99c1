/** The runs of all contenders as one document. */
import type { ClockName } from "../../clocks/clock.js";
import { madeNow } from "../../result/made.js";
import type { Made } from "../../result/made_schema.js";
import type { NamedRun } from "../../result/report/overlay.js";
import type { Result } from "../../result/result.js";
import { identityOf, type Plan, type Point, scenarioOf, scenarioTextOf } from "../plan.js";
import type { ResultStore } from "../store.js";
import { type PairedDifference, pairedDifference } from "./confidence.js";
import type { Contender } from "./contenders.js";
import { kConvergence } from "./convergence.js";
import {
  type FigureName,
  type Figures,
  figuresOf,
  kFigures,
  type SizeFigures,
  type Spread,
  sizesOf,
  spreadOf,
} from "./figures.js";

/** One run. */
export interface VersusRun {
  seed: number;
  /** Id of its result among the results. */
  id: string;
  valid: boolean;
  reasons: string[];
  figures: Partial<Figures>;
}

export interface ContenderDocument {
  label: string;
  clock: ClockName;
  algorithm: string;
  profile: string;
  /** Absent where no run has the figure. */
  figures: Partial<Record<FigureName, Spread>>;
  /** Differences to the first on this clock, seed by seed, of all but that one; absent where they cannot be told. */
  against_first?: Partial<Record<FigureName, PairedDifference>>;
  sizes: SizeFigures[];
  runs: VersusRun[];
}

export interface VersusDocument {
  scenario: string;
  /** Time and place at which the document was made; the runs may be older. */
  made: Made;
  /** Meaning of "converged": see convergenceTime(). */
  convergence: typeof kConvergence;
  seeds: number[];
  /** Contenders in their order; one that ran on several clocks has its entries side by side. */
  contenders: ContenderDocument[];
}

/** Name of a contender's column and curve, with its clock where there are several. */
export function nameOf({ label, clock }: Pick<ContenderDocument, "label" | "clock">, several: boolean): string {
  return several ? `${label} ${clock}` : label;
}

export const hasClocks = ({ contenders }: VersusDocument) => new Set(contenders.map(({ clock }) => clock)).size > 1;

/** A contender on one of the clocks, and its points. */
interface Column {
  label: string;
  clock: ClockName;
  points: Point[];
}

/** Columns in the order of the plan: by contender, then by clock. */
function columnsOf({ points }: Plan, contenders: readonly Contender[]): Column[] {
  const each = points.length / contenders.length;
  return contenders.flatMap(({ label }, i) => {
    const own = points.slice(i * each, (i + 1) * each);
    const clocks = [...new Set(own.map(({ clock }) => clock))];
    return clocks.map((clock) => ({ label, clock, points: own.filter((point) => point.clock === clock) }));
  });
}

/** Makes the document of a plan whose points are all done. */
export function versusDocument(plan: Plan, contenders: readonly Contender[], store: ResultStore): VersusDocument {
  const columns = columnsOf(plan, contenders);
  const first = columns[0]?.points ?? [];
  return {
    scenario: first[0] ? store.result(first[0]).scenario : plan.study.name,
    made: madeNow(),
    convergence: kConvergence,
    seeds: first.map(({ seed }) => seed),
    contenders: againstFirst(columns.map((column) => contenderDocument(column, plan, store))),
  };
}

function againstFirst(contenders: readonly ContenderDocument[]): ContenderDocument[] {
  return contenders.map((one) => {
    const first = contenders.find(({ clock }) => clock === one.clock);
    if (first === undefined || first === one) return one;
    const values = ({ runs }: ContenderDocument, name: FigureName) => runs.map(({ figures }) => figures[name]);
    const differences = kFigures.flatMap((name) => {
      const difference = pairedDifference(values(first, name), values(one, name));
      return difference === undefined ? [] : [[name, difference] as const];
    });
    return { ...one, against_first: Object.fromEntries(differences) };
  });
}

function contenderDocument({ points, ...who }: Column, { study }: Plan, store: ResultStore): ContenderDocument {
  const results: Result[] = [];
  const runs = points.map((point): VersusRun => {
    const { scenario } = scenarioOf(identityOf(study, point), store.filesDirectory);
    const result = store.result(point);
    results.push(result);
    const { valid, reasons } = result.fidelity;
    const figures = figuresOf(result, scenario, store.series(point));
    return { seed: point.seed, id: point.id, valid, reasons, figures };
  });
  const spreads = kFigures.map((name) => [name, spreadOf(runs.map(({ figures }) => figures[name]))] as const);
  return {
    ...who,
    algorithm: results[0]?.congestion_control ?? "",
    profile: results[0]?.profile ?? "",
    figures: Object.fromEntries(spreads.filter(([, spread]) => spread !== undefined)) as ContenderDocument["figures"],
    sizes: sizesOf(results),
    runs,
  };
}

/** The run of each contender with the first seed, for pages that draw them over each other. */
export function firstRuns(plan: Plan, contenders: readonly Contender[], store: ResultStore): NamedRun[] {
  const columns = columnsOf(plan, contenders);
  const several = new Set(columns.map(({ clock }) => clock)).size > 1;
  return columns.flatMap(({ points: [point], ...who }) => {
    const series = point && store.series(point);
    if (point === undefined || series === undefined) return [];
    const { scenario } = scenarioOf(identityOf(plan.study, point), store.filesDirectory);
    const source = { text: scenarioTextOf(plan.study, point).text, set: [], scenario };
    return [{ label: nameOf(who, several), result: store.result(point), series, source }];
  });
}
