/** Runs an experiment on the clocks that were asked for, one run after another, and judges the paper's statements by it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { WeirError } from "../../src/base/error.js";
import { makeFolder } from "../../src/base/folder.js";
import { packageFile } from "../../src/base/package_file.js";
import type { Outcome } from "../../src/clocks/clock.js";
import type { Clocks } from "../../src/clocks/clocks.js";
import { writeOutcome } from "../../src/clocks/files.js";
import { withMade } from "../../src/result/made.js";
import { before } from "../../src/result/measure.js";
import type { RunSource } from "../../src/result/saved_run.js";
import { median } from "../../src/result/statistics.js";
import { loadScenario } from "../../src/scenario/scenario.js";
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
  type Trial,
  trialsOn,
} from "./experiment.js";
import { type Overlay, overlaysOf } from "./overlay.js";
import type { References } from "./reference.js";
import { type ClockEvidence, type JudgedStatement, judge } from "./verdict.js";

export interface PaperOptions {
  clocks: readonly Clock[];
  seed?: number | undefined;
  /** Time scale of wire runs; default: the scenario's. */
  scale?: number | undefined;
  /** Each run leaves its own result there, in <clock>/<trial>/. */
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

/** Clocks that run papers' scenarios; their equations are their own. */
export type Runners = { [Name in NetworkClock]: Pick<Clocks[Name], "run"> };

/** Course of one run. */
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
  /** Time that it took; absent if it was not made. */
  wall_s?: number;
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

type Overrides = Pick<PaperOptions, "seed" | "scale">;

/** The file of a trial, and all overrides. */
export function trialInput({ file, set }: Trial, { seed, scale }: Overrides = {}) {
  const path = scenarioPath(file);
  const all = [
    ...set,
    ...(seed === undefined ? [] : [`seed=${seed + repeatOf(set)}`]),
    ...(scale === undefined ? [] : [`scale=${scale}`]),
  ];
  return { path, text: readFileSync(path, "utf8"), set: all };
}

/** The scenario of a trial with the options' overrides, and where it is from. @throws ScenarioError */
export function loadTrial(trial: Trial, overrides: Overrides = {}): RunSource {
  const { path, text, set } = trialInput(trial, overrides);
  return { text, set, scenario: loadScenario(path, { set }).scenario };
}

/** Options that concern a clock: time is scaled on the wire only. */
export function overridesOn(clock: NetworkClock, { seed, scale }: Overrides): Overrides {
  return clock === "wire" ? { seed, scale } : { seed };
}

/** Position of a trial among those that repeat one scenario with other seeds, from 0: they stay different, whatever the seed. */
function repeatOf(set: readonly string[]): number {
  const own = set.findLast((one) => one.startsWith("seed="));
  return own === undefined ? 0 : Number(own.slice("seed=".length)) - 1;
}

/** Scenarios of papers come with the package, as they are in the checkout. */
export function scenarioPath(file: string): string {
  return packageFile(`papers/${file}`);
}

function runsOn(experiment: Experiment, clock: Clock): number {
  const { alternative, bench } = experiment;
  if (clock === "model") return alternative === undefined ? 1 : 2;
  if (clock === "wire") return bench === undefined ? trialsOn(experiment, clock).length : 1;
  const trials = trialsOn(experiment, clock);
  const again =
    alternative === undefined ? [] : trials.filter((trial) => alternative.concerns(loadTrial(trial).scenario));
  return (trials.length + again.length) * seedsOn(experiment, clock);
}

/** A run, and what it has shown. */
interface Run {
  state: RunState;
  evidence?: Evidence;
}

class RunSeries {
  readonly states: RunState[] = [];
  /** Runs of the first reading, by clock and trial. */
  private readonly made = new Map<string, Run>();
  private readonly runs: number;

  constructor(
    private readonly experiment: Experiment,
    private readonly runners: Runners,
    private readonly options: PaperOptions,
  ) {
    this.runs = options.clocks.reduce((sum, clock) => sum + runsOn(experiment, clock), 0);
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
    for (let seed = 0; seed < seedsOn(this.experiment, clock); seed++) {
      const found: Record<string, Evidence> = {};
      for (const trial of trialsOn(this.experiment, clock)) {
        const { state, evidence } = await this.trial(clock, trial, seed, alternative);
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

  /**
   * Runs it under the first reading, or under the alternative: then only if it makes a difference. `repeat`: position among the
   * seeds, from 0.
   */
  private async trial(clock: NetworkClock, trial: Trial, repeat: number, alternative?: Alternative): Promise<Run> {
    const name = seedsOn(this.experiment, clock) > 1 ? repeatName(trial.name, repeat + 1) : trial.name;
    const place = `${clock}/${name}`;
    const overrides = overridesOn(clock, this.options);
    if (repeat > 0) overrides.seed = loadTrial(trial, overrides).scenario.seed + repeat;
    const source = loadTrial(trial, overrides);
    if (alternative === undefined) {
      const run = await this.make(clock, name, source);
      this.made.set(place, run);
      return run;
    }
    const first = this.made.get(place);
    if (first !== undefined && !alternative.concerns(source.scenario)) return first;
    const other = loadTrial({ ...trial, set: [...trial.set, ...alternative.set] }, overrides);
    return this.make(clock, name, other, alternative);
  }

  private async make(clock: NetworkClock, trial: string, source: RunSource, alternative?: Alternative): Promise<Run> {
    const facts = { clock, trial, ...named(alternative), seed: source.scenario.seed };
    const run = await this.attempt(facts, source);
    this.states.push(run.state);
    return run;
  }

  private async attempt(
    facts: Pick<RunState, "trial" | "alternative"> & { clock: NetworkClock; seed: number },
    source: RunSource,
  ): Promise<Run> {
    const { scenario } = source;
    const { clock, trial, alternative } = facts;
    const planned = clock === "wire" && scenario.scale !== "auto" ? scenario.scale : 1;
    const failed = (reason: string) => ({
      state: { ...facts, complete: false, valid: false, reasons: [reason], scale: planned },
    });
    if (this.options.signal.aborted) return failed("not run");
    this.report(facts, 0);
    const folder = join(clock, ...(alternative === undefined ? [] : [alternative.replaceAll(" ", "-")]), trial);
    makeFolder(join(this.options.directory, folder));
    const began = performance.now();
    try {
      const { result, series } = await this.run(clock, source, facts, folder);
      const { valid, reasons } = result.fidelity;
      const complete = result.until_s === undefined;
      const state = { ...facts, complete, valid, reasons, scale: result.scale, wall_s: since(began), folder };
      return { state, evidence: { scenario, result, series: before(series, scenario.duration / 1e9) } };
    } catch (error) {
      if (this.options.signal.aborted) return failed("stopped");
      if (error instanceof WeirError) return failed(error.message);
      throw error;
    }
  }

  private async run(
    clock: NetworkClock,
    source: RunSource,
    facts: Pick<RunState, "clock" | "trial" | "alternative">,
    folder: string,
  ): Promise<Outcome> {
    const directory = join(this.options.directory, folder);
    const outcome = await this.runners[clock].run(source.scenario, {
      signal: this.options.signal,
      folder: directory,
      onProgress: ({ done }) => this.report(facts, done),
    });
    writeOutcome(directory, { ...outcome, result: withMade(outcome.result) }, source);
    return outcome;
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
