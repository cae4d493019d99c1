/** Judges the statements of an experiment by its runs, on the clocks that were asked for; what is not there yet is run, one after another. */
import { join } from "node:path";
import { WeirError } from "../../src/base/error.js";
import { makeFolder } from "../../src/base/folder.js";
import { before } from "../../src/result/measure.js";
import type { Series } from "../../src/result/result.js";
import { median } from "../../src/result/statistics.js";
import { filesByContent, identityOf, scenarioOf } from "../../src/study/plan.js";
import { type Runners, runPoint } from "../../src/study/point.js";
import { ResultStore } from "../../src/study/store.js";
import {
  type Alternative,
  type Bench,
  type Clock,
  type Evidence,
  type Experiment,
  type NetworkClock,
  type Observation,
  repeatName,
  seedsOn,
  trialsOn,
} from "./experiment.js";
import { type Overlay, overlaysOf } from "./overlay.js";
import type { References } from "./reference.js";
import { type PlannedRun, planRuns, type RunsPlan } from "./runs.js";
import type { Overrides } from "./trial.js";
import { type ClockEvidence, type JudgedStatement, judge } from "./verdict.js";

export interface PaperOptions extends Overrides {
  clocks: readonly Clock[];
  /** See codeVersion(). */
  code: string;
  /** Each run leaves its own result there, in <clock>/<trial>/; what is there already is not run again. */
  directory: string;
  /** Curves of other simulators; default: none. */
  references?: References | undefined;
  /** Once aborted, the run under way ends, and the others do not begin. */
  signal: AbortSignal;
  onProgress?: ((progress: PaperProgress) => void) | undefined;
}

export interface PaperProgress extends Pick<RunState, "clock" | "trial" | "alternative"> {
  /** 0..1 of this run. */
  done: number;
  /** Position among all runs, from 1. */
  number: number;
  runs: number;
}

/** How one run went. */
export interface RunState {
  clock: Clock;
  trial: string;
  /** Name of the alternative that it is of. */
  alternative?: string;
  /** It was run to its end. */
  complete: boolean;
  /** Complete, and its figures count. */
  valid: boolean;
  /** Reasons for which it is not valid. */
  reasons: string[];
  /** Known for runs of scenarios. */
  scale?: number;
  seed?: number;
  /** How long it took; absent where it was not made to its end. */
  wall_s?: number | undefined;
  /** Relative to the directory; absent where the run left nothing. */
  folder?: string;
}

export interface PaperOutcome {
  experiment: Experiment;
  clocks: readonly Clock[];
  runs: RunState[];
  observations: Partial<Record<Clock, Observation>>;
  statements: JudgedStatement[];
  /** The same under the experiment's alternative; absent: it has none, or none of its clocks was asked for. */
  alternative?: { observations: Partial<Record<Clock, Observation>>; statements: JudgedStatement[] };
  /** Curves that clocks and references have in common. */
  overlays: Overlay[];
  /** Every run was made, to its end, and is valid. */
  complete: boolean;
}

/** @throws WeirError when a scenario cannot be read. Failures in a run are in the outcome. */
export async function runExperiment(
  experiment: Experiment,
  runners: Runners,
  options: PaperOptions,
): Promise<PaperOutcome> {
  const series = new RunSeries(experiment, runners, options);
  const evidence: ClockEvidence[] = [];
  const others: ClockEvidence[] = [];
  const { bench, alternative } = experiment;
  for (const clock of options.clocks) {
    if (clock === "model") evidence.push(await series.model());
    else if (clock === "wire" && bench !== undefined) evidence.push(await series.bench(bench));
    else evidence.push(await series.network(clock));
    if (alternative === undefined || clock === "wire") continue;
    others.push(clock === "model" ? await series.model(alternative) : await series.network(clock, alternative));
  }
  return {
    experiment,
    clocks: options.clocks,
    runs: series.states,
    observations: observed(evidence),
    statements: judge(experiment, evidence),
    ...(others.length > 0 && {
      alternative: { observations: observed(others), statements: judge(experiment, others) },
    }),
    overlays: overlaysOf(experiment, evidence, options.references ?? {}),
    complete: series.states.every(({ valid }) => valid),
  };
}

