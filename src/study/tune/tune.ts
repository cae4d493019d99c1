/** Looks for better parameters of a scenario's congestion control, and checks whether they hold with other seeds. */
import { basename, dirname, extname } from "node:path";
import { ScenarioError, WeirError } from "../../base/error.js";
import { readScenarioFile } from "../../base/yaml.js";
import type { ClockName } from "../../clocks/clock.js";
import { kClocks } from "../../clocks/clocks.js";
import type { ParameterInput } from "../../congestion/parameter.js";
import { judgeExpectations } from "../../result/expectations.js";
import { madeNow } from "../../result/made.js";
import type { Made } from "../../result/made_schema.js";
import { type LoadedScenario, loadScenario, parseScenarioText } from "../../scenario/scenario.js";
import type { Plan, Point } from "../plan.js";
import type { ResultStore } from "../store.js";
import { planSweep } from "../sweep/plan_sweep.js";
import { type Override, overridesOf, type SweepSpec, showOverride } from "../sweep/spec.js";
import { halve, mostCandidates, type Score } from "./halving.js";
import { isEmpty, type Objective, objectiveOf } from "./objective.js";
import { type Candidate, candidates, type Dimension, parseSpace } from "./space.js";

export interface TuneOptions {
  set: readonly string[];
  objective: Objective;
  /** Parameters as text for parseSpace(). */
  parameters: string | undefined;
  /** The clock that all run on. */
  on: ClockName;
  /** Most runs, those that verify included. */
  runs: number;
  /** Number of seeds to tune on, from the scenario's own on; `verify`: of those that come after them, to verify on. */
  seeds: number;
  verify: number;
  /** Version of the code: see codeVersion(). */
  code: string;
  /** Part by which what runs in virtual time skip may be off; absent: they skip nothing. */
  fast_forward?: number | undefined;
}

/** The scenario's own values beside the tuned ones, with the same seeds. */
export interface Comparison {
  seeds: number[];
  /** The objective with each seed. */
  before: number[];
  after: number[];
  /** Expectations of the scenario that are not met, over all runs. */
  unmet: { before: number; after: number };
  /** Improvement of the mean, as a part of the mean before; null where that is 0. */
  gain: number | null;
}

/**
 * `nothing`: no run of either says anything: they are not valid, or the objective is a figure of nothing, as of completion times where no
 * transfer was complete. `kept`: nothing was found that is better than the scenario's own values. Otherwise the tuned values were run with
 * seeds that they were not tuned on: they are better by more than two standard errors of the differences (`holds`), by less (`unclear`), or
 * not at all (`fails`).
 */
export type TuneVerdict = "nothing" | "kept" | "holds" | "unclear" | "fails";

export interface TuneDocument {
  scenario: string;
  /** Time and place at which the document was made; runs may be older. */
  made: Made;
  /** Clock that all ran on. */
  clock: ClockName;
  algorithm: string;
  objective: string;
  parameters: { name: string; low: number; high: number; before: ParameterInput; after: ParameterInput }[];
  candidates: number;
  /** Number of runs. */
  runs: number;
  tuned_on: Comparison;
  verified_on: Comparison;
  verdict: TuneVerdict;
  /** Arguments of `--set` that give the tuned values; empty: the scenario as it is. */
  set: string[];
}

/** Runs the points of a plan that have no result yet; returns false when not all have one now. */
export type RunPlan = (plan: Plan, what: string) => Promise<boolean>;

export class Tuning {
  private readonly loaded: LoadedScenario;
  private readonly space: Dimension[];
  private readonly drawn: Candidate[];
  /** Ids of the points that were run. */
  private readonly ran = new Set<string>();

  /** @throws WeirError for what the user can mend, before anything runs. */
  constructor(
    private readonly file: string,
    private readonly options: TuneOptions,
  ) {
    const { on, set, parameters, runs, seeds, verify } = options;
    this.loaded = loadScenario(file, { set });
    kClocks[on].check(this.loaded.scenario);
    const text = JSON.stringify(readScenarioFile(file, set).data);
    const parse = (more: readonly string[]) =>
      parseScenarioText(text, basename(file, extname(file)), { set: more, directory: dirname(file) });
    const { congestion, seed } = this.loaded.scenario;
    this.space = parseSpace(parameters, congestion, writtenIn(text));
    const count = mostCandidates(runs - 2 * verify, seeds);
    if (count < 2) {
      const hint = `${seeds} seeds to tune on and ${verify} to verify on need ${2 * seeds + 2 * verify} runs`;
      throw new WeirError(`${runs} runs are too few for two candidates`, { hint });
    }
    this.drawn = candidates(this.space, count, seed, (candidate) => {
      try {
        const more = this.overridesOf(candidate).map(([path, value]) => `${path}=${JSON.stringify(value)}`);
        kClocks[on].check(parse(more).scenario);
        return true;
      } catch (error) {
        if (error instanceof ScenarioError) return false;
        throw error;
      }
    });
  }

  get warnings(): readonly string[] {
    return this.loaded.warnings;
  }

