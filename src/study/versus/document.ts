/** The runs of all contenders as one document. */
import type { ClockName } from "../../clocks/clock.js";
import { madeNow } from "../../result/made.js";
import type { Made } from "../../result/made_schema.js";
import type { NamedRun } from "../../result/report/overlay.js";
import type { Result } from "../../result/result.js";
import { identityOf, type Plan, type Point, scenarioOf } from "../sweep/plan.js";
import type { ResultStore } from "../sweep/store.js";
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
  /** Of its result among the results. */
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
  /** Of all but the first on this clock: how far from that one, seed by seed; absent where it cannot be told. */
  against_first?: Partial<Record<FigureName, PairedDifference>>;
  sizes: SizeFigures[];
  runs: VersusRun[];
}

export interface VersusDocument {
  scenario: string;
  /** When the document was; the runs may be older. */
  made: Made;
  /** What "converged" means: see convergenceTime(). */
  convergence: typeof kConvergence;
  seeds: number[];
  /** Of a contender side by side, where it ran on several clocks. */
  contenders: ContenderDocument[];
}

/** What a contender's column and curve are called: by its clock, too, where there are several. */
export function nameOf({ label, clock }: Pick<ContenderDocument, "label" | "clock">, several: boolean): string {
  return several ? `${label} ${clock}` : label;
}

export const hasClocks = ({ contenders }: VersusDocument) => new Set(contenders.map(({ clock }) => clock)).size > 1;

/** Where the results of each clock are. */
export type VersusStores = ReadonlyMap<ClockName, ResultStore>;

/** The points of each contender, in the order of the contenders. */
export function pointsOf({ points }: Plan, contenders: readonly Contender[]): Point[][] {
  const seeds = points.length / contenders.length;
  return contenders.map((_, i) => points.slice(i * seeds, (i + 1) * seeds));
}

/** Of a plan whose points are all done. */
export function versusDocument(plan: Plan, contenders: readonly Contender[], stores: VersusStores): VersusDocument {
  const points = pointsOf(plan, contenders);
  const [first = []] = points;
  const [any] = stores.values();
  return {
    scenario: first[0] && any ? any.result(first[0].id).scenario : plan.sweep.name,
    made: madeNow(),
    convergence: kConvergence,
    seeds: first.map(({ seed }) => seed),
    contenders: againstFirst(
      contenders.flatMap(({ label }, i) =>
        [...stores].map(([clock, store]) => contenderDocument({ label, clock }, plan, points[i] ?? [], store)),
      ),
    ),
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

function contenderDocument(
  who: Pick<ContenderDocument, "label" | "clock">,
  { sweep }: Plan,
  points: readonly Point[],
  store: ResultStore,
): ContenderDocument {
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
    ...who,
    algorithm: results[0]?.congestion_control ?? "",
    profile: results[0]?.profile ?? "",
    figures: Object.fromEntries(spreads.filter(([, spread]) => spread !== undefined)) as ContenderDocument["figures"],
    sizes: sizesOf(results),
    runs,
  };
}

/** The run of each contender with the first seed, for pages that draw them over each other. */
export function firstRuns(plan: Plan, contenders: readonly Contender[], stores: VersusStores): NamedRun[] {
  return pointsOf(plan, contenders).flatMap(([point], i) =>
    [...stores].flatMap(([clock, store]) => {
      const series = point && store.series(point.id);
      if (point === undefined || series === undefined) return [];
      const { scenario } = scenarioOf(identityOf(plan.sweep, point), store.filesDirectory);
      const source = { text: plan.sweep.scenario.text, set: [], scenario };
      const label = nameOf({ label: contenders[i]?.label ?? "", clock }, stores.size > 1);
      return [{ label, result: store.result(point.id), series, source }];
    }),
  );
}