function observed(evidence: readonly ClockEvidence[]): Partial<Record<Clock, Observation>> {
  return Object.fromEntries(evidence.map(({ clock, observation }) => [clock, observation]));
}

/** How many runs there are beside those of scenarios. */
function othersOn({ alternative, bench }: Experiment, clock: Clock): number {
  if (clock === "model") return alternative === undefined ? 1 : 2;
  return clock === "wire" && bench !== undefined ? 1 : 0;
}

/** A run, and what it has shown. */
interface Run {
  state: RunState;
  evidence?: Evidence;
}

class RunSeries {
  readonly states: RunState[] = [];
  private readonly plan: RunsPlan;
  private readonly store: ResultStore;
  /** Runs under the first reading, by clock and trial. */
  private readonly made = new Map<string, Run>();
  private readonly runs: number;

  constructor(
    private readonly experiment: Experiment,
    private readonly runners: Runners,
    private readonly options: PaperOptions,
  ) {
    const { clocks, directory } = options;
    this.plan = planRuns([{ experiment, clocks }], { ...options, folders: false });
    this.store = ResultStore.create(directory);
    this.store.saveFiles(filesByContent(this.plan.study));
    this.runs = this.plan.runs.length + clocks.reduce((sum, clock) => sum + othersOn(experiment, clock), 0);
  }

  async model(alternative?: Alternative): Promise<ClockEvidence> {
    const state = { clock: "model", trial: "model", ...named(alternative), scale: 1, seed: 0 } as const;
    if (this.options.signal.aborted || this.experiment.model === undefined) {
      this.states.push({ ...state, complete: false, valid: false, reasons: ["not run"] });
      return { clock: "model", doubt: "not run" };
    }
    this.report(state, 0);
    const began = performance.now();
    const observation = await this.experiment.model(alternative);
    this.states.push({ ...state, complete: true, valid: true, reasons: [], wall_s: since(began) });
    return { clock: "model", observation };
  }

  async bench({ run }: Bench): Promise<ClockEvidence> {
    const { signal } = this.options;
    const facts = { clock: "wire", trial: "bench" } as const;
    const failed = (reason: string): ClockEvidence => {
      this.states.push({ ...facts, complete: false, valid: false, reasons: [reason] });
      return { clock: "wire", doubt: reason };
    };
    if (signal.aborted) return failed("not run");
    this.report(facts, 0);
    const folder = join(facts.clock, facts.trial);
    const directory = join(this.options.directory, folder);
    makeFolder(directory);
    const began = performance.now();
    try {
      const { observation, doubts } = await run({ directory, signal, onProgress: (done) => this.report(facts, done) });
      const valid = doubts.length === 0;
      this.states.push({ ...facts, complete: true, valid, reasons: doubts, wall_s: since(began), folder });
      return { clock: "wire", observation, ...(!valid && { doubt: "run bench is invalid" }) };
    } catch (error) {
      if (signal.aborted) return failed("stopped");
      if (error instanceof WeirError) return failed([error.message, error.hint].filter(Boolean).join("; "));
      throw error;
    }
  }

  async network(clock: NetworkClock, alternative?: Alternative): Promise<ClockEvidence> {
    const { network } = this.experiment;
    if (network === undefined) throw new Error(`${this.experiment.id} has no runs`);
    const seeds: Observation[] = [];
    const own: RunState[] = [];
    const count = seedsOn(this.experiment, clock);
    for (let seed = 1; seed <= count; seed++) {
      const found: Record<string, Evidence> = {};
      for (const trial of trialsOn(this.experiment, clock)) {
        const name = count > 1 ? repeatName(trial.name, seed) : trial.name;
        const { state, evidence } = await this.trial(clock, name, alternative);
        own.push(state);
        if (evidence !== undefined) found[trial.name] = evidence;
      }
      // A run that was cut short has no place where the experiment looks for its end.
      if (own.every(({ complete }) => complete)) seeds.push(network.observe(found, clock));
    }
    const bad = own.filter(({ valid }) => !valid);
    // The reasons are long, and are told once, where the runs are.
    const doubts = bad.map(({ trial, complete }) => `run ${trial} is ${complete ? "invalid" : "incomplete"}`);
    const doubt = doubts.length > 0 ? { doubt: doubts.join("; ") } : {};
    const whole = own.every(({ complete }) => complete);
    return { clock, ...doubt, ...(whole && { observation: together(seeds, network) }) };
  }