  /** Returns undefined when `run` did not run all. */
  async search(store: ResultStore, run: RunPlan): Promise<TuneDocument | undefined> {
    const { seeds, verify, objective } = this.options;
    const { scenario } = this.loaded;
    const at = (from: number, count: number) => Array.from({ length: count }, (_, i) => scenario.seed + from + i);
    // A field that is not in the result is told before others run.
    const first = await this.scores([0], at(0, 1), store, (plan) => run(plan, "the scenario as it is")).catch(stopped);
    if (first === undefined) return undefined;
    let number = 0;
    const found = await halve(this.drawn.length, seeds, (round) => {
      const many = round.seeds.length === 1 ? "one seed" : `${round.seeds.length} seeds`;
      const what = `round ${++number}: ${round.candidates.length} candidates with ${many} more`;
      const own = round.seeds.map((seed) => scenario.seed + seed);
      return this.scores(round.candidates, own, store, (plan) => run(plan, what));
    }).catch(stopped);
    if (found === undefined) return undefined;
    const { best } = found;
    const verified = await this.scores([0, best], at(seeds, verify), store, (plan) =>
      run(plan, `verifying with ${verify} other seeds`),
    ).catch(stopped);
    if (verified === undefined) return undefined;
    const tuned_on = comparison(at(0, seeds), found.before, found.after, objective);
    const verified_on = comparison(at(seeds, verify), verified[0] ?? [], verified[1] ?? [], objective);
    const after = this.drawn[best] as Candidate;
    const compared = [...found.before, ...found.after, ...verified.flat()];
    return {
      scenario: scenario.name,
      made: madeNow(),
      clock: this.options.on,
      algorithm: scenario.congestion.algorithm,
      objective: objective.text,
      parameters: this.space.map(({ name, low, high, standard }, i) => ({
        ...{ name, low, high, before: standard },
        after: after[i] as ParameterInput,
      })),
      candidates: this.drawn.length,
      runs: this.ran.size,
      ...{ tuned_on, verified_on },
      verdict: compared.every(({ nothing }) => nothing)
        ? "nothing"
        : best === 0
          ? "kept"
          : verdict(verified_on, objective),
      set: best === 0 ? [] : this.overridesOf(after).map(showOverride),
    };
  }

  /** Returns the scores of each candidate with each seed. @throws Stopped when `run` did not run all. */
  private async scores(
    numbers: readonly number[],
    seeds: readonly number[],
    store: ResultStore,
    run: (plan: Plan) => Promise<boolean>,
  ): Promise<Score[][]> {
    const { plan } = planSweep(this.spec(numbers, seeds), this.file, this.options.code);
    for (const { id } of plan.points) this.ran.add(id);
    if (!(await run(plan))) throw new Stopped();
    return numbers.map((_, i) => {
      const points = plan.points.slice(i * seeds.length, (i + 1) * seeds.length);
      return points.map((point) => this.score(point, store));
    });
  }

  private score(point: Point, store: ResultStore): Score {
    const { objective } = this.options;
    const result = store.result(point);
    const judged = judgeExpectations(result, this.loaded.scenario.expect);
    const nothing = !result.fidelity.valid || isEmpty(result, objective);
    const unmet = judged.filter(({ met }) => !met).length + (nothing ? 1 : 0);
    return { unmet, objective: objective.sign * objectiveOf(result, objective), nothing };
  }

  private spec(numbers: readonly number[], seeds: readonly number[]): SweepSpec {
    return {
      name: basename(this.file, extname(this.file)),
      scenario: this.file,
      set: overridesOf(this.options.set),
      axes: this.space.map(({ field }) => field),
      // Candidate 0, the scenario's own values, overrides nothing.
      combinations: numbers.map((i) => (i === 0 ? [] : this.overridesOf(this.drawn[i] as Candidate))),
      seeds: [...seeds],
      on: [this.options.on],
      collect: [],
      fast_forward: this.options.fast_forward,
    };
  }

  private overridesOf(candidate: Candidate): Override[] {
    return this.space.map(({ field }, i) => [field, candidate[i]]);
  }
}

/** Thrown when not all points of a round have a result. */
class Stopped extends Error {}

function stopped(error: unknown): undefined {
  if (!(error instanceof Stopped)) throw error;
}

function writtenIn(json: string): Readonly<Record<string, ParameterInput>> {
  const data = JSON.parse(json) as { congestion?: { parameters?: Record<string, ParameterInput> } | null };
  return data.congestion?.parameters ?? {};
}

function comparison(
  seeds: readonly number[],
  before: readonly Score[],
  after: readonly Score[],
  { sign }: Objective,
): Comparison {
  const values = (scores: readonly Score[]) => scores.map(({ objective }) => sign * objective);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, value) => total + value, 0);
  const unmet = (scores: readonly Score[]) => sum(scores.map((score) => score.unmet));
  const [old, found] = [sum(values(before)), sum(values(after))];
  return {
    seeds: [...seeds],
    before: values(before),
    after: values(after),
    unmet: { before: unmet(before), after: unmet(after) },
    gain: old === 0 ? null : (sign * (old - found)) / Math.abs(old),
  };
}

/** Judges by paired differences: runs with the same seed have the same traffic. */
export function verdict({ before, after, unmet }: Comparison, { sign }: Objective): TuneVerdict {
  const gains = before.map((value, i) => sign * (value - (after[i] as number)));
  const count = gains.length;
  const mean = gains.reduce((sum, gain) => sum + gain, 0) / count;
  const variance = gains.reduce((sum, gain) => sum + (gain - mean) ** 2, 0) / Math.max(1, count - 1);
  if (unmet.after > unmet.before) return "fails";
  if (unmet.after < unmet.before) return "holds";
  if (!(mean > 0)) return "fails";
  return mean > 2 * Math.sqrt(variance / count) ? "holds" : "unclear";
}
