/** The runs of all contenders as one document. */
import type { NamedRun } from "../report/overlay.js";
import type { Result } from "../result/result.js";
import { identityOf, type Plan, type Point, scenarioOf } from "../sweep/plan.js";
import type { ResultStore } from "../sweep/store.js";
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
  /** Of its result among the results. */
  id: string;
  valid: boolean;
  reasons: string[];
  figures: Partial<Figures>;
}

export interface ContenderDocument {
  label: string;
  algorithm: string;
  profile: string;
  /** Absent where no run has the figure. */
  figures: Partial<Record<FigureName, Spread>>;
  sizes: SizeFigures[];
  runs: VersusRun[];
}

export interface VersusDocument {
  scenario: string;
  /** What "converged" means: see convergenceTime(). */
  convergence: typeof kConvergence;
  seeds: number[];
  contenders: ContenderDocument[];
}

/** The points of each contender, in the order of the contenders. */
export function pointsOf({ points }: Plan, contenders: readonly Contender[]): Point[][] {
  const seeds = points.length / contenders.length;
  return contenders.map((_, i) => points.slice(i * seeds, (i + 1) * seeds));
}

/** Of a plan whose points are all done. */
export function versusDocument(plan: Plan, contenders: readonly Contender[], store: ResultStore): VersusDocument {
  const points = pointsOf(plan, contenders);
  const [first = []] = points;
  return {
    scenario: first[0] === undefined ? plan.sweep.name : store.result(first[0].id).scenario,
    convergence: kConvergence,
    seeds: first.map(({ seed }) => seed),
    contenders: contenders.map(({ label }, i) => contenderDocument(label, plan, points[i] ?? [], store)),
  };
}

function contenderDocument(label: string, { sweep }: Plan, points: readonly Point[], store: ResultStore) {
  const results: Result[] = [];
  const runs = points.map((point): VersusRun => {
    const { scenario } = scenarioOf(identityOf(sweep, point), store.filesDirectory);
    const result = store.result(point.id);
    results.push(result);
    const { valid, reasons } = result.fidelity;
    const figures = figuresOf(result, scenario, store.series(point.id));
    return { seed: point.seed, id: point.id, valid, reasons, figures };
  });
  const spreads = kFigures.map((name) => [name, spreadOf(runs.map(({ figures }) => figures[name]))] as const);
  return {
    label,
    algorithm: results[0]?.congestion_control ?? "",
    profile: results[0]?.profile ?? "",
    figures: Object.fromEntries(spreads.filter(([, spread]) => spread !== undefined)) as ContenderDocument["figures"],
    sizes: sizesOf(results),
    runs,
  };
}

/** The run of each contender with the first seed, for pages that draw them over each other. */
export function firstRuns(plan: Plan, contenders: readonly Contender[], store: ResultStore): NamedRun[] {
  return pointsOf(plan, contenders).flatMap(([point], i) => {
    const series = point && store.series(point.id);
    if (point === undefined || series === undefined) return [];
    const { scenario } = scenarioOf(identityOf(plan.sweep, point), store.filesDirectory);
    const source = { text: plan.sweep.scenario.text, set: [], scenario };
    return [{ label: contenders[i]?.label ?? "", result: store.result(point.id), series, source }];
  });
}