  /** The run under the alternative is that under the first reading where it makes no difference. */
  private async trial(clock: NetworkClock, name: string, alternative?: Alternative): Promise<Run> {
    const place = `${clock}/${name}`;
    const planned = this.plan.runs.find(
      (one) => one.clock === clock && one.trial === name && one.alternative === alternative?.name,
    );
    if (planned === undefined) return this.made.get(place) as Run;
    const run = await this.make(planned);
    this.states.push(run.state);
    if (alternative === undefined) this.made.set(place, run);
    return run;
  }

  /** Takes what is there, and runs what is not. */
  private async make({ point, clock, trial, alternative }: PlannedRun): Promise<Run> {
    const named = alternative === undefined ? {} : { alternative };
    const facts = { clock, trial, ...named, seed: point.seed };
    const { study } = this.plan;
    const { scenario } = scenarioOf(identityOf(study, point), this.store.filesDirectory);
    const planned = clock === "wire" && scenario.scale !== "auto" ? scenario.scale : 1;
    const failed = (reason: string) => ({
      state: { ...facts, complete: false, valid: false, reasons: [reason], scale: planned },
    });
    if (!this.store.isDone(point)) {
      const { signal } = this.options;
      if (signal.aborted) return failed("not run");
      const onProgress = (done: number) => this.report(facts, done);
      onProgress(0);
      const outcome = await runPoint(this.runners, study, point, this.store, { signal, onProgress });
      if (outcome.status === "stopped") return failed("stopped");
      if (outcome.status === "failed") return failed(outcome.error);
    }
    const result = this.store.result(point);
    const series = this.store.series(point) as Series;
    const { valid, reasons } = result.fidelity;
    const made = { scale: result.scale, wall_s: this.store.wallTime(point), folder: point.folder as string };
    const state = { ...facts, complete: result.until_s === undefined, valid, reasons, ...made };
    return { state, evidence: { scenario, result, series: before(series, scenario.duration / 1e9) } };
  }

  private report({ clock, trial, alternative }: Pick<RunState, "clock" | "trial" | "alternative">, done: number): void {
    const number = this.states.length + 1;
    const facts = { clock, trial, ...(alternative !== undefined && { alternative }) };
    this.options.onProgress?.({ ...facts, done: Math.min(1, done), number, runs: this.runs });
  }
}

/** Combines several seeds. */
function together(seeds: readonly Observation[], { summarize }: NonNullable<Experiment["network"]>): Observation {
  const [first] = seeds as [Observation];
  if (seeds.length === 1) return first;
  const own = summarize?.(seeds) ?? { values: medians(seeds.map(({ values }) => values)) };
  return { ...first, ...own, seeds: seeds.map(({ values, traces }) => ({ values, ...(traces && { traces }) })) };
}

/** Medians of the seeds' values; a value that some of them do not know is the median of the others. */
function medians(all: readonly Observation["values"][]): Observation["values"] {
  const names = new Set(all.flatMap((values) => Object.keys(values)));
  return Object.fromEntries(
    [...names].map((name) => [name, median(all.map((values) => values[name]).filter((value) => value !== undefined))]),
  );
}

function named(alternative: Alternative | undefined): { alternative?: string } {
  return alternative === undefined ? {} : { alternative: alternative.name };
}

/** Wall time, s. */
export function since(began: number): number {
  return Math.round(performance.now() - began) / 1000;
}
